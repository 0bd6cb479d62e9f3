"""The files that set the course up agree with each other, and importing the package is cheap."""

import importlib.metadata
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PIN = re.compile(r"([A-Za-z0-9_.-]+)==(\S+?)(?:;.*)?$")
CI = os.environ.get("CI") == "true"
LIGHT = ("cli", "machine", "doctor", "workshop", "desk", "publish", "site", "slides", "classroom", "lesson", "grading")
needs_make = pytest.mark.skipif(not CI and shutil.which("make") is None, reason="make is not installed")


def pins(name):
    lines = (ROOT / name).read_text().splitlines()
    return {match[1]: match[2] for line in lines if (match := PIN.match(line))}


def names(requirements):
    return {re.match(r"[A-Za-z0-9_.-]+", line)[0] for line in requirements}


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)


def imports_without_torch(code):
    return (
        run(f"import sys\n{code}\nassert 'torch' not in sys.modules and 'cutlass' not in sys.modules").returncode == 0
    )


@pytest.mark.parametrize("module", ["quack_lite", *(f"quack_lite.{name}" for name in LIGHT)])
def test_importing_loads_neither_torch_nor_cutlass(module):
    assert imports_without_torch(f"import {module}")


def test_an_import_of_torch_would_be_seen():
    assert not imports_without_torch("sys.modules['torch'] = sys")


def test_every_line_of_the_requirements_is_an_exact_pin():
    for path in ROOT.glob("requirements*.txt"):
        for line in path.read_text().splitlines():
            if line and not line.startswith(("#", "-r ")):
                assert PIN.match(line), f"{path.name}: {line}"


def test_lite_has_neither_torch_nor_the_dsl_and_full_includes_it():
    assert not [name for name in pins("requirements-lite.txt") if name.startswith(("torch", "nvidia", "apache-tvm"))]
    assert (ROOT / "requirements.txt").read_text().startswith("-r requirements-lite.txt\n")


def test_what_the_package_depends_on_is_pinned_there_and_not_in_pyproject():
    dependencies = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    assert names(dependencies) <= {*pins("requirements.txt"), *pins("requirements-lite.txt")}
    assert not [line for line in dependencies if "==" in line.split(";")[0]]


@pytest.mark.skipif(not (CI or sys.prefix == str(ROOT / ".venv")), reason="not the environment that make set up")
def test_the_pins_are_what_is_installed():
    for name, version in {**pins("requirements.txt"), **pins("requirements-lite.txt")}.items():
        if name.startswith(("nvidia", "apache")) and sys.platform != "linux":
            continue
        assert importlib.metadata.version(name).split("+")[0] == version


def test_conda_takes_its_versions_from_the_requirements():
    lines = [line.strip() for line in (ROOT / "environment.yml").read_text().splitlines()]
    assert lines[lines.index("dependencies:") + 1 :] == ["- python=3.12", "- pip", "- pip:", "- -r requirements.txt"]


TARGETS = ["lab", "lab-lite", "test", "test-latest", "test-torch", "verify", "notebooks", "exercises", "bench"]


@needs_make
@pytest.mark.parametrize("target", TARGETS)
def test_make_knows_the_target_and_python_skips_the_set_up(target):
    command = ["make", "--dry-run", "PYTHON=python3", target]
    plan = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert plan.returncode == 0, plan.stderr
    assert "python3" in plan.stdout and ".venv" not in plan.stdout and "pip" not in plan.stdout


@needs_make
def test_make_sets_up_unless_told_otherwise(tmp_path):
    names_needed = ("Makefile", "requirements.txt", "requirements-lite.txt", "pyproject.toml")
    for name in names_needed:
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    clean = {key: value for key, value in os.environ.items() if key not in ("PYTHON", "MAKEFLAGS", "MAKEOVERRIDES")}
    plan = subprocess.run(["make", "--dry-run", "test"], capture_output=True, text=True, cwd=tmp_path, env=clean)
    assert plan.returncode == 0, plan.stderr
    venv, install, test = (plan.stdout.find(words) for words in ("-m venv", "-r requirements.txt", "run_parts.sh"))
    assert 0 <= venv < install < test


@pytest.mark.parametrize("name", [".ci/run", "tests/run_parts.sh"])
def test_shell_files_parse(name):
    subprocess.run(["bash", "-n", str(ROOT / name)], check=True)


def run_parts(tmp_path, python, **environment):
    """tests/run_parts.sh with a stand-in for Python that a test writes."""
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "run_parts.sh").write_bytes((ROOT / "tests" / "run_parts.sh").read_bytes())
    interpreter = tmp_path / "python"
    interpreter.write_text(f"#!/usr/bin/env bash\n{python}\n")
    interpreter.chmod(0o755)
    command = ["bash", str(tmp_path / "tests" / "run_parts.sh"), str(interpreter)]
    clean = {key: value for key, value in os.environ.items() if key != "CI"} | environment
    return subprocess.run(command, capture_output=True, text=True, env=clean)


def test_parts_report_their_times_and_pass(tmp_path):
    done = run_parts(tmp_path, "echo said by $*")
    assert done.returncode == 0
    for part in ("ruff", "codespell", "compile", "property", "rest", "browser", "nbgrader", "nbval", "proofs"):
        assert re.search(rf"^{part} +ok +\d+ s", done.stdout, re.M), part
    assert "said by -m quack_lite grade --proofs" in done.stdout


def test_one_failed_part_fails_all_and_the_others_still_run(tmp_path):
    done = run_parts(tmp_path, 'case "$*" in *test_tiling.py) [[ "$*" == *ignore* ]];; esac')
    assert done.returncode == 1
    assert re.search(r"^property +FAILED", done.stdout, re.M) and re.search(r"^proofs +ok", done.stdout, re.M)


def test_a_missing_linter_is_skipped_but_not_in_ci(tmp_path):
    without_ruff = 'case "$*" in *ruff*) exit 1;; esac'
    done = run_parts(tmp_path, without_ruff)
    assert done.returncode == 0 and "ruff       is not installed here: skipped" in done.stdout


def test_a_missing_linter_fails_ci(tmp_path):
    without_ruff = 'case "$*" in *ruff*) exit 1;; esac'
    done = run_parts(tmp_path, without_ruff, CI="true")
    assert done.returncode == 1 and re.search(r"^ruff +FAILED", done.stdout, re.M)


def test_the_linters_have_the_names_that_run_parts_calls():
    called = re.findall(r"^tool (\w+) (\w+)", (ROOT / "tests" / "run_parts.sh").read_text(), re.M)
    assert [name for name, _ in called] == ["ruff", "codespell"]
    for name, module in called:
        if name in {found.name for found in importlib.metadata.distributions()}:
            assert importlib.util.find_spec(module), module


def sanitized(text):
    from nbval.plugin import get_sanitize_patterns

    for pattern, replacement in get_sanitize_patterns((ROOT / "tests" / "nbval_sanitize.cfg").read_text()):
        text = re.sub(pattern, replacement, text)
    return text


@pytest.mark.parametrize(
    "one, other",
    [
        ("copy  4,240 GB/s", "copy   998.5 GB/s"),
        ("took 3.1 us", "took 12 us"),
        ("88 % of the copy ceiling", "9.5 % of the copy ceiling"),
        ("<function f at 0x7f0012abcd10>", "<function f at 0x7fffa0000010>"),
    ],
)
def test_numbers_that_differ_between_runs_are_not_compared(one, other):
    assert sanitized(one) == sanitized(other)


@pytest.mark.parametrize(
    "one, other",
    [
        ("passed at 4240 GB/s", "failed at 4240 GB/s"),
        ("tails.a: passed in 3 s", "tails.a: parked"),
        ("2 sectors of 4", "4 sectors of 4"),
        ("waste 50 %", "waste 75 %"),
        ("4 x 128-bit", "4 x 64-bit"),
    ],
)
def test_verdicts_and_counts_are_compared(one, other):
    assert sanitized(one) != sanitized(other)
