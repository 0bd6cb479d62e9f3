"""Solutions, the exercises derived from them, and the form of wrong answers; `quack-lite grade --proofs` tries them."""

import ast
import re
from pathlib import Path

import nbformat
import pytest

from quack_lite.grading import cells, derive, names, notebook, proofs, tasks

ROOT = Path(__file__).resolve().parents[1]
SOLUTIONS = names.exercises(ROOT / "solutions")
SLUGS = tasks.slugs()
KERNEL_LINES_SHARED = 8


def code(path):
    return [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]


def test_each_solution_has_its_tasks_and_each_task_its_solution():
    assert [names.slug(path) for path in SOLUTIONS] == sorted(SLUGS, key=lambda slug: proofs.solution_path(slug).name)
    for path in SOLUTIONS:
        checked = [task for cell in code(path) for task in cells.checked_tasks(cell.source)]
        assert checked == [task.id for task in tasks.of(names.slug(path))]
        assert 2 <= len(checked) <= 4


def test_exercises_are_what_their_solutions_give():
    assert derive.derive(check=True) == [], "make exercises"


def test_an_edited_exercise_is_noticed(tmp_path):
    for folder in ("solutions", "exercises"):
        (tmp_path / folder).mkdir()
    (tmp_path / "solutions" / SOLUTIONS[0].name).write_text(SOLUTIONS[0].read_text())
    written = derive.derive(tmp_path)
    assert derive.derive(tmp_path, check=True) == []
    written[0].write_text(written[0].read_text().replace("NotImplementedError", "KeyError"))
    assert derive.derive(tmp_path, check=True) == written


def test_where_a_solution_ran_does_not_show_in_its_exercise(tmp_path):
    notebook = nbformat.read(SOLUTIONS[0], as_version=4)
    notebook.metadata["quack_lite"] = {"device": "another", "date": "2000-01-01"}
    notebook.metadata["language_info"] = {"name": "python", "version": "3.12.0"}
    nbformat.write(notebook, tmp_path / SOLUTIONS[0].name)
    assert derive.exercise_text(tmp_path / SOLUTIONS[0].name) == derive.exercise_text(SOLUTIONS[0])


@pytest.mark.parametrize("path", SOLUTIONS, ids=lambda path: path.stem)
def test_an_exercise_gives_no_solution_away(path):
    text = derive.exercise_text(path)
    assert "SOLUTION" not in text
    for cell in code(path):
        for region in derive.REGION.finditer(cell.source):
            for line in (line.strip() for line in region[2].splitlines() if len(line.strip()) > 20):
                assert line not in text


@pytest.mark.parametrize("path", SOLUTIONS, ids=lambda path: path.stem)
def test_the_first_cell_of_code_imports_the_lesson_tools(path):
    assert "quack_lite.lesson" in code(path)[0].source, "cells before it would be unknown to check"


@pytest.mark.parametrize("path", SOLUTIONS, ids=lambda path: path.stem)
def test_a_check_is_all_that_its_cell_does_and_only_of_a_kernel_its_output_is_not_compared(path):
    for cell in code(path):
        for task_id in cells.checked_tasks(cell.source):
            (statement,) = ast.parse(cell.source).body  # its value is what nbgrader sees
            assert isinstance(statement, ast.Expr)
            wanted = ["nbval-ignore-output"] if tasks.find(task_id).kind == "K" else []
            assert cell.metadata.get("tags", []) == wanted, task_id


@pytest.mark.parametrize("path", SOLUTIONS, ids=lambda path: path.stem)
def test_nbgrader_metadata(path):
    marked = [(cell, cell.metadata["nbgrader"]) for cell in code(path) if "nbgrader" in cell.metadata]
    assert len({made["grade_id"] for _, made in marked}) == len(marked)
    assert all(re.fullmatch(r"[\w-]+", made["grade_id"]) and made["schema_version"] == 3 for _, made in marked)
    written = [cell.source for cell, made in marked if made["solution"] and not made["locked"]]
    assert written == [cell.source for cell in code(path) if "### BEGIN SOLUTION" in cell.source]
    graded = [cell.source for cell, made in marked if made["grade"] and made["locked"] and made["points"] > 0]
    assert graded == [cell.source for cell in code(path) if cells.checked_tasks(cell.source)]
    assert len(written) + len(graded) == len(marked)


def test_nbgrader_metadata_that_is_missing_or_stale_is_made_and_names_and_points_stay(tmp_path):
    (tmp_path / "solutions").mkdir()
    path = tmp_path / "solutions" / SOLUTIONS[0].name
    before = nbformat.read(SOLUTIONS[0], as_version=4)
    marked = [cell for cell in before.cells if "nbgrader" in cell.metadata]
    solves, checks = marked[:2]
    checks.metadata["nbgrader"] |= {"grade_id": "of-old", "points": 3, "locked": False, "task": True}
    del solves.metadata["nbgrader"]
    before.cells[-1].metadata["nbgrader"] = {"grade": True}
    nbformat.write(before, path)
    exercise = tmp_path / "exercises" / path.name
    assert derive.derive(tmp_path) == [exercise, path] and derive.derive(tmp_path, check=True) == []
    for made in (nbformat.read(file, as_version=4) for file in (path, exercise)):
        solves, checks = [cell for cell in made.cells if "nbgrader" in cell.metadata][:2]
        assert solves.metadata["nbgrader"]["grade_id"] == f"{names.slug(path)}-{solves.id}"
        assert (
            checks.metadata["nbgrader"] | {"points": 3, "grade_id": "of-old", "locked": True, "task": False}
            == (checks.metadata["nbgrader"])
        )
        assert "nbgrader" not in made.cells[-1].metadata


@pytest.mark.parametrize("path", SOLUTIONS, ids=lambda path: path.stem)
def test_a_solution_neither_imports_nor_repeats_the_packages_kernels(path):
    package = [line_set(file.read_text()) for file in (ROOT / "quack_lite" / "kernels").glob("*.py")]
    for cell in code(path):
        for node in ast.walk(ast.parse(cell.source)):
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = [getattr(node, "module", "") or "", *(alias.name for alias in node.names)]
                assert not any("kernels" in name.split(".") for name in names)
        assert all(len(line_set(cell.source) & lines) < KERNEL_LINES_SHARED for lines in package)


def line_set(source):
    """Statements of a kernel without names of its own: what two kernels with the same body share."""
    stripped = (line.split("#")[0].strip() for line in source.splitlines())
    return {line for line in stripped if len(line) > 25 and not line.startswith(("import", "from", "def", "@"))}


@pytest.mark.parametrize("slug", SLUGS)
def test_wrong_answers_are_near_the_solution(slug):
    right = {answer.task: answer.text for answer in notebook.answers(proofs.solution_path(slug))}
    planted = proofs.wrong_answers(slug)
    for task in tasks.of(slug):
        mine = [wrong for wrong in planted if wrong.task == task.id]
        assert len(mine) >= 3 and len({wrong.name for wrong in mine}) == len(mine)
        for wrong in mine:
            text = wrong.apply(right[task.id])
            assert all(text_of_change[0] in right[task.id] for text_of_change in wrong.changes), wrong.name
            assert 1 <= proofs.lines_off(right[task.id], text) <= proofs.LINES_OFF, wrong.name
            assert wrong.gate in [gate.name for gate in task.gates] and wrong.sentence and wrong.easy


def test_three_hints_a_task():
    for task in tasks.every():
        assert len(task.hints) == 3 and all(task.hints)


def test_a_norm_that_is_rounded_twice_is_not_within_what_exercise_10_allows():
    torch = pytest.importorskip("torch")
    from quack_lite.grading.tasks import rms_norm

    x, w = rms_norm.qk_inputs(rms_norm.Heads(128, 33), torch.Generator().manual_seed(0))
    right, allowed = rms_norm.qk_reference(x, w).double(), rms_norm.qk_allowed(x, w)
    scaled = x.float() * torch.rsqrt(x.float().square().mean(-1, keepdim=True) + rms_norm.QK_EPS)
    once, twice = scaled * (1 + w), scaled.to(x.dtype) * (1 + w)
    outside = [((y.to(x.dtype).double() - right).abs() > allowed).double().mean() for y in (once, twice)]
    assert outside[0] == 0 and outside[1] > 0.1
