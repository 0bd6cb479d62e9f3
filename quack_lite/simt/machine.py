"""The verbs of a program, each named by the stem of its PTX instruction; card.py has them all on one page.

i, v and where are scalars or arrays over the lanes (L,) of a block or cluster, lane = rank * threads + tid. i counts
elements, or is a tuple (row, column) of the array's shape. Lanes outside `where` do nothing.
"""

import numpy as np

from quack_lite.counted import counted
from quack_lite.simt.barriers import MBarrier, Transfer
from quack_lite.simt.dtypes import rounded
from quack_lite.simt.lanes import Lanes, width_of
from quack_lite.simt.memory import Memory
from quack_lite.simt.moment import Moment, verb
from quack_lite.simt.order import WARP

SHARED_BYTES = 227 * 1024  # of a CTA, compute capability 9.0 (CUDA C++ Programming Guide, "Compute Capabilities")
ASYNC_WIDTHS = (4, 8, 16)  # PTX ISA, "cp.async": cp-size; "st.async": .b32 to .v4.b32
BULK = 16  # PTX ISA, "cp.async.bulk": size and both addresses are multiples of 16 bytes


class Block(Lanes):
    """A block, or a cluster of blocks, in lockstep; its numbers are those of Lanes."""

    def __init__(self, now: Moment, cta: int, nctaid: int):
        super().__init__(now, cta, nctaid)
        self.shared_bytes, self.arrived, self.peer_read = 0, 0, None
        self.mbarriers: list[MBarrier] = []
        self.copies: list[list[Transfer]] = [[]]  # cp.async: the groups on their way, the open one last

    @verb
    def ld_global(self, x: Memory, i, vec: int = 1, where=None, fill=None) -> np.ndarray:
        """(L,) or (L, vec): elements i to i + vec of x, 1 to 16 bytes a lane; `fill` outside `where`, else poison."""
        return self._load("ld.global", x, i, vec, where, fill)

    @verb
    def st_global(self, x: Memory, i, v, where=None) -> None:
        """Stores v (L,) or (L, vec) to x from element i, rounded to x's dtype."""
        self._store("st.global", x, i, v, where)

    @verb
    def shared(self, shape, dtype: str) -> Memory:
        """An array in the shared memory of each CTA, at a multiple of 128 bytes. ValueError beyond 227 KB."""
        shape = shape if isinstance(shape, tuple) else (shape,)
        array = Memory(self._name("shared"), "shared", shape, dtype, -(-self.shared_bytes // 128) * 128, self.ranks)
        self.shared_bytes = array.base + array.size * array.itemsize
        if self.shared_bytes > SHARED_BYTES:
            raise ValueError(f"{self.shared_bytes} bytes of shared memory: a CTA has {SHARED_BYTES}")
        return array

    @verb
    def ld_shared(self, s: Memory, i, vec: int = 1, where=None, fill=None) -> np.ndarray:
        """As ld_global, from the CTA's own shared memory."""
        return self._load("ld.shared", s, i, vec, where, fill, self.rank)

    @verb
    def st_shared(self, s: Memory, i, v, where=None) -> None:
        """As st_global, to the CTA's own shared memory."""
        self._store("st.shared", s, i, v, where, self.rank)

    @verb
    def shfl_bfly(self, v, mask: int, where=None) -> np.ndarray:
        """Each lane gets the value of lane ^ mask of its warp. ValueError: a mask that leads out of the warp."""
        if not 0 <= mask < WARP:
            raise ValueError(f"shfl_bfly with mask {mask}: a shuffle ends at the warp, so masks go up to {WARP - 1}")
        return self._shuffle("shfl.sync.bfly", v, self.laneid ^ mask, where)

    @verb
    def shfl_down(self, v, delta: int, where=None) -> np.ndarray:
        """Each lane gets the value of lane + delta of its warp, and its own where that is past the end."""
        source = self.laneid + delta
        return self._shuffle("shfl.sync.down", v, np.where(source < WARP, source, self.laneid), where)

    @verb
    def shfl_idx(self, v, lane, where=None) -> np.ndarray:
        """Each lane gets the value of `lane` of its warp, modulo 32."""
        return self._shuffle("shfl.sync.idx", v, self.lanes(lane) % WARP, where)

    @verb
    def bar_warp_sync(self) -> None:
        """The lanes of each warp meet, and each sees what the others did to memory."""
        active = self.mask(None)
        self.record("bar.warp.sync", active)
        self.now.order.sync(active, WARP, self.now.time)

    @verb
    def bar_sync(self, where=None) -> None:
        """The threads of each CTA meet, and each sees what the others did to memory. All threads must reach it."""
        active = self.mask(where)
        self.record("bar.sync", active)
        elsewhere = np.repeat(~active.reshape(self.ranks, -1).any(1), self.ntid)
        self._all_reach(active | elsewhere, "bar_sync")
        self.now.order.sync(active, self.ntid, self.now.time)

    @verb
    def cp_async(self, s: Memory, i, x: Memory, j, vec: int = 1, where=None) -> None:
        """Copies vec elements from x[j] to s[i], 4, 8 or 16 bytes a lane, past the registers; arrives at wait_group."""
        width = width_of(x, vec, ASYNC_WIDTHS)
        active, target = self._access(s, i, vec, self.mask(where), self.rank, width)
        values, active = self._fetch("cp.async", x, j, vec, active, width)
        self._issue("cp.async", s, target, values, active)

    @verb
    def commit_group(self) -> None:
        """Makes a group of the cp_async since the last one."""
        self.record("cp.async.commit_group", self.mask(None))
        self.copies.append([])

    @verb
    def wait_group(self, n: int) -> None:
        """Waits until at most n of the newest groups are on their way. Other threads need a barrier after it."""
        self.record("cp.async.wait_group", self.mask(None), size=n)
        done = max(0, len(self.copies) - 1 - n)
        for transfer in [transfer for group in self.copies[:done] for transfer in group]:
            transfer.arrive(transfer.lane, self.now.time)
        self.copies = self.copies[done:]

    @verb
    def mbarrier(self, count: int) -> MBarrier:
        """An mbarrier in each CTA that `count` arrivals complete, initialised by thread 0; see MBarrier."""
        if len(self.mbarriers) == WARP:
            raise ValueError(f"the model has {WARP} mbarriers at most: reuse them, phase by phase")
        self.mbarriers.append(MBarrier(self, self._name("mbarrier"), count, len(self.mbarriers)))
        return self.mbarriers[-1]

    @verb
    def bulk_load(self, s: Memory, x: Memory, n: int, m: MBarrier, i=0, j=0, where=None) -> None:
        """Copies n elements from x[j] to s[i], counted by m; each lane in `where` issues such a copy.

        ValueError unless n elements are a multiple of 16 bytes.
        """
        if n * x.itemsize % BULK:
            raise ValueError(f"a bulk copy of {counted(n * x.itemsize, 'bytes')}: it takes a multiple of {BULK}")
        active, target = self._access(s, i, n, self.mask(where), self.rank, BULK)
        values, active = self._fetch("cp.async.bulk", x, j, n, active, BULK, m)
        self._issue("cp.async.bulk", s, target, values, active, m, self.rank)

    @verb
    def cluster_arrive(self, where=None) -> None:
        """The threads arrive at the cluster's barrier; what they did until here is seen by all who pass its wait."""
        active = self.mask(where)
        self.record("barrier.cluster.arrive", active)
        self._all_reach(active, "cluster_arrive")
        self.arrived = self.now.time

    @verb
    def cluster_wait(self) -> None:
        """The threads wait until all of the cluster have arrived: then all its CTAs run."""
        self.record("barrier.cluster.wait", self.mask(None))
        self._all_reach(self.mask(self.arrived > self.now.order.cluster), "cluster_arrive")
        self.now.order.sync_cluster(self.arrived)

    @verb
    def ld_peer(self, s: Memory, rank, i, vec: int = 1, where=None, fill=None) -> np.ndarray:
        """As ld_shared, from the shared memory of CTA `rank` of the cluster."""
        rank, asking = self._peers(s, rank, where)
        abroad = asking & (rank != self.rank)
        if abroad.any():
            self.peer_read = (self.now.time, self.now.line, self.lane[abroad])
        early = self._unstarted(s, rank, asking, 0, "reads")
        return self._load("ld.shared::cluster", s, i, vec, asking & ~early, fill, rank)

    @verb
    def st_async(self, s: Memory, rank, i, v, m: MBarrier, where=None) -> None:
        """Stores v, 4, 8 or 16 bytes a lane, to s[i] of CTA `rank`; that CTA's m counts the bytes."""
        rank, asking = self._peers(s, rank, where)
        early = self._unstarted(s, rank, asking, m.time, "writes to")
        v, vec = self._register(v)
        width = width_of(s, vec, ASYNC_WIDTHS)
        active, first = self._access(s, i, vec, asking, rank, width)
        value = np.where(early[:, None], s.poison, rounded(v, s.dtype).reshape(-1, vec)).astype(s.value.dtype)
        self._record_access("st.async", s, active, first, width, rank, v, m)
        self._issue("st.async", s, first, value[active], active, m, rank)

    def finish(self) -> None:
        """Reports what is still on its way when the program has ended: nobody waits for it."""
        for m in self.mbarriers:
            for transfer in m.transfers:
                self.now.left_behind(transfer, self.rank[transfer.lane[0] - self.lane[0]] != transfer.rank)
            m.finish()
        if self.peer_read and self.peer_read[0] > self.now.order.cluster:
            _, line, lanes = self.peer_read
            advice = "b.cluster_arrive() and b.cluster_wait() after the last ld_peer"
            self.now.checks.report("peer ended", line, lanes, does="reads from", advice=advice)
