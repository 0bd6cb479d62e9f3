"""`quack-lite report`: a folder of submissions graded, and told in the terminal, as a page and for a spreadsheet."""

from __future__ import annotations

import time
from pathlib import Path

from quack_lite import keeping, machine
from quack_lite.counted import counted
from quack_lite.grading import classbook, classbook_page, names, spawn, standing, submissions
from quack_lite.grading.classbook import ClassBook
from quack_lite.grading.feedback import Verdict
from quack_lite.grading.submissions import Learner

ROOT = Path(__file__).resolve().parents[2]
USUAL = 5  # mistakes that are printed; page and CSV have all


def report(folder: str, html: str | None = None, csv: str | None = None) -> int:
    """Grades what is in the folder and prints a line a learner and the usual mistakes; returns 0 once all is graded.

    html, csv: files to write a page, and a line for each learner and task, to. What cannot be graded is named and stops
    nothing. Nobody's progress changes.
    ValueError, before anything is graded, where there is no such folder, or nothing in it, or where a file to write is
    in no folder.
    """
    targets = [Path(name) for name in (html, csv) if name]
    for target in targets:
        if target.is_dir() or not target.resolve().parent.is_dir():
            raise ValueError(f"{target} cannot be written: name a file in a folder that is there")
    everybody = submissions.learners(Path(folder))  # all is read before any of it runs
    book = classbook.book([_graded(learner) for learner in everybody], _worth())
    _summary(book)
    if html:
        _write(Path(html), classbook_page.page(book, machine.places(), time.strftime("%Y-%m-%d %H:%M")))
    if csv:
        _write(Path(csv), classbook.as_csv(book))
    return 0


def _graded(learner: Learner) -> tuple[str, list[tuple[str, Verdict]], dict[str, str]]:
    """The learner's verdicts, in processes of their own; prints a line."""
    unread = dict(learner.unread)
    try:
        verdicts = spawn.grade(list(learner.answers.values()))
    except Exception as error:  # the others' turn comes all the same
        verdicts = []
        unread |= {name: f"it could not be graded ({type(error).__name__}: {error})" for name, _ in learner.answers}
    graded = [(name, verdict) for (name, _), verdict in zip(learner.answers, verdicts, strict=False)]
    states = [verdict.status if verdict.begun else "open" for _, verdict in graded]
    counts = [f"{states.count(state)} {state}" for state in classbook.STATES if state in states]
    _say(f"{learner.name}: {', '.join(counts) or 'nothing to grade'}")
    for name, reason in unread.items():
        _say(f"  {name}: {reason}")
    return learner.name, graded, unread


def _worth() -> dict[str, int]:
    exercises = names.exercises(ROOT / "exercises")
    return {task: points for path in exercises for task, points in standing.worth(path).items()}


def _summary(book: ClassBook) -> None:
    unread = sum(len(row.unread) for row in book.rows)
    print(f"{counted(len(book.rows), 'learners')}, {counted(len(book.worth), 'tasks')}; not graded: {unread}.")
    for mistake in classbook.mistakes(book)[:USUAL]:
        _say(f"{len(mistake.learners)} × {mistake.task} at {mistake.gate}: {mistake.sentence}")


def _write(path: Path, text: str) -> None:
    try:
        keeping.write(path, text.encode("utf-8", "replace"))
    except OSError as error:
        raise ValueError(f"{path} cannot be written ({error.strerror}): give another place") from None
    print(f"{path} written.")


def _say(text: str) -> None:
    """Prints a line that may quote learners: what is no character on a terminal, or moves its cursor, becomes "?"."""
    print("".join(letter if letter.isprintable() else "?" for letter in text), flush=True)
