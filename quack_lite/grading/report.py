"""What `quack-lite grade` and `quack-lite hint` print."""

from __future__ import annotations

from pathlib import Path

from quack_lite.grading import names, notebook, spawn, tasks
from quack_lite.grading.feedback import Verdict
from quack_lite.grading.progress import Progress

ROOT = Path(__file__).resolve().parents[2]
MARKS = {"passed": "[green]passed[/]", "parked": "[yellow]parked[/]", "failed": "[red]failed[/]"}


def grade(target: str | None = None, proofs: bool = False, parked: bool = False) -> int:
    """Grades what is in work/ and prints a table; returns the exit code, 1 where an answer failed or work/ has none.

    target: an exercise (05, bytes_in_flight), one task (bytes_in_flight.cast) or a notebook's path; all without it.
    proofs: grades solutions, stubs and planted wrong answers instead.  parked: only tasks that wait for more hardware.
    ValueError for a target that there is not.
    """
    if proofs:
        from quack_lite.grading.proofs import prove

        return prove(target)
    progress = Progress()
    answers = [answer for path in _notebooks(target) for answer in notebook.answers(path)]
    if target is not None and target in {task.id for task in tasks.every()}:
        answers = [answer for answer in answers if answer.task == target]
    if parked:
        waiting = progress.parked()
        answers = [answer for answer in answers if answer.task in waiting]
    if not answers:
        print("no task is parked" if parked else "no answers in work/: quack-lite start NN copies an exercise there")
        return int(not parked)
    verdicts = spawn.grade(answers)
    for verdict in verdicts:
        progress.record(verdict)
    _show(verdicts)
    return int(any(verdict.status == "failed" for verdict in verdicts))


def hint(task_id: str) -> int:
    """Prints the next hint of a task and returns 0; ValueError with the ids there are for an unknown one."""
    task = tasks.find(task_id)
    number = Progress().next_hint(task_id, len(task.hints))
    print(f"hint {number} of {len(task.hints)}: {task.hints[number - 1]}")
    return 0


def _notebooks(target: str | None) -> list[Path]:
    if target is not None and target.endswith(".ipynb"):
        if not Path(target).exists():
            raise ValueError(f"there is no file {target}")
        return [Path(target)]
    every = names.exercises(ROOT / "work")
    if target is None:
        return every
    wanted = target.partition(".")[0]
    found = [path for path in every if names.means(wanted, path)]
    if not found:
        there = ", ".join(path.stem for path in every) or "nothing yet"
        raise ValueError(f"work/ has no exercise {target!r} (it has {there}): quack-lite start NN copies one there")
    return found


def _show(verdicts: list[Verdict]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table("task", "result", "at", "what to do", title="Your answers")
    for verdict in verdicts:
        words = verdict.sentence or "; ".join(f"{gate}: {words}" for gate, words in verdict.seen)
        table.add_row(verdict.task, MARKS[verdict.status], verdict.gate or "-", Text(words))
    Console().print(table)
