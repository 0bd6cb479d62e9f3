"""What `quack-lite hint` and hint(...) print: one hint more each time, at last the solution."""

from __future__ import annotations

from pathlib import Path

from quack_lite.grading import names, notebook, tasks
from quack_lite.grading.progress import Progress

ROOT = Path(__file__).resolve().parents[2]


def hint(task_id: str) -> int:
    """Prints the next hint of a task and returns 0; ValueError with the ids there are for an unknown one.

    After the last hint the solution is offered, and printed when asked for again; of a task that has passed at once.
    """
    task = tasks.find(task_id)
    progress = Progress()
    if progress.passed(task_id):
        print(f"{task_id} has passed. The course's solution:\n\n{solution(task_id)}")
        return 0
    asked, last = progress.ask(task_id), len(task.hints)
    if asked <= last:
        print(f"hint {asked} of {last}: {task.hints[asked - 1]}")
    elif asked == last + 1:
        for number, text in enumerate(task.hints, start=1):
            print(f"hint {number} of {last}: {text}")
        print("These are all the hints. Ask once more and you see the solution.")
    else:
        print(f"The course's solution of {task_id}:\n\n{solution(task_id)}")
    return 0


def solution(task_id: str) -> str:
    """The cells that solve the task; a sentence where this copy of the course has no solutions."""
    slug = task_id.partition(".")[0]
    for path in names.exercises(ROOT / "solutions"):
        if names.slug(path) == slug:
            return notebook.solution(path, task_id)
    return "This copy of the course has no solutions: ask whoever gave it to you."
