"""How far the learner is: what `quack-lite progress` and progress() in a notebook print."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quack_lite.grading import cells, names
from quack_lite.grading.progress import Progress, Tables

ROOT = Path(__file__).resolve().parents[2]
COLOURS = {"passed": "green", "parked": "yellow", "open": "default"}


@dataclass(frozen=True)
class Standing:
    """A task, what it is worth, and "passed", "parked" or "open"; `note` says when, and where it failed or waits."""

    task: str
    points: int
    state: str
    note: str


@dataclass(frozen=True)
class Lesson:
    """A lesson (name as "05_bytes_in_flight"; `written` if its notebook is there) and the tasks of its exercise.

    begun: whether anything of it was graded or asked for.
    """

    name: str
    written: bool
    tasks: tuple[Standing, ...]
    begun: bool

    @property
    def state(self) -> str:
        """That of its tasks: passed if all are, parked if the others are, open otherwise; empty without an exercise."""
        states = {task.state for task in self.tasks}
        return next((state for state in ("open", "parked", "passed") if state in states), "")


def show(root: Path = ROOT) -> int:
    """Prints lessons, tasks, points and what to do next; returns 0. ValueError where there are no lessons."""
    from rich.console import Console
    from rich.table import Table

    lessons = of(Progress(root / "work" / "progress.json").read(), root)
    table = Table("lesson and tasks", "state", "points", "note")
    for lesson in lessons:
        points = "{} of {}".format(*_points([lesson])) if lesson.tasks else "-"
        note = "" if lesson.tasks else "no tasks"
        table.add_row(f"[bold]{lesson.name}[/]", _coloured(lesson.state or "-"), points, note)
        for task in lesson.tasks:
            table.add_row(f"  {task.task}", _coloured(task.state), str(task.points), task.note)
    Console(force_jupyter=False).print(table)
    print("\n".join(summary(lessons)))
    return 0


def of(tables: Tables, root: Path = ROOT) -> list[Lesson]:
    """The lessons of the course in their order, with what the progress file says of their tasks."""
    lessons = {path.stem: path for path in names.exercises(root / "notebooks")}
    exercises = {path.stem: path for path in names.exercises(root / "exercises")}
    if not lessons and not exercises:
        raise ValueError(f"there are no lessons in {root}: run this in a clone of the course")
    found = []
    for name in sorted(lessons | exercises):
        points = worth(exercises[name]) if name in exercises else {}
        tasks = tuple(_standing(task, each, tables["tasks"].get(task)) for task, each in points.items())
        begun = any(task in tables["tasks"] or task in tables["hints"] for task in points)
        found.append(Lesson(name, name in lessons, tasks, begun))
    return found


def summary(lessons: list[Lesson]) -> list[str]:
    """How much is done, in a line, and what to do next, in one or two more."""
    tasks = [task for lesson in lessons for task in lesson.tasks]
    states = [task.state for task in tasks]
    passed, total = _points(lessons)
    counts = ", ".join(f"{states.count(state)} {state}" for state in COLOURS)
    lines = [f"{len(tasks)} tasks: {counts}. {passed} of {total} points."]
    unfinished = next((lesson for lesson in lessons if lesson.state == "open"), None)
    if unfinished:
        lines.append(f"Next: {_next(unfinished)}")
    if "parked" in states:
        lines.append("Parked tasks: `quack-lite export` here, then on a machine with a GPU `quack-lite import FILE`")
        lines.append("and `quack-lite grade --parked`.")
    if "passed" in states:
        lines.append('Of a task that has passed, hint("TASK") shows the course\'s solution.')
    return lines


def _next(lesson: Lesson) -> str:
    work = f"work/{lesson.name}.ipynb"
    number = names.number(Path(lesson.name))
    if not lesson.begun:
        first = f"read notebooks/{lesson.name}.ipynb, then do " if lesson.written else ""
        return f"{first}{work} (`quack-lite start {number}` opens it)."
    task = next(task for task in lesson.tasks if task.state == "open")
    return f'{task.task}, in {work}; hint("{task.task}") helps.'


def _standing(task: str, points: int, entry: dict[str, Any] | None) -> Standing:
    if entry is None:
        return Standing(task, points, "open", "")
    state = "open" if entry["status"] == "failed" else entry["status"]
    words = {"passed": "", "parked": f"waits at {entry.get('gate')}, ", "failed": f"failed at {entry.get('gate')}, "}
    return Standing(task, points, state, words[entry["status"]] + entry.get("date", "")[:10])


def worth(exercise: Path) -> dict[str, int]:
    """{task: points} of an exercise, in its order."""
    import nbformat

    checks = nbformat.read(exercise, as_version=4).cells
    return {
        task: cell.metadata.get("nbgrader", {}).get("points", 0)
        for cell in checks
        if cell.cell_type == "code"
        for task in cells.checked_tasks(cell.source)
    }


def _points(lessons: list[Lesson]) -> tuple[int, int]:
    """Of the tasks that have passed, and of all."""
    tasks = [task for lesson in lessons for task in lesson.tasks]
    return sum(task.points for task in tasks if task.state == "passed"), sum(task.points for task in tasks)


def _coloured(state: str) -> str:
    return f"[{COLOURS.get(state, 'default')}]{state}[/]"
