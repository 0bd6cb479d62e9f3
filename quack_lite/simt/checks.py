"""What goes wrong in a program, and how it is said: which lanes, on which line, and what to do."""

from dataclasses import dataclass, field

import numpy as np

from quack_lite.simt.order import WARP
from quack_lite.simt.trace import Line

SENTENCES = {
    "out of bounds": "{who} asks for element {index} of {array}, which has {size}: mask lanes past the end with where=",
    "misaligned": "{who} touches {width} bytes of {array} at byte {address}, and {width} does not divide it: "
    "use a smaller vec, or start at a multiple",
    "read before written": "{who} reads {place} and nobody has written it: write it first, or mask the lane",
    "race": "{who} {does} {place}, and {other} {did} it in line {before} with nothing between that orders "
    "the two: {advice}",
    "race between CTAs": "{who} {does} {place}, and {other} {did} it in line {before}, and nothing orders CTAs "
    "of different clusters: {advice}",
    "written twice": "{who} writes {place}, and {other} wrote another value there in line {before}: "
    "which one stays is chance. Let one thread own each element",
    "not waited": "{who} {does} {place}, which {mover} of line {before} may still be on its way to: {advice}",
    "barrier not reached": "{who} never reaches {barrier}, and the others wait there for ever: "
    "let all threads reach it, and mask what they do, not the barrier",
    "mbarrier waits": "{who} waits for ever at {array}: {missing}",
    "mbarrier overfull": "{array} of CTA {cta} {excess}",
    "peer not started": "{who} {does} {array} of rank {rank}, a CTA that may not have started: "
    "b.cluster_arrive() and b.cluster_wait() after the set-up and before this line",
    "peer ended": "{who} {does} a CTA that may have ended: {advice}",
    "lane not taking part": "{who} takes a value from lane {index}, which where= leaves out of the shuffle: "
    "let all lanes of the warp shuffle",
    "never written": "{array} has {elements} that nobody wrote, the first at index {index}: "
    "look at the grid and at where= of the store",
}
KINDS = tuple(SENTENCES)


@dataclass(frozen=True)
class Report:
    """One thing that is wrong. kind: of KINDS.  line: None for what no line did.  lanes: numbered in the cluster.

    words: those of the sentence by name, as array and index.  cta, warp: of the first lane, None where there is none.
    """

    kind: str
    line: Line | None
    lanes: np.ndarray
    sentence: str
    words: dict[str, object] = field(default_factory=dict)
    cta: int | None = None
    warp: int | None = None

    def __str__(self) -> str:
        return f"line {self.line.number}: {self.sentence}" if self.line else self.sentence


class Checks:
    """The reports of a run, the first of each kind on a line."""

    def __init__(self, ranks: int, threads: int):
        self.ranks, self.threads = ranks, threads
        self.lanes = ranks * threads
        self.reports: dict[tuple[str, Line | None], Report] = {}

    def report(self, kind: str, line: Line | None, lanes=(), **words) -> None:
        """Keeps a report about these lanes (numbered through all clusters), with the words of its sentence."""
        if (kind, line) not in self.reports:
            lanes = np.asarray(lanes, dtype=np.int64)
            sentence = SENTENCES[kind].format(who=self.who(lanes), **words)
            place = self.place(lanes[0]) if len(lanes) else None
            where = {"cta": place[0], "warp": place[1] // WARP} if place else {}
            self.reports[kind, line] = Report(kind, line, np.unique(lanes % (2 * self.lanes)), sentence, words, **where)

    def place(self, lane: int) -> tuple[int, int] | None:
        """(CTA, thread) of a lane; None for an mbarrier's agent, which is the data that it counted."""
        cluster, local = divmod(int(lane), 2 * self.lanes)
        rank, thread = divmod(local, self.threads)
        return None if local >= self.lanes else (cluster * self.ranks + rank, thread)

    def name(self, lane: int) -> str:
        """As "CTA 0, warp 1, lane 3"."""
        if place := self.place(lane):
            cta, thread = place
            return f"CTA {cta}, warp {thread // WARP}, lane {thread % WARP}"
        cluster, local = divmod(int(lane), 2 * self.lanes)
        return f"an asynchronous copy to CTA {cluster * self.ranks + (local - self.lanes) % self.ranks}"

    def who(self, lanes: np.ndarray) -> str:
        """The first lane and how many more."""
        if not len(lanes):
            return ""
        more = len(np.unique(lanes)) - 1
        return self.name(lanes[0]) + (f" (and {more} more)" if more else "")
