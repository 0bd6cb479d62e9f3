"""What `quack-lite hint` and hint(...) print: one hint more each time, at last the solution."""

from __future__ import annotations

from pathlib import Path

from quack_lite.grading import names, notebook, tasks
from quack_lite.grading.progress import Progress

ROOT = Path(__file__).resolve().parents[2]
NO_SOLUTIONS = "This copy of the course has no solutions: ask whoever gave it to you."


def hint(task_id: str) -> int:
    """Prints the next hint of a task and returns 0; ValueError with the ids there are for an unknown one.

    After the last hint the solution is offered, and printed when asked for again; of a task that has passed at once.
    """
    task = tasks.find(task_id)
    progress = Progress()
    if progress.passed(task_id):
        print(f"{task_id} has passed. {_told(task_id)}")
        return 0
    asked, last = progress.ask(task_id), len(task.hints)
    if asked <= last:
        print(f"hint {asked} of {last}: {task.hints[asked - 1]}")
    elif asked == last + 1:
        for number, text in enumerate(task.hints, start=1):
            print(f"hint {number} of {last}: {text}")
        more = "Ask once more and you see the solution." if solution(task_id) else NO_SOLUTIONS
        print(f"These are all the hints. {more}")
    else:
        print(_told(task_id))
    return 0


def _told(task_id: str) -> str:
    text = solution(task_id)
    return f"The course's solution:\n\n{text}" if text else NO_SOLUTIONS


def solution(task_id: str) -> str:
    """The cells that solve the task; empty where this copy of the course has no solutions, as one for students."""
    slug = task_id.partition(".")[0]
    for path in names.exercises(ROOT / "solutions"):
        if names.slug(path) == slug:
            return notebook.solution(path, task_id)
    return ""
