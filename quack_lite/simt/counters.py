"""The Model's counts beside a GPU's counters: the record that quack_lite.bench.counters wrote, read and compared."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from quack_lite import simt
from quack_lite.simt.patterns import PATTERNS, Pattern, run

RECORD = Path(__file__).resolve().parents[2] / "records" / "simt" / "counters.json"
MAKE_ONE = "python -m quack_lite.bench.counters, on a machine with a Hopper GPU and Nsight Compute, writes it"
MEMORY = {
    "ld.global": ("requests", "sectors"),
    "st.global": ("requests", "sectors"),
    "ld.shared": ("requests", "wavefronts", "conflicts"),
    "st.shared": ("requests", "wavefronts", "conflicts"),
}


class Row(NamedTuple):
    """One count of a pattern.  gpu: None where the record has no counter for it."""

    stem: str
    what: str
    model: int
    gpu: int | None

    @property
    def equal(self) -> bool:
        return self.gpu is None or self.model == self.gpu


def read(path: Path | None = None) -> dict:
    """The record. FileNotFoundError with what makes one, where there is none."""
    path = path or RECORD
    if not path.is_file():
        raise FileNotFoundError(f"no record of a GPU's counters at {'/'.join(path.parts[-3:])}: {MAKE_ONE}")
    return json.loads(path.read_text())


def counts(run: simt.Run) -> dict[str, dict[str, int]]:
    """{PTX stem: {what: count}} of what a run did."""
    totals = {verb: run.total(verb) for verb in dict.fromkeys(verb for _, verb in run.counts)}
    return {
        verb: {what: getattr(total, what) for what in MEMORY.get(verb, ("requests",))} for verb, total in totals.items()
    }


def rows(model: Mapping, gpu: Mapping) -> list[Row]:
    """A row for each count of the stems that the program uses, and for what only the GPU counted."""
    used = [
        Row(stem, what, number, gpu.get(stem, {}).get(what))
        for stem, numbers in model.items()
        for what, number in numbers.items()
    ]
    others = [
        Row(stem, what, 0, number)
        for stem in MEMORY.keys() - model.keys()
        for what, number in gpu.get(stem, {}).items()
        if number and what in MEMORY[stem]
    ]
    return used + sorted(others)


def compare(record: Mapping) -> dict[str, list[Row]]:
    """{pattern: its rows}, of the patterns that the record has. ValueError where it was read from other patterns."""
    recorded = {row["name"]: row for row in record["patterns"]}
    return {pattern.name: rows(counts(run(pattern)), gpu_of(pattern, recorded)) for pattern in PATTERNS}


def gpu_of(pattern: Pattern, recorded: Mapping) -> Mapping:
    """The counters of a pattern. ValueError if the record lacks it, or has it with other numbers."""
    row = recorded.get(pattern.name)
    if row is None or row["numbers"] != dict(pattern.numbers):
        raise ValueError(f"the record is older than the pattern {pattern.name!r}: {MAKE_ONE}")
    return row["gpu"]
