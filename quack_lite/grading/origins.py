"""Where in a program something comes from: the first lane, the line, and the request that an access map shows."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np

from quack_lite.simt import Event, Report, Request, Run
from quack_lite.simt.order import WARP

FAR = np.iinfo(np.int64).max


class Origin(NamedTuple):
    """lane: as "CTA 0, warp 1, lane 3".  line: its text.  request: of that lane's warp."""

    lane: str
    line: str
    request: Request


def of_report(run: Run, report: Report) -> Request | None:
    """What the warp of the first bad lane last asked of the array that the report names, on its line; None: nothing."""
    if report.cta is None:
        return None
    asked = run.requests(report.line.number, cta=report.cta, warp=report.warp)
    named = [request for request in asked if request.array == report.words.get("array")]
    return named[-1] if named else None


def with_source(report: Report) -> str:
    """The report's sentence with the text of the lines that it names by number: who reads it has cells, no file."""
    numbered = re.compile(r"\bline (\d+)\b")
    return numbered.sub(lambda match: f"`{report.line._replace(number=int(match[1])).text}`", report.sentence)


def store_at(run: Run, address: int) -> Origin | None:
    """The last store to global memory that wrote this byte or, where none did, came nearest; None without a store."""
    nearest, best = None, FAR
    for event in run.events:
        if event.verb == "st.global" and event.active.any():
            beyond = np.maximum(event.address - address, address - event.address - event.width + 1).clip(0)
            far = np.where(event.active, beyond, FAR)
            lane = int(far.argmin())
            if far[lane] <= best:
                nearest, best = (event, lane), far[lane]
    return nearest and _at(*nearest)


def costliest(run: Run, verb: str, what: str) -> Origin:
    """The dearest request of the line that makes most of `what`, a field of Counts, by this PTX stem."""
    lines = {line: counts for (line, stem), counts in run.counts.items() if stem == verb}
    line = max(lines, key=lambda line: getattr(lines[line], what))
    events = [event for event in run.events if (event.line, event.verb) == (line, verb) and event.active.any()]
    costs = [event.wavefronts if what in ("wavefronts", "conflicts") else event.sectors for event in events]
    dearest = int(np.argmax([cost.max() for cost in costs]))
    return _first_of(events[dearest], int(costs[dearest].argmax()))


def unstored(run: Run, begin: int, end: int) -> int | None:
    """Of the bytes from `begin` up to `end` of global memory, the number of the first that no store has reached."""
    stored = np.zeros(end - begin, dtype=bool)
    for event in run.events:
        if event.verb == "st.global":
            reached = (event.address[event.active, None] + np.arange(event.width)).ravel() - begin
            stored[reached[(reached >= 0) & (reached < end - begin)]] = True
    return None if stored.all() else int(stored.argmin())


def late_load(run: Run) -> Origin | None:
    """The largest load that begins only behind a store of its cluster; where none does, the last load."""
    stored, late, loads = set(), [], []
    for event in run.events:
        if event.verb == "st.global":
            stored.add(event.cta)
        elif event.space == "global" and event.active.any():
            loads.append(event)
            late += [event] * (event.cta in stored)
    if not loads:
        return None
    largest = max(late, key=lambda event: event.active.sum() * event.width, default=loads[-1])
    return _first_of(largest, int(largest.asking.argmax()))


def _first_of(event: Event, warp: int) -> Origin:
    return _at(event, warp * WARP + int(event.active[warp * WARP :].argmax()))


def _at(event: Event, lane: int) -> Origin:
    """lane: numbered through the cluster."""
    rank, thread = divmod(lane, event.threads)
    name = f"CTA {event.cta + rank}, warp {thread // WARP}, lane {thread % WARP}"
    return Origin(name, event.line.text, event.request(lane // WARP))
