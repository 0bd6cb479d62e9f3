"""What the learner has done so far: work/progress.json."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from quack_lite import keeping
from quack_lite.grading.feedback import Verdict

ROOT = Path(__file__).resolve().parents[2]
VERSION = 2
STATUSES = ("passed", "parked", "failed")
Tables = dict[str, Any]


class Damaged(Exception):
    """The text is no progress file of any version."""


class Progress:
    """The file, read at each question and written whole at each change. A damaged file is set aside, not lost."""

    def __init__(self, path: Path | None = None):
        self.path = path or ROOT / "work" / "progress.json"

    def read(self) -> Tables:
        """The version, and three tables by name: tasks (status, gate, date), hints (asked for), guesses (guess, unit).

        ValueError where a newer version of the course wrote it.
        """
        if not self.path.exists():
            return parse("{}")
        with keeping.alone(self.path.parent):
            return self._read()

    def record(self, verdict: Verdict) -> None:
        """Keeps a verdict. A task that has passed stays passed."""
        with self._changing() as tables:
            if tables["tasks"].get(verdict.task, {}).get("status") != "passed":
                now = datetime.now(UTC).isoformat(timespec="seconds")  # of two machines, one order
                tables["tasks"][verdict.task] = {"status": verdict.status, "gate": verdict.gate, "date": now}

    def reopen(self, slug: str) -> None:
        """Forgets how the tasks of an exercise stand, except those that have passed."""
        with self._changing() as tables:
            for task, entry in list(tables["tasks"].items()):
                if task.partition(".")[0] == slug and entry["status"] != "passed":
                    del tables["tasks"][task]

    def ask(self, task_id: str) -> int:
        """Counts a question for a hint; returns how many there were with it."""
        with self._changing() as tables:
            tables["hints"][task_id] = tables["hints"].get(task_id, 0) + 1
            return tables["hints"][task_id]

    def guess(self, title: str, guess: float, unit: str) -> None:
        """Keeps a prediction."""
        with self._changing() as tables:
            tables["guesses"][title] = {"guess": guess, "unit": unit}

    def measured(self, title: str, value: float) -> None:
        """Keeps what was measured beside the prediction of that title; does nothing where there was none."""
        with self._changing() as tables:
            if title in tables["guesses"]:
                tables["guesses"][title]["measured"] = value

    def add(self, brought: Tables) -> None:
        """Takes in what was done on another machine: of each task, hint and guess what has come further."""
        with self._changing() as tables:
            for name, further in FURTHER.items():
                for key, entry in brought[name].items():
                    mine = tables[name].get(key)
                    tables[name][key] = entry if mine is None else max(mine, entry, key=further)

    def passed(self, task_id: str) -> bool:
        """Whether the task has passed."""
        return self.read()["tasks"].get(task_id, {}).get("status") == "passed"

    def parked(self) -> list[str]:
        """The ids of the tasks that wait for a machine with more."""
        return [task for task, entry in self.read()["tasks"].items() if entry["status"] == "parked"]

    @contextmanager
    def _changing(self) -> Iterator[Tables]:
        """The tables to change; written at the end where they are others than before."""
        with keeping.alone(self.path.parent):
            tables = self._read()
            before = _text(tables)
            yield tables
            if (after := _text(tables)) != before:
                keeping.write(self.path, after.encode("utf-8", "surrogatepass"))

    def _read(self) -> Tables:
        try:
            return parse(self.path.read_bytes())
        except FileNotFoundError:
            return parse("{}")
        except Damaged:
            kept = keeping.keep_aside(self.path, self.path.parent)
            self.path.unlink()
            print(f"work/{self.path.name} could not be read: it is now work/aside/{kept.name}, and a new one begins")
            return parse("{}")


def parse(text: str | bytes) -> Tables:
    """The tables in a progress file of any version up to this one's.

    Damaged where it is none; ValueError where it is of a newer version.
    """
    try:
        tables = json.loads(text)
    except ValueError:
        raise Damaged from None
    version = tables.get("version", 1) if isinstance(tables, dict) else None
    if type(version) is not int or version < 1:
        raise Damaged
    if version > VERSION:
        raise ValueError(
            f"work/progress.json is of version {version}, and this copy of the course knows those up to {VERSION}: "
            "bring the course up to date (git pull)"
        )
    for old in range(version, VERSION):
        tables = MIGRATIONS[old](tables)
    if not _is_sound(tables):
        raise Damaged
    return tables


def _with_version(tables: Tables) -> Tables:
    """Version 1 had no version, dates without a time, and did not count questions after the last hint."""
    return {"version": 2, **{name: {} for name in FURTHER}, **tables}


def _is_sound(tables: Tables) -> bool:
    if not all(isinstance(tables.get(name), dict) for name in FURTHER):
        return False
    return (
        all(isinstance(entry, dict) and entry.get("status") in STATUSES for entry in tables["tasks"].values())
        and all(type(asked) is int for asked in tables["hints"].values())
        and all(isinstance(entry, dict) and "guess" in entry for entry in tables["guesses"].values())
    )


def _text(tables: Tables) -> str:
    return json.dumps(tables, indent=1, ensure_ascii=False) + "\n"


MIGRATIONS: dict[int, Callable[[Tables], Tables]] = {1: _with_version}  # from this version to the next

# Of two entries the one with the larger key has come further; of equals the first.
FURTHER: dict[str, Callable[[Any], Any]] = {
    "tasks": lambda entry: (entry["status"] == "passed", entry.get("date", "")),
    "hints": lambda asked: asked,
    "guesses": lambda entry: "measured" in entry,
}
