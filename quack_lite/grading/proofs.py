"""Proof that the gates hold: solutions pass, stubs fail, planted wrong answers are caught where they should be."""

from __future__ import annotations

import difflib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from quack_lite import machine
from quack_lite.counted import counted
from quack_lite.grading import names, notebook, spawn, tasks
from quack_lite.grading.derive import stub
from quack_lite.grading.feedback import Verdict
from quack_lite.grading.task import Task
from quack_lite.loading import load

ROOT = Path(__file__).resolve().parents[2]
LINES_OFF = 3


@dataclass(frozen=True)
class WrongAnswer:
    """A mistake that people make, planted in the solution of `task`.

    changes: (text of the solution, what stands there instead), at most LINES_OFF lines together.
    gate: where it is caught.  sentence: a part of what it is told.  easy: where it is right, or what it gets past.
    """

    task: str
    name: str
    changes: tuple[tuple[str, str], ...]
    gate: str
    sentence: str
    easy: str

    def apply(self, source: str) -> str:
        """The cell with the mistake in it; cells without the text stay as they are."""
        for right, wrong in self.changes:
            source = source.replace(right, wrong)
        return source


@dataclass(frozen=True)
class Proof:
    """One candidate, what it should come to on this machine, and what it came to."""

    task: Task
    candidate: str
    kind: str
    wanted: str
    verdict: Verdict
    holds: bool


def prove(target: str | None = None) -> int:
    """Prints a table of all candidates and the two closing lines; returns 0 if every proof holds, otherwise 1.

    ValueError where this copy of the course has no solutions, or no exercise of that name.
    """
    if not names.exercises(ROOT / "solutions"):
        raise ValueError(
            "--proofs needs solutions/ and tests/, which a copy for students has not: take the whole course"
        )
    slugs = [
        slug for slug in tasks.slugs() if target is None or names.means(target.partition(".")[0], solution_path(slug))
    ]
    if not slugs:
        raise ValueError(f"no exercise is called {target!r}: give its number or its name, as 05 or bytes_in_flight")
    proofs = [proof for slug in slugs for proof in prove_exercise(slug)]
    _show(proofs)
    for line in closing_lines(proofs, machine.places()):
        print(line)
    return int(not all(proof.holds for proof in proofs))


def prove_exercise(slug: str) -> list[Proof]:
    """Every candidate of one exercise through the gates that this machine has."""
    path = solution_path(slug)
    candidates = [("solution", "solution", answer, None) for answer in notebook.answers(path)]
    candidates += [("stub", "stub", answer, None) for answer in notebook.answers(path, stub)]
    for wrong in wrong_answers(slug):
        [answer] = [answer for answer in notebook.answers(path, wrong.apply) if answer.task == wrong.task]
        candidates.append(("wrong", wrong.name, answer, wrong))
    verdicts = spawn.grade([answer for _, _, answer, _ in candidates])
    here = machine.places()
    pairs = zip(candidates, verdicts, strict=True)
    return [_judge(kind, name, wrong, verdict, here) for (kind, name, _, wrong), verdict in pairs]


def _judge(kind: str, name: str, wrong: WrongAnswer | None, verdict: Verdict, here: dict[str, bool]) -> Proof:
    task = tasks.find(verdict.task)
    decided = [gate.name for gate in task.gates if here[gate.place]]
    whole = len(decided) == len(task.gates)
    if kind == "stub":
        wanted = "failed" if decided else "parked"
        return Proof(task, name, kind, wanted, verdict, verdict.status == wanted)
    if kind == "solution" or wrong.gate not in decided:
        wanted = "passed" if kind == "solution" and whole else "parked"
        return Proof(task, name, kind, wanted, verdict, verdict.status == wanted)
    caught = verdict.status == "failed" and verdict.gate == wrong.gate and wrong.sentence in verdict.sentence
    return Proof(task, name, kind, f"failed at {wrong.gate}", verdict, caught)


def closing_lines(proofs: list[Proof], here: dict[str, bool]) -> tuple[str, str]:
    """The two lines that end the report; the second counts only what this machine's gates can decide."""
    solutions = [proof for proof in proofs if proof.kind == "solution"]
    wrong = [proof for proof in proofs if proof.kind == "wrong"]
    later = [proof for proof in solutions if not all(here[gate.place] for gate in proof.task.gates)]
    decided = [proof for proof in solutions if any(here[gate.place] for gate in proof.task.gates)]
    planted = [proof for proof in wrong if proof.wanted != "parked"]
    caught = sum(proof.holds for proof in planted)
    passed = sum(proof.holds for proof in decided)
    waiting = counted(len(wrong) - len(planted), "planted wrong answers")
    return (
        f"parked here: {counted(len(later), 'tasks')} for later gates, {waiting}",
        f"{counted(len(decided), 'tasks')}, {counted(len(planted), 'planted wrong answers')}, {caught} caught, "
        f"solutions passed {passed} of {len(decided)}",
    )


def wrong_answers(slug: str) -> tuple[WrongAnswer, ...]:
    """The planted wrong answers of an exercise, from tests/wrong_answers/SLUG.py."""
    path = ROOT / "tests" / "wrong_answers" / f"{slug}.py"
    return load(f"wrong_answers_{slug}", path).WRONG_ANSWERS


def solution_path(slug: str) -> Path:
    """solutions/NN_SLUG.ipynb, or project_X_SLUG.ipynb."""
    [path] = (path for path in names.exercises(ROOT / "solutions") if names.slug(path) == slug)
    return path


def lines_off(right: str, wrong: str) -> int:
    """How many lines of `right` are missing, or changed, or how many are new in `wrong`: the larger number."""
    marks = Counter(line[0] for line in difflib.ndiff(right.splitlines(), wrong.splitlines()))
    return max(marks["-"], marks["+"])


def _show(proofs: list[Proof]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table("task", "candidate", "wanted here", "came to", "what it is told", title="Proofs")
    for proof in proofs:
        verdict = proof.verdict
        came = f"{verdict.status} at {verdict.gate}" if verdict.gate else verdict.status
        mark = "[green]✓[/]" if proof.holds else "[red]✗[/]"
        table.add_row(proof.task.id, proof.candidate, proof.wanted, f"{mark} {came}", Text(verdict.sentence))
    Console(width=150).print(table)
