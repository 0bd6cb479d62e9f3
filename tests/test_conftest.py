"""conftest.py, in a small project of its own: what is skipped, with which reason, and what nbval compares."""

import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output

ROOT = Path(__file__).parents[1]


@pytest.fixture
def project(tmp_path):
    """A folder with this conftest.py, its sanitizing file and the pytest settings."""
    for name in ("conftest.py", "pyproject.toml", "tests/nbval_sanitize.cfg"):
        target = tmp_path / name
        target.parent.mkdir(exist_ok=True)
        target.write_bytes((ROOT / name).read_bytes())
    return tmp_path


def pytest_without_gpu(project, *arguments, **environment):
    clean = {key: value for key, value in os.environ.items() if key not in ("CI", "PYTEST_ADDOPTS")}
    environment = clean | {"CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": str(ROOT)} | environment
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:hypothesispytest", *arguments]
    return subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True)


def cell(source, says, *tags):
    saved = [new_output("stream", text=says)]
    return new_code_cell(source, metadata={"tags": list(tags)}, outputs=saved, execution_count=1)


def test_nbval_skips_by_tag_and_compares_verdicts_not_rates(project):
    cells = [
        cell("1 / 0", "", "gpu"),
        cell("1 / 0", "", "hopper", "kernel"),
        cell("import quack_lite; print('passed, 3 GB/s')", "passed, 4240 GB/s\n"),
        cell("print('failed, 3 GB/s')", "passed, 3 GB/s\n"),
    ]
    (project / "notebooks").mkdir()
    nbformat.write(new_notebook(cells=cells), project / "notebooks" / "01_a.ipynb")
    out = pytest_without_gpu(project, "--nbval", "--nbval-current-env", "notebooks").stdout
    assert "1 failed, 1 passed, 2 skipped" in out
    assert "needs gpu: " in out and "needs hopper: " in out
    assert "Cell 3: Cell outputs differ" in out


TESTS = """
import pytest

@pytest.mark.gpu
def test_gpu(): pass

@pytest.mark.hopper
def test_hopper(): pass

@pytest.mark.compile
def test_compile(): pass
"""
NO_TORCH = "import sys\nsys.modules['torch'] = None\n"


@pytest.mark.parametrize("ci, outcome", [("", "3 skipped"), ("true", "1 passed, 2 skipped")])
def test_markers_skip_with_a_reason_and_ci_must_compile(project, ci, outcome):
    (project / "tests" / "test_a.py").write_text(NO_TORCH + TESTS)
    out = pytest_without_gpu(project, "-p", "no:nbval", CI=ci).stdout
    assert outcome in out
    assert all(f"needs {name}: " in out for name in ("gpu", "hopper"))
