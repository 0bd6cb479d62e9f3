"""nbgrader on the exercises and the solutions, in an environment of its own that `make nbgrader` sets up.

Only CI sets it up for this; elsewhere these tests run where it is there.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from quack_lite import classroom, machine
from quack_lite.grading import names, notebook, proofs

ROOT = Path(__file__).parents[1]
CI = os.environ.get("CI") == "true"
START, KERNEL = "00_start_here", "05_bytes_in_flight"
MAX, MIN = "start_here-max-check", "start_here-min-check"

GRADES = """
import json, sys
from nbgrader.api import Gradebook

with Gradebook("sqlite:///gradebook.db") as book:
    given = {
        name: {one.student.id: {grade.name: grade.auto_score for part in one.notebooks for grade in part.grades}
               for one in book.assignment_submissions(name)}
        for name in sys.argv[1:]
    }
print(json.dumps(given))
"""


def submit(folder, learner, assignment, text):
    path = folder / "submitted" / learner / assignment / f"{assignment}.ipynb"
    path.parent.mkdir(parents=True)
    path.write_text(text)


def wrong(number):
    """The text of the solution of 00 with one of its planted wrong answers; the first is of the maximum."""
    changed = nbformat.read(ROOT / "solutions" / f"{START}.ipynb", as_version=4)
    for cell in changed.cells:
        if cell.cell_type == "code":
            cell.source = proofs.wrong_answers("start_here")[number].apply(cell.source)
    return nbformat.writes(changed)


@pytest.fixture(scope="module")
def nbgrader(tmp_path_factory):
    """nbgrader(words...) runs a command in a class's folder, in which four submissions wait; returns what it prints."""
    if not CI and not (classroom.ENVIRONMENT / "ready").exists():
        pytest.skip("nbgrader is not installed: make nbgrader")
    folder = tmp_path_factory.mktemp("nbgrader") / "class"
    clean = {key: value for key, value in os.environ.items() if key not in ("MAKEFLAGS", "MAKELEVEL", "PYTHONPATH")}
    made = subprocess.run(["make", f"PYTHON={sys.executable}", "nbgrader", f"CLASS={folder}"], cwd=ROOT, env=clean)
    assert made.returncode == 0
    for learner, assignment, text in (
        ("right", START, (ROOT / "solutions" / f"{START}.ipynb").read_text()),
        ("stub", START, (ROOT / "exercises" / f"{START}.ipynb").read_text()),
        ("wrong", START, wrong(0)),
        ("right", KERNEL, (ROOT / "solutions" / f"{KERNEL}.ipynb").read_text()),
    ):
        submit(folder, learner, assignment, text)
    there = clean | {"PATH": f"{classroom.ENVIRONMENT / 'bin'}{os.pathsep}{os.environ['PATH']}"}

    def run(*words):
        done = subprocess.run(words, capture_output=True, text=True, cwd=folder, env=there, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    run.folder = folder
    return run


@pytest.fixture(scope="module")
def graded(nbgrader):
    """{assignment: {learner: {grade_id: points}}} when nbgrader has made and graded the assignments."""
    for assignment in (START, KERNEL):
        nbgrader("nbgrader", "generate_assignment", assignment)
        nbgrader("nbgrader", "autograde", assignment)
    return json.loads(nbgrader("python", "-c", GRADES, START, KERNEL))


def said(nbgrader, learner, assignment):
    """What the code cells of a graded notebook printed."""
    path = nbgrader.folder / "autograded" / learner / assignment / f"{assignment}.ipynb"
    outputs = [output for cell in nbformat.read(path, as_version=4).cells for output in cell.get("outputs", [])]
    return "".join(output.get("text", "") + output.get("evalue", "") for output in outputs)


def test_a_solution_gets_all_points_a_stub_none_and_a_wrong_answer_none_for_its_task(nbgrader, graded):
    assert proofs.wrong_answers("start_here")[0].task == "start_here.max"
    assert graded[START] == {
        "right": {MAX: 1, MIN: 1},
        "stub": {MAX: 0, MIN: 0},
        "wrong": {MAX: 0, MIN: 1},
    }
    assert "this is still the stub" in said(nbgrader, "stub", START)
    assert "came out as" in said(nbgrader, "wrong", START)
    made = notebook.code(nbgrader.folder / "release" / START / f"{START}.ipynb")
    assert made == notebook.code(ROOT / "exercises" / f"{START}.ipynb")


def test_a_kernel_without_a_gpu_is_parked_and_has_no_points(nbgrader, graded):
    here = machine.places()["gpu"]
    (points,) = graded[KERNEL].values()
    assert points == {
        "bytes_in_flight-needed-check": 1,
        "bytes_in_flight-mean-check": 1,
        "bytes_in_flight-cast-check": 1 if here else 0,
    }
    assert ("bytes_in_flight.cast is parked at" in said(nbgrader, "right", KERNEL)) == (not here)


def test_validate_says_what_would_fail(nbgrader, tmp_path):
    for folder in ("solutions", "exercises"):
        (tmp_path / folder).mkdir()
        shutil.copy(ROOT / folder / f"{START}.ipynb", tmp_path / folder)
    told = nbgrader(
        "nbgrader", "validate", f"{tmp_path}/solutions/{START}.ipynb", f"{tmp_path}/exercises/{START}.ipynb"
    )
    assert told.startswith("Success!") and "FAILED ON 2 CELL(S)" in told


def test_each_exercise_is_an_assignment_and_what_the_teacher_wrote_stays(tmp_path):
    (tmp_path / "nbgrader_config.py").write_text("mine")
    assignments = classroom.prepare(tmp_path)
    assert assignments == [path.stem for path in names.exercises(ROOT / "exercises")]
    for name in assignments:
        assert (tmp_path / "source" / name / f"{name}.ipynb").read_bytes() == (
            ROOT / "exercises" / f"{name}.ipynb"
        ).read_bytes()
    assert (tmp_path / "nbgrader_config.py").read_text() == "mine"


def test_the_environment_finds_the_course_and_then_what_is_installed_here(tmp_path):
    packages = tmp_path / "lib" / "python3.12" / "site-packages"
    packages.mkdir(parents=True)
    classroom.share(tmp_path, ROOT)
    first, *others = (packages / "quack_lite.pth").read_text().splitlines()
    assert first == str(ROOT) and str(Path(pytest.__file__).parents[1]) in others
