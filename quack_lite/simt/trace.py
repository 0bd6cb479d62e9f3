"""What a run did, verb by verb, so that it can be counted and drawn without running it again."""

import linecache
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from quack_lite.simt import traffic
from quack_lite.simt.order import WARP


class Line(NamedTuple):
    """A line of a program's source."""

    file: str
    number: int

    @property
    def text(self) -> str:
        """The line without its indentation; empty where the source cannot be read."""
        return linecache.getline(self.file, self.number).strip()


@dataclass
class Event:
    """One verb, executed by a cluster of L lanes (rank * threads + tid) in W = L / 32 warps.

    time counts the verbs of a run.  cta: the first CTA of the cluster.  active: the lanes that took part.
    space: "global", "shared" or "peer" where memory is touched, of `array`, at `address`: bytes from the array's start
    or in the CTA's shared memory, -1 where a lane touches nothing; `width` bytes each.
    values: loaded, stored, or what a shuffle gave; before: what went into the shuffle.
    source: the lane a shuffle's value came from; the rank that ld_peer and st_async address; -1 for none.
    size: the n of wait_group, the bytes of expect_tx.  array also names the mbarrier.
    mbarrier: the number, in the order in which the program made them, of the one that arrives, expects, is waited for,
    or counts the bytes of an asynchronous copy; -1 for none.
    """

    verb: str
    line: Line
    time: int
    cta: int
    threads: int
    active: np.ndarray
    space: str = ""
    array: str = ""
    itemsize: int = 0
    address: np.ndarray | None = None
    width: int = 0
    values: np.ndarray | None = None
    before: np.ndarray | None = None
    source: np.ndarray | None = None
    size: int = 0
    mbarrier: int = -1

    @cached_property
    def sectors(self) -> np.ndarray:
        """(W,) sectors of global memory that each warp's request touches."""
        touched = self.space == "global"
        return traffic.sectors(self.address, self.width) if touched else np.zeros(self.warps, dtype=np.int64)

    @cached_property
    def wavefronts(self) -> np.ndarray:
        """(W,) passes over the banks of shared memory that each warp's request takes."""
        if self.space != "shared":
            return np.zeros(self.warps, dtype=np.int64)
        return traffic.wavefronts(self.address, self.width, self.parts)

    @cached_property
    def conflicts(self) -> np.ndarray:
        """(W,) how many of the wavefronts other lanes' banks cost."""
        if self.space != "shared":
            return np.zeros(self.warps, dtype=np.int64)
        return self.wavefronts - traffic.without_conflict(self.address, self.parts)

    @cached_property
    def parts(self) -> np.ndarray:
        """(L,) the part of its warp's request to shared memory that each lane is in."""
        cut = traffic.parts_of_read if self.verb == "ld.shared" else traffic.parts
        return cut(self.address, self.width)

    @property
    def warps(self) -> int:
        return len(self.active) // WARP

    @property
    def asking(self) -> np.ndarray:
        """(W,) whether each warp has an active lane."""
        return self.active.reshape(-1, WARP).any(1)

    def request(self, warp: int) -> "Request":
        """What one warp asked for; the cluster's warps are numbered through."""
        lanes = np.flatnonzero(self.active[warp * WARP : (warp + 1) * WARP])
        address, values = (None if of is None else of[warp * WARP + lanes] for of in (self.address, self.values))
        cost = int(self.sectors[warp]), int(self.wavefronts[warp])
        place = self.verb, self.line, self.cta + warp * WARP // self.threads, warp
        return Request(*place, self.space, self.array, self.itemsize, self.width, lanes, address, values, *cost)


@dataclass(frozen=True)
class Request:
    """One warp's part of an event; warp: numbered through the cluster.

    lanes (k,): those that took part, 0 to 31.  address (k,): their first bytes.  width: bytes of a lane.
    values: (k,) or (k, vec).
    """

    verb: str
    line: Line
    cta: int
    warp: int
    space: str
    array: str
    itemsize: int
    width: int
    lanes: np.ndarray
    address: np.ndarray | None
    values: np.ndarray | None
    sectors: int
    wavefronts: int

    @property
    def sector_ids(self) -> np.ndarray:
        """The sectors touched, ascending: byte address // 32."""
        return np.unique(traffic.span_of(self.address, self.width, traffic.SECTOR))

    @property
    def banks(self) -> np.ndarray:
        """(k, words) the bank of each 4-byte word that a lane touches in shared memory."""
        return traffic.words_of(self.address, self.width) % traffic.BANKS

    @property
    def bytes_asked(self) -> int:
        return len(self.lanes) * self.width

    @property
    def bytes_moved(self) -> int:
        """Bytes of the sectors touched in global memory."""
        return self.sectors * traffic.SECTOR
