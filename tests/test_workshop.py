"""quack-lite doctor --workshop: each thing that would spoil the day gets its line and its remedy."""

import importlib.metadata
import json
import shutil
import subprocess
import types
from pathlib import Path

import psutil
import pytest

from quack_lite import doctor, machine, workshop
from quack_lite.grading import spawn
from quack_lite.grading.feedback import Verdict

ROOT = Path(__file__).parents[1]
H200 = "0, NVIDIA H200, 140000 MiB, Disabled, Default"


@pytest.fixture
def grader(monkeypatch):
    """What a stand-in for the grader says, instead of the seconds that it takes."""
    said = ["this is still the stub (about 1 line)"]
    monkeypatch.setattr(spawn, "grade", lambda answers: [Verdict(answers[0].task, "failed", "value", said[-1])])
    return said


def found(people=1, root=ROOT):
    return {line.name: line for line in workshop.lines(people, root)}


def gpus(people, *told):
    return workshop.gpus(people, lambda: list(told))


def test_this_copy_has_what_the_syllabi_name(grader):
    here = found()
    assert here["lessons"].state == "ok" and here["grader"].state == "ok"
    assert "make student-release" in here["solutions"].todo


def test_the_syllabi_name_the_lessons_that_are_looked_for():
    text = (ROOT / "WORKSHOP.md").read_text()
    assert all(f"({number}" in text or f" {number} " in text for number in workshop.NUMBERS)


def test_a_course_without_a_lesson_and_without_solutions_says_so(grader, tmp_path):
    for folder in ("notebooks", "exercises"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    for name in ("requirements.txt", "requirements-lite.txt"):
        shutil.copy(ROOT / name, tmp_path)
    next((tmp_path / "notebooks").glob("05_*.ipynb")).unlink()
    here = found(root=tmp_path)
    assert (here["lessons"].state, here["lessons"].found) == ("wrong", "not here: notebooks/05")
    assert here["solutions"].found == "not in this copy"


def test_another_version_is_named(grader, monkeypatch):
    there = importlib.metadata.version
    monkeypatch.setattr(importlib.metadata, "version", lambda name: "0.1" if name == "jupyterlab" else there(name))
    line = found()["versions"]
    assert line.state == "wrong" and "jupyterlab 0.1 (not " in line.found


def test_a_full_disk_and_too_little_memory_are_wrong(grader, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda place: types.SimpleNamespace(free=2**30))
    monkeypatch.setattr(psutil, "virtual_memory", lambda: types.SimpleNamespace(available=30 * 2**30))
    assert found()["disk"].state == "wrong"
    assert found(people=20)["memory"].state == "ok" and found(people=30)["memory"].state == "wrong"


def test_a_grader_that_does_not_grade_is_wrong(grader):
    grader.append("the grader did not start (exit code 1)")
    line = found()["grader"]
    assert line.state == "wrong" and "the grader did not start" in line.found


def test_a_look_that_raises_is_a_line(grader, tmp_path):
    line = found(root=tmp_path)["versions"]
    assert line.state == "wrong" and "FileNotFoundError" in line.found


@pytest.mark.parametrize(
    ("people", "told", "state", "says"),
    [
        (20, H200, "ok", ""),
        (30, H200, "wrong", "lesson 01 in turns"),
        (1, H200.replace("140000", "900"), "wrong", "6 GiB a person"),
        (2, H200.replace("Default", "Exclusive_Process"), "wrong", "nvidia-smi -c DEFAULT"),
        (30, H200.replace("Disabled", "Enabled"), "ok", "CUDA_VISIBLE_DEVICES"),
        (2, H200.replace("140000 MiB", "[N/A]"), "wrong", "6 GiB a person"),
    ],
)
def test_a_gpu_is_judged_by_how_many_share_it(people, told, state, says):
    (line,) = gpus(people, told)
    assert line.state == state and says in line.todo


def test_people_are_spread_over_the_gpus_and_none_is_no_fault():
    assert ["for 15 people" in line.found for line in gpus(30, H200, H200)] == [True, True]
    (line,) = gpus(30)
    assert line.state == "absent" and "parked" in line.todo


def test_the_exit_code_tells_whether_all_is_well_and_json_has_all_lines(grader, monkeypatch, capsys):
    monkeypatch.setattr(doctor, "lines", lambda: [doctor.Line("Python", "ok", "here")])
    monkeypatch.setattr(workshop, "lines", lambda people, root: [doctor.Line("disk", "wrong", f"{people}")])
    assert workshop.run(7, json=True) == 1
    assert [line["found"] for line in json.loads(capsys.readouterr().out)["lines"]] == ["here", "7"]
    with pytest.raises(ValueError, match="give how many people come"):
        workshop.run(0)


def test_an_nvidia_smi_that_is_not_there_or_hangs_shows_no_gpu(monkeypatch):
    monkeypatch.setattr(machine, "driver_devices", lambda: ["nvidia0"])
    for problem in (FileNotFoundError("nvidia-smi"), subprocess.TimeoutExpired("nvidia-smi", 5)):

        def answer(*command, problem=problem, **options):
            raise problem

        monkeypatch.setattr(subprocess, "run", answer)
        assert [line.state for line in workshop.gpus(30, workshop._nvidia_smi)] == ["absent"]
