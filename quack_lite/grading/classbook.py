"""What a class has done: a mark for each learner and task, the usual mistakes, and all of it for a spreadsheet."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from io import StringIO

from quack_lite.grading.feedback import Verdict

STATES = ("passed", "parked", "failed", "open")  # the best first
COLUMNS = ("learner", "task", "state", "points", "of", "gate", "sentence", "notebook")
VARYING = re.compile(r"`[^`]*`|'[^']*'|\[[^\]]*\]|[-+]?\d+(?:[.,]\d+)*(?:e[-+]?\d+)?|[-+]?\b(?:inf|nan)\b")
PLURAL = re.compile(r"(?<=… )(\w+)s\b")  # of what a value counts
FORMULA = ("=", "+", "-", "@", "\t", "\r")


@dataclass(frozen=True)
class Mark:
    """state: "passed", "parked", "failed", or "open" (handed in and not begun).  worth: the points of a pass."""

    task: str
    state: str
    worth: int
    gate: str = ""
    sentence: str = ""
    notebook: str = ""

    @property
    def points(self) -> int:
        return self.worth if self.state == "passed" else 0


@dataclass(frozen=True)
class Row:
    """A learner.  marks: {task: mark}, without the tasks of exercises that were not handed in.

    unread: {notebook: why it could not be graded}.
    """

    learner: str
    marks: Mapping[str, Mark]
    unread: Mapping[str, str]

    @property
    def points(self) -> int:
        return sum(mark.points for mark in self.marks.values())

    def count(self, state: str) -> int:
        """How many tasks are in this state."""
        return sum(mark.state == state for mark in self.marks.values())


@dataclass(frozen=True)
class Mistake:
    """A sentence that failed answers of a task were told, in its most frequent wording, and who was told so."""

    task: str
    gate: str
    sentence: str
    learners: tuple[str, ...]


@dataclass(frozen=True)
class ClassBook:
    """rows: a learner each.  worth: {task: points} of the exercises that anybody handed in, in the course's order."""

    rows: tuple[Row, ...]
    worth: Mapping[str, int]


def book(handed_in: Iterable[tuple[str, list[tuple[str, Verdict]], Mapping[str, str]]], worth: Mapping[str, int]):
    """The ClassBook of (learner, [(notebook, verdict)], {notebook: why it was not graded}).

    worth: {task: points} of the course. Of a task that was handed in twice the better answer counts; one that an
    exercise has and the learner's notebook does not check is open.
    """
    rows = tuple(Row(learner, _marks(graded, worth), unread) for learner, graded, unread in handed_in)
    begun = {_slug(task) for row in rows for task in row.marks}
    return ClassBook(rows, {task: points for task, points in worth.items() if _slug(task) in begun})


def _marks(graded: list[tuple[str, Verdict]], worth: Mapping[str, int]) -> dict[str, Mark]:
    begun = {_slug(verdict.task) for _, verdict in graded}
    best = {task: Mark(task, "open", points) for task, points in worth.items() if _slug(task) in begun}
    for notebook, verdict in graded:
        state = verdict.status if verdict.begun else "open"
        mark = Mark(verdict.task, state, worth.get(verdict.task, 0), verdict.gate, verdict.sentence, notebook)
        old = best.get(verdict.task)
        if old is None or not old.notebook or STATES.index(state) < STATES.index(old.state):
            best[verdict.task] = mark
    return best


def mistakes(book: ClassBook) -> list[Mistake]:
    """The sentences of failed gates by how many learners were told them.

    The values in a sentence do not count, nor whether what they count is one or many.
    """
    told: dict[tuple[str, str, str], list[tuple[str, str]]] = {}
    for row in book.rows:
        for mark in row.marks.values():
            if mark.state == "failed":
                key = (mark.task, mark.gate, PLURAL.sub(r"\1", VARYING.sub("…", mark.sentence)))
                told.setdefault(key, []).append((row.learner, mark.sentence))
    found = []
    for (task, gate, _), who in told.items():
        usual = Counter(sentence for _, sentence in who).most_common(1)[0][0]
        found.append(Mistake(task, gate, usual, tuple(name for name, _ in who)))
    return sorted(found, key=lambda mistake: (-len(mistake.learners), mistake.task, mistake.sentence))


def as_csv(book: ClassBook) -> str:
    """A line for each learner and task, and one for each notebook that was not graded (state "unread")."""
    text = StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(COLUMNS)
    for row in book.rows:
        for mark in row.marks.values():
            told = (mark.state, mark.points, mark.worth, mark.gate, mark.sentence, mark.notebook)
            lines.writerow(map(_plain, (row.learner, mark.task, *told)))
        for notebook, reason in row.unread.items():
            lines.writerow(map(_plain, (row.learner, "", "unread", 0, 0, "", reason, notebook)))
    return text.getvalue()


def _plain(field: str | int) -> str | int:
    """A field that no spreadsheet takes for a formula: names and sentences are the learners'."""
    return f"'{field}" if isinstance(field, str) and field.startswith(FORMULA) else field


def _slug(task: str) -> str:
    return task.partition(".")[0]
