"""What the learner has done so far: work/progress.json."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

from quack_lite.grading.feedback import Verdict

ROOT = Path(__file__).resolve().parents[2]


class Progress:
    """The file, read at each question and written at each change. A damaged file is set aside, not lost."""

    def __init__(self, path: Path | None = None):
        self.path = path or ROOT / "work" / "progress.json"

    def read(self) -> dict[str, dict[str, Any]]:
        """Three tables by name: tasks (status, gate, date), hints (how many were shown), guesses (guess, unit)."""
        tables: dict[str, dict[str, Any]] = {"tasks": {}, "hints": {}, "guesses": {}}
        if self.path.exists():
            try:
                tables |= json.loads(self.path.read_text(encoding="utf-8"))
            except (ValueError, TypeError):
                self.path.replace(self.path.with_suffix(".damaged.json"))
        return tables

    def record(self, verdict: Verdict) -> None:
        """Keeps a verdict. A task that has passed stays passed."""
        tables = self.read()
        if tables["tasks"].get(verdict.task, {}).get("status") == "passed":
            return
        entry = {"status": verdict.status, "gate": verdict.gate, "date": date.today().isoformat()}
        tables["tasks"][verdict.task] = entry
        self._write(tables)

    def next_hint(self, task_id: str, of: int) -> int:
        """Which hint to show now, from 1 up to `of`, where it stays."""
        tables = self.read()
        number = min(tables["hints"].get(task_id, 0) + 1, of)
        tables["hints"][task_id] = number
        self._write(tables)
        return number

    def guess(self, title: str, guess: float, unit: str) -> None:
        """Keeps a prediction."""
        tables = self.read()
        tables["guesses"][title] = {"guess": guess, "unit": unit}
        self._write(tables)

    def measured(self, title: str, value: float) -> None:
        """Keeps what was measured beside the prediction of that title; does nothing where there was none."""
        tables = self.read()
        if title in tables["guesses"]:
            tables["guesses"][title]["measured"] = value
            self._write(tables)

    def parked(self) -> list[str]:
        """The ids of the tasks that wait for a machine with more."""
        return [task for task, entry in self.read()["tasks"].items() if entry["status"] == "parked"]

    def _write(self, tables: dict[str, dict[str, Any]]) -> None:
        self.path.parent.mkdir(exist_ok=True)
        part = self.path.with_suffix(".part")
        part.write_text(json.dumps(tables, indent=1) + "\n", encoding="utf-8")
        part.replace(self.path)
