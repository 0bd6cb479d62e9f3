"""desk: a learner's file is never overwritten, and the right page is opened."""

import os
import shutil
import subprocess
import sys
from datetime import date
from pathlib import Path

import nbformat
import pytest

from quack_lite import desk
from quack_lite.grading.feedback import Verdict
from quack_lite.grading.progress import Progress


@pytest.fixture
def course(tmp_path):
    """A course with lessons 03 and 05 and exercises 05 and 12."""
    for name in (
        "notebooks/05_two.ipynb",
        "notebooks/03_one.ipynb",
        "exercises/05_two.ipynb",
        "exercises/12_far.ipynb",
    ):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        nbformat.write(nbformat.v4.new_notebook(), path)
    return tmp_path


@pytest.fixture
def served(monkeypatch):
    """Collects what would have become a JupyterLab, instead of becoming one."""
    calls = []
    monkeypatch.setattr(desk.os, "execv", lambda program, command: calls.append(command))
    monkeypatch.setattr(desk, "_running_lab", lambda page, root: None)
    for variable in ("PATH", "JUPYTER_CONFIG_PATH"):  # serve puts a folder in front
        monkeypatch.setenv(variable, os.environ.get(variable, ""))
    return calls


def test_lay_out_copies_once_and_never_again(course):
    assert [path.name for path in desk.lay_out(course)] == ["05_two.ipynb", "12_far.ipynb"]
    (course / "work" / "05_two.ipynb").write_text("mine")
    assert desk.lay_out(course) == []
    assert (course / "work" / "05_two.ipynb").read_text() == "mine"


@pytest.mark.parametrize("number", ["5", "05", "05_two", "05_two.ipynb"])
def test_start_copies_the_exercise_and_opens_it(course, served, capsys, number):
    desk.start(number, root=course)
    assert (course / "work" / "05_two.ipynb").exists() and not (course / "work" / "12_far.ipynb").exists()
    assert "work/05_two.ipynb: copied" in capsys.readouterr().out
    assert "--LabApp.default_url=/lab/tree/work/05_two.ipynb" in served[0]


def test_start_keeps_what_is_there_and_says_so(course, served, capsys):
    desk.start("5", root=course)
    (course / "work" / "05_two.ipynb").write_text("mine")
    desk.start("5", root=course)
    assert "already there, kept as it is" in capsys.readouterr().out
    assert (course / "work" / "05_two.ipynb").read_text() == "mine"


@pytest.mark.parametrize("number", ["project_a", "project_a_own", "own"])
def test_a_project_has_a_letter(course, number):
    project = course / "exercises" / "project_a_own.ipynb"
    nbformat.write(nbformat.v4.new_notebook(), project)
    assert desk.find_exercise(number, course) == project
    assert desk.first_lesson(course).name == "03_one.ipynb"


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_an_update_of_the_course_meets_nothing_of_the_learners(course, tmp_path_factory):
    def git(folder, *words):
        identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
        return subprocess.run(["git", "-C", folder, *identity, *words], check=True, capture_output=True).stdout

    clone = tmp_path_factory.mktemp("clone")
    shutil.copy(Path(desk.__file__).parents[1] / ".gitignore", course)
    git(course, "init")
    git(course, "add", ".")
    git(course, "commit", "-m", "one")
    git(clone, "clone", course, ".")
    desk.lay_out(clone)
    (clone / "work" / "05_two.ipynb").write_text("mine")
    Progress(clone / "work" / "progress.json").record(Verdict("two.a", "passed"))
    (course / "exercises" / "05_two.ipynb").write_text("changed")
    git(course, "commit", "-a", "-m", "two")
    git(clone, "pull")
    desk.lay_out(clone)
    assert (clone / "exercises" / "05_two.ipynb").read_text() == "changed"
    assert (clone / "work" / "05_two.ipynb").read_text() == "mine"
    assert Progress(clone / "work" / "progress.json").passed("two.a")
    assert git(clone, "status", "--porcelain") == b""


class TestReset:
    def test_what_was_there_is_kept_with_the_date(self, course, capsys):
        desk.lay_out(course)
        (course / "work" / "05_two.ipynb").write_text("mine")
        assert desk.reset("5", course) == 0
        kept = course / "work" / "aside" / f"05_two.{date.today().isoformat()}.ipynb"
        assert kept.read_text() == "mine"
        assert (course / "work" / "05_two.ipynb").read_bytes() == (course / "exercises" / "05_two.ipynb").read_bytes()
        assert f"Yours is now work/aside/{kept.name}." in (out := capsys.readouterr().out) and "Reload Notebook" in out

    def test_it_brings_what_an_update_changed(self, course):
        desk.lay_out(course)
        old = (course / "work" / "05_two.ipynb").read_bytes()
        (course / "exercises" / "05_two.ipynb").write_text("changed")
        desk.reset("05", course)
        assert (course / "work" / "05_two.ipynb").read_text() == "changed"
        assert [path.read_bytes() for path in (course / "work" / "aside").iterdir()] == [old]

    @pytest.mark.parametrize("laid_out", [True, False])
    def test_where_there_is_nothing_to_keep(self, course, capsys, laid_out):
        if laid_out:
            desk.lay_out(course)
        desk.reset("05", course)
        assert (course / "work" / "05_two.ipynb").exists() and not (course / "work" / "aside").exists()
        assert "nothing of yours to keep" in capsys.readouterr().out

    def test_its_tasks_are_open_again(self, course):
        progress = Progress(course / "work" / "progress.json")
        (course / "work").mkdir()
        for task, status in [("two.a", "passed"), ("two.b", "parked"), ("far.a", "parked")]:
            progress.record(Verdict(task, status))
        desk.reset("05", course)
        assert progress.passed("two.a") and progress.parked() == ["far.a"]

    def test_what_is_kept_is_not_graded(self, course, monkeypatch):
        from quack_lite.grading import report

        desk.lay_out(course)
        (course / "work" / "05_two.ipynb").write_text("mine")
        desk.reset("05", course)
        monkeypatch.setattr(report, "ROOT", course)
        assert [path.name for path in report._notebooks("5")] == ["05_two.ipynb"]


@pytest.mark.parametrize("number", ["7", "x", "", "-1"])
def test_an_unknown_number_names_those_that_exist(course, number):
    with pytest.raises(ValueError, match="Give the number of one of these: 05_two, 12_far"):
        desk.start(number, root=course)


def test_start_uses_a_lab_that_serves_this_folder(course, served, monkeypatch, capsys):
    serverapp = pytest.importorskip("jupyter_server.serverapp")
    servers = [
        {"root_dir": "/nowhere", "url": "http://127.0.0.1:1/", "token": "a"},
        {"root_dir": str(course), "url": "http://127.0.0.1:8889/", "token": "b"},
    ]
    monkeypatch.undo()
    monkeypatch.setattr(serverapp, "list_running_servers", lambda: servers)
    desk.start("5", browser=False, root=course)
    assert "http://127.0.0.1:8889/lab/tree/work/05_two.ipynb?token=b" in capsys.readouterr().out


def test_the_lowest_numbered_lesson_is_first(course, tmp_path):
    assert desk.first_lesson(course).name == "03_one.ipynb"
    with pytest.raises(ValueError, match="there is no lesson"):
        desk.first_lesson(tmp_path / "elsewhere")


def test_terminals_of_the_lab_find_the_command(course, served, monkeypatch):
    monkeypatch.setenv("PATH", "/usr/bin")
    desk.serve("notebooks/03_one.ipynb", [], course)
    assert os.environ["PATH"].split(os.pathsep) == [str(Path(sys.executable).parent), "/usr/bin"]


def test_the_learners_own_settings_of_jupyter_stay_behind_the_courses(course, served, monkeypatch):
    monkeypatch.setenv("JUPYTER_CONFIG_PATH", "/home/learner/settings")
    desk.serve("notebooks/03_one.ipynb", [], course)
    ours, theirs = os.environ["JUPYTER_CONFIG_PATH"].split(os.pathsep)
    assert (Path(ours) / "labconfig" / "page_config.json").is_file() and theirs == "/home/learner/settings"


@pytest.mark.parametrize("user", [0, 1000])
def test_root_is_allowed_only_where_it_is_root(course, served, monkeypatch, user):
    monkeypatch.setattr(desk.os, "geteuid", lambda: user)
    desk.serve("notebooks/03_one.ipynb", ["--no-browser"], course)
    (command,) = served
    assert command[:3] == [sys.executable, "-m", "jupyterlab"] and command[-1] == "--no-browser"
    assert "--ServerApp.ip=127.0.0.1" in command
    assert ("--allow-root" in command) == (user == 0)
    assert not any("token" in word for word in command)


def test_trust_signs_the_courses_notebooks(course, monkeypatch, tmp_path):
    from nbformat.sign import NotebookNotary

    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "data"))
    desk.trust(course)
    notebook = nbformat.read(course / "notebooks" / "03_one.ipynb", as_version=4)
    assert NotebookNotary().check_signature(notebook)
