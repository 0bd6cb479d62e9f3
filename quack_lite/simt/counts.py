"""What the lines of a program cost: requests, bytes, wavefronts. Counts are not times."""

from collections import defaultdict
from dataclasses import astuple, dataclass, fields

import numpy as np

from quack_lite.simt import traffic
from quack_lite.simt.trace import Event, Line

LOADS = {"ld.global"}
ON = LOADS | {"cp.async", "cp.async.commit_group", "cp.async.bulk", "mbarrier.expect_tx", "ld.shared"}
BARRIERS = {"bar.sync", "bar.warp.sync", "barrier.cluster.wait", "mbarrier.try_wait"}


@dataclass(frozen=True)
class Counts:
    """Sums over all CTAs, but for in_flight.

    requests: one an instruction and warp that has a lane to serve.  sectors, bytes_moved: of global memory.
    bytes_asked: by the lanes.  wavefronts, conflicts: of shared memory, and how many of them other lanes' banks cost.
    shuffles: of 32 bits, a warp each.  barriers: one a warp that waits.  dsmem_bytes: to or from another CTA.
    in_flight: the most bytes of global memory that one CTA has on their way just after the line; at most so many, since
    the model lets loads overlap until the next verb that is no load, and a value may be needed before that.
    """

    requests: int = 0
    sectors: int = 0
    bytes_asked: int = 0
    bytes_moved: int = 0
    wavefronts: int = 0
    conflicts: int = 0
    shuffles: int = 0
    barriers: int = 0
    dsmem_bytes: int = 0
    in_flight: int = 0

    def __add__(self, other: "Counts") -> "Counts":
        *sums, in_flight = (one + two for one, two in zip(astuple(self), astuple(other), strict=True))
        return Counts(*sums, max(self.in_flight, other.in_flight))

    def __str__(self) -> str:
        named = [(field.name.replace("_", " "), getattr(self, field.name)) for field in fields(self)]
        return ", ".join(f"{name} {value}" for name, value in named if value) or "no traffic"


def tally(events: list[Event]) -> dict[tuple[Line, str], Counts]:
    """The counts of each line and verb, in the order in which they first came."""
    found = defaultdict(Counts)
    flights = {}
    for event in events:
        flight = flights.setdefault(event.cta, Flight(len(event.active) // event.threads))
        found[event.line, event.verb] += cost(event, flight.after(event))
    return dict(found)


def cost(event: Event, in_flight: int) -> Counts:
    """Of one event; in_flight: bytes on their way after it."""
    asking, lanes = int(event.asking.sum()), int(event.active.sum())
    if event.address is None:
        words = max(1, event.itemsize // 4) * (event.values.shape[1] if np.ndim(event.values) > 1 else 1)
        shuffles = asking * words if event.verb.startswith("shfl") else 0
        return Counts(asking, shuffles=shuffles, barriers=asking * (event.verb in BARRIERS), in_flight=in_flight)
    sectors = int(event.sectors.sum())
    abroad = event.source is not None and event.space == "peer"
    away = int((event.active & (event.source != np.arange(len(event.active)) // event.threads)).sum()) if abroad else 0
    return Counts(
        asking,
        sectors,
        lanes * event.width,
        sectors * traffic.SECTOR,
        int(event.wavefronts.sum()),
        int(event.conflicts.sum()),
        dsmem_bytes=away * event.width,
        in_flight=in_flight,
    )


class Flight:
    """Bytes of global memory on their way to each of a cluster's CTAs."""

    def __init__(self, ranks: int):
        self.loads, self.bulk, self.open = (np.zeros(ranks, dtype=np.int64) for _ in range(3))
        self.groups: list[np.ndarray] = []

    def after(self, event: Event) -> int:
        """The most that any CTA has on their way once the event is issued."""
        mine = event.active.reshape(len(self.loads), -1).sum(1) * event.width
        if event.verb not in ON:
            self.loads[:] = 0
        if event.verb in LOADS:
            self.loads += mine
        elif event.verb == "cp.async":
            self.open = self.open + mine
        elif event.verb == "cp.async.bulk":
            self.bulk += mine
        elif event.verb == "cp.async.commit_group":
            self.groups, self.open = [*self.groups, self.open], np.zeros_like(self.open)
        elif event.verb == "cp.async.wait_group":
            self.groups = self.groups[max(0, len(self.groups) - event.size) :]
        elif event.verb == "mbarrier.try_wait":
            self.bulk[event.active.reshape(len(self.bulk), -1).any(1)] = 0
        return int((self.loads + self.bulk + self.open + sum(self.groups)).max())
