"""The table with three columns, one for each place a learner can be: Model, Compiler, GPU."""

import html
from collections.abc import Mapping
from dataclasses import dataclass

from quack_lite import facts
from quack_lite.counted import counted
from quack_lite.simt import Run, counters

HEADS = ("", "Model count", "in the PTX", "GPU counter")
WITHOUT = {"Model count": "no program", "in the PTX": "not compiled", "GPU counter": "not recorded"}
NOTHING = "-"
FIRST = ("requests", "sectors", "wavefronts", "conflicts")


@dataclass(frozen=True)
class PlacesTable:
    """Rows of (PTX stem, Model count, in the PTX, GPU counter), all text; heads: of the four columns."""

    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def __repr__(self) -> str:
        lines = [self.heads, *self.rows]
        widths = [max(len(line[i]) for line in lines) for i in range(len(self.heads))]
        return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{html.escape(text)}</th>" for text in self.heads)
        body = "".join(f"<tr>{''.join(f'<td>{html.escape(text)}</td>' for text in row)}</tr>" for row in self.rows)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def places_table(run: Run | None = None, ptx: str | None = None, pattern: str | None = None) -> PlacesTable:
    """What a program did on the Model, what stands in its kernel's PTX, and what a GPU counted; one row a PTX stem.

    run: of the program.  ptx: the text, as in Built.ptx; an instruction in a loop stands there once.
    pattern: a name in records/simt/counters.json (KeyError for another), whose device and date the head says.
    A column that is not given says so in its head.
    """
    model = None if run is None else {stem: said(what) for stem, what in counters.counts(run).items()}
    text = None if ptx is None else {stem: str(number) for stem, number in facts.stems(ptx).items()}
    gpu, where = (None, "") if pattern is None else recorded(pattern)
    columns = (model, text, gpu)
    heads = [
        head if column is not None else f"{head}: {WITHOUT[head]}"
        for head, column in zip(HEADS[1:], columns, strict=True)
    ]
    heads[-1] += where
    return PlacesTable(("", *heads), tuple(rows(columns)))


def rows(columns: tuple[Mapping | None, ...]) -> list[tuple[str, ...]]:
    """A row for each stem that any of the columns has."""
    given = [column if column is not None else {} for column in columns]
    stems = dict.fromkeys([*facts.STEMS, *(stem for column in given for stem in column)])
    found = [(stem, *(column.get(stem, NOTHING) for column in given)) for stem in stems]
    return [row for row in found if any(cell != NOTHING for cell in row[1:])]


def recorded(pattern: str) -> tuple[dict[str, str], str]:
    """({stem: what the GPU counted}, where and when)."""
    record = counters.read()
    found = {row["name"]: row["gpu"] for row in record["patterns"]}
    if pattern not in found:
        raise KeyError(f"no pattern {pattern!r} in the record; there are {', '.join(found)}")
    gpu = {stem: said(what) for stem, what in found[pattern].items() if stem in facts.STEMS and any(what.values())}
    return gpu, f" ({record['device']}, {record['date']})"


def said(counts: Mapping[str, int]) -> str:
    """As "1 request, 4 sectors"; counts of 0 are left out."""
    ordered = [(what, counts[what]) for what in dict.fromkeys([*FIRST, *counts]) if counts.get(what)]
    return ", ".join(counted(number, what) for what, number in ordered) or "0"
