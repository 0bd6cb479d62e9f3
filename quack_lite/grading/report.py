"""What `quack-lite grade` does: the answers in work/, or in other notebooks, graded, kept, and told."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from quack_lite.grading import names, notebook, results, spawn, tasks
from quack_lite.grading.progress import Progress
from quack_lite.grading.results import Results

ROOT = Path(__file__).resolve().parents[2]


def grade(
    targets: Sequence[str] = (),
    *,
    proofs: bool = False,
    parked: bool = False,
    json: bool = False,
    junit: str | None = None,
) -> int:
    """Grades what is in work/ and prints a table; returns the exit code, 1 where an answer failed or there is none.

    targets: exercises (05, bytes_in_flight), tasks (bytes_in_flight.cast) or notebooks' paths; all of work/ without.
    Only what is in work/ counts for the learner's progress.
    proofs: grades solutions, stubs and planted wrong answers instead.  parked: only tasks that wait for more hardware.
    json: prints JSON instead of a table.  junit: a file to write the results to, in JUnit's XML.
    ValueError for a target that there is not, and for a file that cannot be written.
    """
    if proofs:
        if json or junit:
            raise ValueError("--proofs prints a table only: leave --json and --junit out")
        from quack_lite.grading.proofs import prove

        return max(prove(target) for target in targets or [None])
    found = _grade(targets, Progress().parked() if parked else None)
    if junit:
        results.write_junit(found, Path(junit))
    if json:
        print(results.as_json(found))
    elif found.graded:
        results.show(found)
    else:
        print("no task is parked" if parked else "no answers in work/: quack-lite start NN copies an exercise there")
    for path, reason in found.unread.items():
        print(f"{path}: {reason} and was left out; quack-lite reset NN restores an exercise", file=sys.stderr)
    return int(found.count("failed") > 0 or bool(found.unread) or not (found.graded or parked))


def _grade(targets: Sequence[str], only: Sequence[str] | None) -> Results:
    """The verdicts, kept in the learner's progress where the notebook is in work/.  only: the tasks to take, or all."""
    answers, unread = _answers(targets)
    wanted = {key: answer for key, answer in answers.items() if only is None or answer.task in only}
    verdicts = spawn.grade(list(wanted.values()))
    for (path, _), verdict in zip(wanted, verdicts, strict=True):
        if path.parent == (ROOT / "work").resolve():
            Progress().record(verdict)
    graded = [(_short(path), verdict) for (path, _), verdict in zip(wanted, verdicts, strict=True)]
    return Results(graded, {_short(path): reason for path, reason in unread.items()})


def _answers(targets: Sequence[str]) -> tuple[dict[tuple[Path, str], spawn.Answer], dict[Path, str]]:
    """{(notebook, task): answer}, of a task that is checked twice the last; and {notebook: why it cannot be read}."""
    answers, unread = {}, {}
    for target in targets or [None]:
        of_task = target is not None and "." in target and not target.endswith(".ipynb")
        task = tasks.find(target).id if of_task else None
        for path in _notebooks(target):
            try:
                found = notebook.answers(path)
            except ValueError as error:
                unread[path] = str(error)
                continue
            answers |= {(path, answer.task): answer for answer in found if task in (None, answer.task)}
    return answers, unread


def _notebooks(target: str | None) -> list[Path]:
    if target is not None and target.endswith(".ipynb"):
        if not Path(target).exists():
            raise ValueError(f"there is no file {target}")
        return [Path(target).resolve()]
    every = names.exercises((ROOT / "work").resolve())
    if target is None:
        return every
    wanted = target.partition(".")[0]
    found = [path for path in every if names.means(wanted, path)]
    if not found:
        there = ", ".join(path.stem for path in every) or "nothing yet"
        raise ValueError(f"work/ has no exercise {target!r} (it has {there}): quack-lite start NN copies one there")
    return found


def _short(path: Path) -> str:
    work = (ROOT / "work").resolve()
    return f"work/{path.name}" if path.parent == work else str(path)
