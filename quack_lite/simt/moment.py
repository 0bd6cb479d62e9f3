"""The present of a cluster: which verb on which line it executes, and what that verb's accesses clash with."""

import functools
import sys

import numpy as np

from quack_lite.simt.checks import Checks
from quack_lite.simt.order import WARP, Order
from quack_lite.simt.trace import Event, Line

WAITS = {
    "cp.async": "b.commit_group() and b.wait_group(n) before it, then b.bar_sync() for other threads",
    "cp.async.bulk": "m.wait(phase) before it",
    "st.async": "m.wait(phase) before it",
}
BETWEEN = (
    "b.bar_warp_sync() between the lines",
    "b.bar_sync() between the lines",
    "b.cluster_arrive() and b.cluster_wait() between the lines",
    "let one CTA own a location, or use two launches",
)
AFTER_WAIT = "m.wait(phase) in every thread that reads, or a barrier after it"


def verb(method):
    """A method that programs call: it takes one tick, and its reports name the line of the program it stands on."""

    @functools.wraps(method)
    def called(self, *args, **keywords):
        caller = sys._getframe(1)
        self.now.tick(Line(caller.f_code.co_filename, caller.f_lineno))
        return method(self, *args, **keywords)

    return called


class Moment:
    """order: of the cluster's accesses.  place (span,): the sequence in which its warps run, None for none.

    events: of the whole run; their times count on from cluster to cluster.
    """

    def __init__(self, order: Order, checks: Checks, events: list[Event], lines: list[Line], place=None):
        self.order, self.checks, self.events, self.lines, self.place = order, checks, events, lines, place

    @property
    def time(self) -> int:
        return len(self.lines) - 1

    @property
    def line(self) -> Line:
        return self.lines[-1]

    def tick(self, line: Line) -> None:
        self.lines.append(line)

    def runs_before(self, one, other) -> np.ndarray:
        """Whether lane `one` runs before lane `other`; those of other clusters have run before these."""
        return self._turn(one) < self._turn(other)

    def _turn(self, lane):
        local = lane - self.order.first
        mine = (local >= 0) & (local < self.order.span)
        return np.where(mine, self.place[np.where(mine, local, 0)], -1)

    def report(self, kind: str, lanes, **words) -> None:
        self.checks.report(kind, self.line, lanes, **words)

    def race(self, memory, which, at, lane, other, time, does, did) -> None:
        """Of `lane` with `other`, who did something there at `time`. Those who are farthest apart are named."""
        hits = np.flatnonzero(which)
        groups = (WARP, self.order.threads, self.order.span)
        apart = sum((lane[hits] // size != other[hits] // size).astype(int) for size in groups)
        hits = hits[np.argsort(-apart, kind="stable")]
        kind = "race between CTAs" if apart.max() == len(groups) else "race"
        copied = other[hits[0]] % self.order.span >= self.order.lanes
        advice = AFTER_WAIT if copied else BETWEEN[apart.max()]
        self.report(kind, lane[hits], does=does, did=did, advice=advice, **self._words(memory, hits, at, other, time))

    def overwritten(self, memory, which, at, lane, other, time) -> None:
        """Another value was written there at `time`, by `other`."""
        if memory.space == "shared":
            return self.race(memory, which, at, lane, other, time, "overwrites", "wrote")
        hits = np.flatnonzero(which)
        self.report("written twice", lane[hits], **self._words(memory, hits, at, other, time))

    def not_waited(self, memory, which, at, lane, time, does) -> None:
        """What an asynchronous copy brings is read or overwritten."""
        hits = np.flatnonzero(which)
        verb = next(event.verb for event in reversed(self.events) if event.time == time[hits[0]])
        words = self._words(memory, hits, at, lane, time)
        self.report("not waited", lane[hits], does=does, mover=verb, advice=WAITS[verb], **words)

    def left_behind(self, transfer, abroad: bool) -> None:
        """A copy that the program does not wait for; abroad: to another CTA."""
        line, time = self.lines[transfer.time], np.full(len(transfer.at), transfer.time)
        if abroad:
            advice = "that CTA must wait for the bytes, with m.wait(phase)"
            return self.checks.report("peer ended", line, transfer.lane, does="writes to", advice=advice)
        words = self._words(transfer.memory, [0], transfer.at, transfer.lane, time)
        words |= {"mover": transfer.verb, "advice": WAITS[transfer.verb]}
        self.checks.report("not waited", line, transfer.lane, does="ends and leaves", **words)

    def uninitialised(self, mbarrier, lane, thread) -> None:
        """Nothing shows `lane` (k,) that `thread` (k,), the first of its CTA, has initialised the mbarrier."""
        other, before = self.checks.name(thread[0]), self.lines[mbarrier.time].number
        words = {
            "array": mbarrier.name,
            "place": mbarrier.name,
            "does": "uses",
            "did": "initialised",
            "other": other,
            "before": before,
        }
        self.report("race", lane, advice=BETWEEN[1], **words)

    def _words(self, memory, hits, at, other, time):
        first = hits[0]
        line = self.lines[time[first]].number
        return memory.place(at[first]) | {"other": self.checks.name(other[first]), "before": line}
