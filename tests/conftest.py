"""Which tests of the public functions share a process under `pytest -n 8 --dist loadgroup`; what drawings are made of.

A kernel is compiled once a process: the tests of one operator and dtype belong together.
"""

import pytest
from matplotlib.figure import Figure


@pytest.fixture
def figures(monkeypatch):
    """The figures that become pictures, in order."""
    seen, save = [], Figure.savefig
    monkeypatch.setattr(
        Figure, "savefig", lambda figure, *args, **kwargs: seen.append(figure) or save(figure, *args, **kwargs)
    )
    return seen


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    if config.pluginmanager.hasplugin("xdist"):
        for item in items:
            if name := operator_of(item):
                dtype = parameters(item).get("dtype", "bfloat16")
                item.add_marker(pytest.mark.xdist_group(f"{name}-{dtype}"))


def operator_of(item) -> str | None:
    """The operator that a test on a GPU is about, from its parameters or its file's name; None for any other test."""
    if item.get_closest_marker("hopper") is None:
        return None
    of_file = {"test_cross_entropy": "cross_entropy", "test_swiglu": "swiglu", "test_copy": "copy"}
    return parameters(item).get("name", of_file.get(item.path.stem))


def parameters(item) -> dict:
    """The parameters of a test, by name."""
    return item.callspec.params if hasattr(item, "callspec") else {}
