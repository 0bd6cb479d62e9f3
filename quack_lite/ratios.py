"""What the records in records/bench_*.json say in one line an operator and direction. Works on any laptop.

A ratio is our speed over a peer's, on the same bytes in the same run, where the peer's values are right. A case at
which ours was refused or wrong has the ratio 0.
"""

import json as json_module
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

RECORDS = Path(__file__).resolve().parents[1] / "records"
OURS, QUACK = "quack_lite", "quack-kernels"


class Case(NamedTuple):
    """over: {peer: ours / its speed}, of those with right values.  share: ours / ceiling."""

    operator: str
    direction: str
    label: str
    over: Mapping[str, float]
    share: float

    @property
    def best(self) -> float | None:
        """Ours over the fastest peer; None without one."""
        return min(self.over.values()) if self.over else None


class Line(NamedTuple):
    """Of an operator in one direction. quack, best, share: geometric means, None where there is nothing to compare.

    worst: the lowest ratio to the best peer, with its case.  lowest: the lowest share of the ceiling, with its case.
    """

    operator: str
    direction: str
    cases: int
    ceiling: str
    quack: float | None
    best: float | None
    worst: tuple[float, str] | None
    share: float
    lowest: tuple[float, str]


def read_all(folder: Path = RECORDS) -> list[dict]:
    """All records of the benchmark, by name. ValueError if there is none."""
    found = [json_module.loads(path.read_text()) for path in sorted(folder.glob("bench_*.json"))]
    if not found:
        raise ValueError(f"no record of a benchmark in {folder.name}/; `make bench` on a GPU writes them")
    return found


def cases(record: dict) -> list[Case]:
    """The cases of a record."""
    limit = record["ceilings"][ceiling(record)]
    found = []
    for row in record["rows"]:
        ours = number(row["gbps"][OURS])
        right = {name: rate for name, rate in row["gbps"].items() if name != OURS and number(rate)}
        over = {name: ours / rate for name, rate in right.items()}
        found.append(Case(record["operator"], direction(record), label(record, row), over, ours / limit))
    return found


def number(rate: float | str) -> float:
    """GB/s; 0 where there is a sentence instead."""
    return 0.0 if isinstance(rate, str) else rate


def direction(record: dict) -> str:
    """forward or backward; the oldest records do not say, and are forward."""
    return record.get("direction", "forward")


def ceiling(record: dict) -> str:
    """Which ceiling limits the operator: cross-entropy's forward writes next to nothing."""
    return "read" if (record["operator"], direction(record)) == ("cross_entropy", "forward") else "copy"


def label(record: dict, row: dict) -> str:
    """What tells a case from all others, as "softmax backward bf16, 131072 x 4096"."""
    way = " backward" * (direction(record) == "backward")
    return f"{record['operator']}{way} {record['dtype']}, {shape(row)}"


def shape(row: dict) -> str:
    """As "131072 x 4096", with the dtype of the weights where it is not float32."""
    weights = row.get("weights", "fp32")
    return f"{row['m']} x {row['n']}" + ("" if weights == "fp32" else f", {weights} weights")


def lines(records: Iterable[dict]) -> list[Line]:
    """A line for each operator and direction, in the records' order."""
    by_kind = {}
    for record in records:
        key = (record["operator"], direction(record), ceiling(record))
        by_kind.setdefault(key, []).extend(cases(record))
    return [line(*key, found) for key, found in by_kind.items()]


def line(operator: str, way: str, limit: str, found: list[Case]) -> Line:
    """The line of some cases."""
    over_quack = [case.over[QUACK] for case in found if QUACK in case.over]
    over_best = [(case.best, case.label) for case in found if case.over]
    return Line(
        operator,
        way,
        len(found),
        limit,
        mean(over_quack),
        mean([ratio for ratio, _ in over_best]),
        min(over_best, default=None),
        mean([case.share for case in found]),
        min((case.share, case.label) for case in found),
    )


def mean(values: list[float]) -> float | None:
    """The geometric mean, 0 if one is 0, None of nothing."""
    if not values:
        return None
    return math.exp(sum(map(math.log, values)) / len(values)) if all(values) else 0.0


def shown(value: float | None) -> str:
    """Three decimals, or a dash."""
    return "-" if value is None else f"{value:.3f}"


def total(records: Iterable[dict]) -> str:
    """The last line of the summary."""
    found = [case for record in records for case in cases(record)]
    over_quack = mean([case.over[QUACK] for case in found if QUACK in case.over])
    worst, where = min(((case.best, case.label) for case in found if case.over), default=(None, "no peer"))
    return f"geomean vs quack {shown(over_quack)}, worst vs best peer {shown(worst)} ({where}), cases {len(found)}"


def as_json(records: Iterable[dict]) -> str:
    """Records as one JSON document, a list."""
    return json_module.dumps(list(records), indent=1)


def show(json: bool = False) -> int:
    """Prints the table and the total, or the records as JSON; 0. ValueError without records."""
    from rich.console import Console
    from rich.table import Table

    records = read_all()
    if json:
        print(as_json(records))
        return 0
    table = Table("operator", "cases", "vs QuACK", "vs best peer", "worst vs best peer", "share of ceiling", "lowest")
    for found in lines(records):
        worst = f"{shown(found.worst[0])} ({found.worst[1]})" if found.worst else "-"
        lowest = f"{shown(found.lowest[0])} ({found.lowest[1]})"
        share = f"{shown(found.share)} of {found.ceiling}"
        name = f"{found.operator} {found.direction}"
        table.add_row(name, str(found.cases), shown(found.quack), shown(found.best), worst, share, lowest)
    console = Console(width=200, highlight=False, soft_wrap=True)
    console.print(table)
    console.print(total(records))
    return 0
