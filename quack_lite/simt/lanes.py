"""The lanes of a block or cluster, and how an access of theirs reaches memory: bounds, alignment, races, the event."""

import re

import numpy as np

from quack_lite.simt.barriers import Stopped, Transfer
from quack_lite.simt.dtypes import POISON_INT, rounded
from quack_lite.simt.memory import Memory
from quack_lite.simt.moment import Moment
from quack_lite.simt.order import WARP
from quack_lite.simt.trace import Event

WIDTHS = (1, 2, 4, 8, 16)  # bytes of a lane's access (PTX ISA, "ld": .b8 to .v4.b32)
TO_PEERS = ("ld.shared::cluster", "st.async")


class Lanes:
    """L = ranks * ntid lanes: tid, laneid, warpid, ctaid, rank are (L,) int64.

    ntid: threads of a CTA.  nctaid: CTAs of the grid.  ranks: CTAs of the cluster.
    """

    def __init__(self, now: Moment, cta: int, nctaid: int):
        self.now, self.cta, self.nctaid = now, cta, nctaid
        self.ranks, self.ntid = now.order.ranks, now.order.threads
        lanes = np.arange(now.order.lanes)
        self.lane = now.order.first + lanes
        self.rank, self.tid = lanes // self.ntid, lanes % self.ntid
        self.ctaid, self.laneid, self.warpid = cta + self.rank, self.tid % WARP, self.tid // WARP

    def mask(self, where) -> np.ndarray:
        """(L,) bool. ValueError for another dtype."""
        active = np.asarray(True if where is None else where)
        if active.dtype != bool:
            raise ValueError(f"where= has dtype {active.dtype}: it takes a comparison, such as b.tid < 4")
        return np.broadcast_to(active, self.lane.shape).copy()

    def lanes(self, i) -> np.ndarray:
        """(L,) int64. ValueError for what is no integer."""
        given = np.asarray(i)
        if given.dtype.kind not in "iu":
            raise ValueError(f"an index of dtype {given.dtype}: use integers, as b.tid // 2")
        return np.broadcast_to(given.astype(np.int64), self.lane.shape)

    def record(self, verb: str, active, **fields) -> None:
        """Adds what the verb did to the run's events."""
        self.now.events.append(Event(verb, self.now.line, self.now.time, self.cta, self.ntid, active, **fields))

    def _load(self, verb, memory, i, vec, where, fill, rank=0):
        width = width_of(memory, vec, WIDTHS)
        asking = self.mask(where)
        active, first = self._access(memory, i, vec, asking, rank, width)
        result = np.full((len(active), vec), memory.poison, dtype=memory.value.dtype)
        if fill is not None:
            result[~asking] = fill
        at, lane = _elements(first[active], vec), np.repeat(self.lane[active], vec)
        result[active] = memory.read(at, lane, self.now).reshape(-1, vec)
        values = result if vec > 1 else result[:, 0]
        self._record_access(verb, memory, active, first, width, rank, values)
        return values.copy()

    def _store(self, verb, memory, i, v, where, rank=0):
        v, vec = self._register(v)
        width = width_of(memory, vec, WIDTHS)
        active, first = self._access(memory, i, vec, self.mask(where), rank, width)
        at, lane = _elements(first[active], vec), np.repeat(self.lane[active], vec)
        memory.write(at, rounded(v, memory.dtype)[active].reshape(-1), lane, self.now)
        self._record_access(verb, memory, active, first, width, values=v)

    def _access(self, memory, i, vec, asking, rank, align):
        """(lanes whose access is allowed, location of the first element of each lane); reports the others."""
        first = self.lanes(memory.flat(i))
        inside = (first >= 0) & (first + vec <= memory.size)
        outside = asking & ~inside
        if outside.any():
            index = int((first + np.where(first < 0, 0, vec - 1))[outside][0])
            self.now.report("out of bounds", self.lane[outside], array=memory.name, index=index, size=memory.size)
        address = memory.base + first * memory.itemsize
        odd = asking & inside & (address % align != 0)
        if odd.any():
            at = int(address[odd][0])
            self.now.report("misaligned", self.lane[odd], array=memory.name, width=align, address=at)
        return asking & inside & ~odd, first + rank * memory.size

    def _record_access(self, verb, memory, active, first, width, rank=0, values=None, m=None):
        fields = {"array": memory.name, "itemsize": memory.itemsize, "width": width, "values": values}
        fields["space"] = "peer" if verb in TO_PEERS else memory.space
        fields["source"] = rank if verb in TO_PEERS else None
        fields["mbarrier"] = -1 if m is None else m.number
        address = np.where(active, memory.base + first % memory.size * memory.itemsize, -1)
        self.record(verb, active, address=address, **fields)

    def _register(self, v):
        """(values over the lanes, elements a lane). A Python float is float32. ValueError: float64."""
        v = np.asarray(v, dtype=np.float32 if isinstance(v, float) else None)
        if v.dtype == np.float64:
            raise ValueError("values of float64: the model has none, use .astype(np.float32)")
        if v.ndim < 2:
            return np.broadcast_to(v, self.lane.shape), 1
        return v, v.shape[1]

    def _shuffle(self, verb, v, source, where):
        v, _ = self._register(v)
        active = self.mask(where)
        source = source + np.arange(len(active)) // WARP * WARP
        alone = active & ~active[source]
        if alone.any():
            self.now.report("lane not taking part", self.lane[alone], index=int(source[alone][0]) % WARP)
        lost = alone | ~active
        result = v[source]
        result[lost] = np.nan if result.dtype.kind == "f" else POISON_INT
        self.record(verb, active, values=result, before=v, source=source, itemsize=v.itemsize)
        return result.copy()

    def _fetch(self, verb, x, j, vec, active, align, m=None):
        """((k, vec) values that an asynchronous copy, counted by m, takes from x[j:], the k lanes that may)."""
        active, first = self._access(x, j, vec, active, 0, align)
        at, lane = _elements(first[active], vec), np.repeat(self.lane[active], vec)
        values = x.read(at, lane, self.now).reshape(-1, vec)
        self._record_access(verb, x, active, first, vec * x.itemsize, m=m)
        return values, active

    def _issue(self, verb, memory, first, values, active, m=None, rank=None):
        """Sends values (k, vec) of the active lanes to the locations from `first`; m of `rank` counts the bytes."""
        vec, first, issuer = values.shape[1], first[active], self.lane[active]
        counter = np.zeros(len(first), dtype=np.int64) if m is None else np.broadcast_to(rank, active.shape)[active]
        for target in np.unique(counter):
            mine = counter == target
            at, lane = _elements(first[mine], vec), np.repeat(issuer[mine], vec)
            torn = memory.begin(at, lane, self.now)
            value = np.where(torn, memory.poison, values[mine].reshape(-1)).astype(values.dtype)
            transfer = Transfer(verb, self.now.time, memory, at, value, lane, int(target), len(at) * memory.itemsize)
            (self.copies[-1] if m is None else m.transfers).append(transfer)

    def _peers(self, memory, rank, where):
        """(rank over the lanes, those in `where` whose rank the cluster has)."""
        rank, asking = self.lanes(rank), self.mask(where)
        outside = asking & ((rank < 0) | (rank >= self.ranks))
        if outside.any():
            index = int(rank[outside][0])
            self.now.report("out of bounds", self.lane[outside], array="the cluster", index=index, size=self.ranks)
        return np.clip(rank, 0, self.ranks - 1), asking & ~outside

    def _all_reach(self, active, barrier):
        if not active.all():
            self.now.report("barrier not reached", self.lane[~active], barrier=barrier)
            raise Stopped

    def _unstarted(self, memory, rank, active, since, does):
        """(L,) lanes that address a peer of which nothing shows that it has started and done what it did by `since`."""
        early = active & (rank != self.rank) & (self.now.order.cluster <= since)
        if early.any():
            self.now.report("peer not started", self.lane[early], does=does, array=memory.name, rank=rank[early][0])
        return early & (self.now.place is None)

    def _name(self, maker):
        """What the program calls the object that this verb makes, as in `s, m = b.shared(...), b.mbarrier(1)`."""
        names = re.match(r"([\w, ]+?)\s*=[^=]", self.now.line.text)
        made = 0
        while self.now.lines[-2 - made] == self.now.line:
            made += 1
        return names[1].split(",")[made % (names[1].count(",") + 1)].strip() if names else maker


def width_of(memory: Memory, vec: int, allowed) -> int:
    """Bytes that a lane moves. ValueError where there is no such instruction."""
    if vec * memory.itemsize not in allowed:
        sizes = ", ".join(str(size) for size in allowed)
        raise ValueError(f"{vec} elements of {memory.dtype} are {vec * memory.itemsize} bytes a lane: it takes {sizes}")
    return vec * memory.itemsize


def _elements(first: np.ndarray, vec: int) -> np.ndarray:
    """(k * vec,) the locations from each of `first` (k,)."""
    return (first[:, None] + np.arange(vec)).reshape(-1)
