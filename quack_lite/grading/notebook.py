"""Answers in a notebook's file: which tasks it checks, the text that defines each answer, and what solves a task."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from quack_lite.grading import cells
from quack_lite.grading.spawn import Answer

MARKS = ("### BEGIN SOLUTION", "### END SOLUTION")


def answers(path: Path, change: Callable[[str], str] = str) -> list[Answer]:
    """One Answer for each check(...) in the notebook, from the cells above it; `change` is applied to each cell.

    ValueError where the file cannot be read as a notebook.
    """
    sources = [change(source) for source in code(path)]
    found = []
    for index, source in enumerate(sources):
        for task_id in cells.checked_tasks(source):
            expression = cells.answer_expression(source, task_id)
            if expression is not None:
                found.append(Answer(task_id, cells.select(sources[: index + 1], expression)))
    return found


def solution(path: Path, task_id: str) -> str:
    """Of a solution's notebook, the cells that solve this task and none before it, without the marks of the regions."""
    found = answers(path)
    [at] = [index for index, answer in enumerate(found) if answer.task == task_id]
    before = "\n".join(answer.text for answer in found[:at])
    solving = [source for source in code(path) if MARKS[0] in source]
    mine = [source for source in solving if _text(source) in found[at].text and _text(source) not in before]
    return "\n\n\n".join(_unmarked(source) for source in mine)


def code(path: Path) -> list[str]:
    """The sources of its code cells. ValueError where the file cannot be read as a notebook."""
    import nbformat

    try:
        notebook = nbformat.read(path, as_version=4)
        return [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    except Exception as error:  # whatever a damaged file makes of nbformat, its validator and the cells
        raise ValueError(f"{path.name} is no notebook that can be read ({type(error).__name__})") from None


def _text(source: str) -> str:
    return cells.Cell(source).text


def _unmarked(source: str) -> str:
    return "\n".join(line for line in source.splitlines() if line.strip() not in MARKS)
