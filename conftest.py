"""For tests/ and, since it stands in the root, for `pytest --nbval notebooks solutions`: skips what this machine lacks.

A test asks for hardware by a marker (compile, gpu, hopper), a notebook's cell by a tag (compiler, gpu, hopper).
"""

import os
from pathlib import Path

import pytest

from quack_lite import machine

ROOT = Path(__file__).parent
PLACE_OF = {"compile": "compiler", "compiler": "compiler", "gpu": "gpu", "hopper": "hopper"}
CI = os.environ.get("CI") == "true"


def pytest_configure(config):
    # Kernels of notebooks and other child processes find the package without an installation.
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    if getattr(config.option, "nbval", False) and not config.option.nbval_sanitize_with:
        config.option.nbval_sanitize_with = str(ROOT / "tests" / "nbval_sanitize.cfg")


def pytest_collection_modifyitems(items):
    for item in items:
        for want in wants(item):
            place = PLACE_OF[want]
            # In CI a test that compiles runs or fails: a missing compiler is no reason to pass.
            if not machine.places()[place] and not (CI and place == "compiler"):
                item.add_marker(pytest.mark.skip(reason=f"needs {want}: {machine.reasons(place)}"))
                break


def wants(item) -> list[str]:
    """The hardware that a test or a notebook's cell asks for."""
    cell = getattr(item, "cell", None)
    names = cell.metadata.get("tags", []) if cell is not None else [mark.name for mark in item.iter_markers()]
    return [name for name in names if name in PLACE_OF]
