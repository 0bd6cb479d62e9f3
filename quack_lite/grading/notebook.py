"""Answers in a notebook's file: which tasks it checks, and the text that defines each answer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from quack_lite.grading import cells
from quack_lite.grading.spawn import Answer


def answers(path: Path, change: Callable[[str], str] = str) -> list[Answer]:
    """One Answer for each check(...) in the notebook, from the cells above it; `change` is applied to each cell."""
    import nbformat

    notebook = nbformat.read(path, as_version=4)
    sources = [change(cell.source) for cell in notebook.cells if cell.cell_type == "code"]
    found = []
    for index, source in enumerate(sources):
        for task_id in cells.checked_tasks(source):
            expression = cells.answer_expression(source, task_id)
            if expression is not None:
                found.append(Answer(task_id, cells.select(sources[: index + 1], expression)))
    return found
