"""other_versions, and what stands round the repository for those who work on it: the hooks, the form of an issue."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import other_versions
import pytest
import yaml

from quack_lite import cli

ROOT = Path(__file__).parents[1]
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
FULL = '-r requirements-lite.txt\n# why\ntorch==2.13.0\napache-tvm-ffi==0.1.15.post2; sys_platform == "linux"\n'


@pytest.fixture
def course(tmp_path, monkeypatch):
    """A folder with two files of requirements, and nothing that is installed or run in earnest."""
    (tmp_path / "requirements-lite.txt").write_text("# light\nnumpy==2.4.6\njupyter_core==5.0\n\n")
    (tmp_path / "requirements.txt").write_text(FULL)
    monkeypatch.setattr(other_versions, "ROOT", tmp_path)
    return tmp_path


def test_the_newest_of_everything_has_no_versions(course):
    asked = other_versions.requirements("latest", course)
    assert asked == 'numpy\njupyter_core\ntorch\napache-tvm-ffi; sys_platform == "linux"\n'


def test_another_torch_leaves_the_other_pins(course):
    asked = other_versions.requirements("torch==2.9.1", course).splitlines()
    assert (
        asked[2] == "torch==2.9.1"
        and asked[0] == "numpy==2.4.6"
        and asked[3].startswith("apache-tvm-ffi==0.1.15.post2;")
    )


@pytest.mark.parametrize(
    "wanted, says", [("torch", "give .latest., or one as"), ("torch>=2.9", "give .latest."), ("jax==1.0", "jax is not")]
)
def test_what_cannot_be_tried_is_said(course, wanted, says):
    with pytest.raises(ValueError, match=says):
        other_versions.requirements(wanted, course)


def test_what_changed_is_told_with_both_versions():
    pinned = {"numpy": "2.4.6", "torch": "2.13.0", "jupyter_core": "5.0", "rich": "15.0.0"}
    found = other_versions.changes(pinned, {"numpy": "2.5.0", "torch": "2.13.0+cpu", "jupyter-core": "5.0"})
    assert [line.split() for line in found] == [
        ["numpy", "2.4.6", "->", "2.5.0"],
        ["rich", "15.0.0", "->", "not", "installed"],
    ]
    assert other_versions.changes({"numpy": "2.4.6"}, {"numpy": "2.4.6"}) == ["every version is the pinned one"]


@pytest.mark.parametrize("only, runs", [((), "run_parts.sh"), (("tests/test_a.py",), "tests/test_a.py")])
def test_the_tests_run_there_their_status_comes_back_and_no_pin_is_touched(course, monkeypatch, capsys, only, runs):
    before, ran = (course / "requirements.txt").read_text(), []
    both, new = "tests/test_a.py::test_x[1 - 2]", "tests/test_a.py::test_y"

    def run(command, **options):
        ran.append(command)
        said = "numpy==2.5.0\ntorch==2.13.0\njupyter_core==5.0\napache-tvm-ffi==0.1.15.post2\n"
        return subprocess.CompletedProcess(command, 0, stdout=said)

    def streamed(command, environment):
        ran.append(command)
        assert "CI" not in environment and os.environ["CI"] == "true"
        return 3, [both] if command[0] == sys.executable else [both, new]

    monkeypatch.setenv("CI", "true")
    monkeypatch.setattr(other_versions.subprocess, "run", run)
    monkeypatch.setattr(other_versions, "streamed", streamed)
    monkeypatch.setattr(other_versions.venv, "create", lambda folder, **_: folder.mkdir(parents=True))
    assert other_versions.main("torch==2.9.1", only) == 3
    install, _, tests, pinned = ran
    assert install[-2:] == ["-r", str(course / "build" / "versions" / "torch-2.9.1" / "requirements.txt")]
    assert any(part.endswith(runs) for part in tests) and pinned[-2:] == [both, new]
    said = capsys.readouterr().out
    assert f"failed, with the pins too: {both}\nfailed, only with these versions: {new}\n" in said
    assert said.count("2.4.6") == 2 and said.rstrip().endswith("the tests FAILED")
    assert (course / "requirements.txt").read_text() == before


def test_what_failed_is_found_in_what_pytest_prints(course):
    lines = [
        "FAILED tests/test_a.py::test_x[1 2] - AssertionError: a - b",
        "ERROR tests/test_b.py::test_y - Ass...",
        "FAILED notebooks/17_cluster.ipynb::Cell 43 - \x1b[91mNotebook cell execution failed\x1b[0m",
        "ruff       FAILED    1 s",
        "FAILED (errors=1)",
    ]
    command = [sys.executable, "-c", f"print({chr(10).join(lines)!r}); raise SystemExit(2)"]
    status, failed = other_versions.streamed(command, dict(os.environ))
    assert status == 2
    assert failed == ["notebooks/17_cluster.ipynb::Cell 43", "tests/test_a.py::test_x[1 2]", "tests/test_b.py::test_y"]


def test_a_test_and_a_cell_are_tried_again_each_by_its_own_command(monkeypatch):
    ran = []
    monkeypatch.setattr(other_versions, "streamed", lambda command, _: (1, ran.append(command) or command[4:]))
    cell, test = "notebooks/a.ipynb::Cell 1", "tests/test_a.py::test_x"
    assert other_versions.again([cell, test], {}) == [test]
    assert [command[4:] for command in ran] == [[test], [*other_versions.NBVAL, "notebooks/a.ipynb"]]
    assert other_versions.verdict([test], None) == [f"failed, not tried with the pins: {test}"]


def test_the_oldest_torch_that_is_tried_is_the_oldest_that_is_allowed():
    allowed = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    (oldest,) = [line.removeprefix("torch>=") for line in allowed if line.startswith("torch>=")]
    assert re.search(rf"^TORCH \?= {re.escape(oldest)}\.0$", (ROOT / "Makefile").read_text(), re.M)


def test_the_hooks_are_the_linters_of_ci():
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"][0]["hooks"]
    of_ci = re.findall(r"^tool \w+ (.+)$", (ROOT / "tests" / "run_parts.sh").read_text(), re.M)
    assert [hook["entry"].removeprefix(".venv/bin/python -m ") for hook in hooks] == [
        words.removesuffix(" .") for words in of_ci
    ]
    assert all(hook["language"] == "system" for hook in hooks), "another version than the pinned one"


@pytest.mark.parametrize(
    "path", sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml")), ids=lambda path: path.stem
)
def test_a_form_of_an_issue_asks_for_commands_that_there_are(path):
    form = yaml.safe_load(path.read_text())
    assert form["name"] and form["description"]
    fields = [field for field in form["body"] if field["type"] != "markdown"]
    assert len({field["id"] for field in fields}) == len(fields)
    commands = [label for field in fields if (label := field["attributes"]["label"]).startswith("quack-lite ")]
    assert commands
    for command in commands:
        assert cli._parser().parse_args(command.split()[1:]).json
