"""mbarriers, and the asynchronous copies that they count.

Sources: PTX ISA, "mbarrier" (a phase ends when its pending count and its tx-count are both zero), "cp.async",
"cp.async.wait_group", "cp.async.bulk", "st.async". Asynchronous copies come as late as they may: at the wait for them.
"""

from dataclasses import dataclass

import numpy as np

from quack_lite.counted import counted
from quack_lite.simt.memory import Memory
from quack_lite.simt.moment import verb


class Stopped(Exception):
    """Nobody can go on: on a GPU the kernel would hang."""


@dataclass
class Transfer:
    """An asynchronous copy on its way: value (k,) to the locations at (k,), issued at `time` by lane (k,).

    rank: the CTA whose mbarrier counts its bytes.
    """

    verb: str
    time: int
    memory: Memory
    at: np.ndarray
    value: np.ndarray
    lane: np.ndarray
    rank: int
    bytes: int

    def arrive(self, writer, time: int) -> None:
        self.memory.finish(self.at, self.value, writer, time)


class MBarrier:
    """A barrier object in each CTA's shared memory that counts arrivals and bytes; made by b.mbarrier(count).

    Thread 0 of each CTA initialises it, the fence included; others may use it after bar_sync, peers after a cluster
    barrier. Phases alternate between parity 0 and 1, from 0.
    """

    def __init__(self, block, name: str, count: int, number: int):
        self.block, self.now, self.name, self.count, self.number = block, block.now, name, count, number
        self.time = self.now.time
        ranks, span = block.ranks, self.now.order.span
        self.pending = np.full(ranks, count)
        self.expected, self.came, self.phase = (np.zeros(ranks, dtype=np.int64) for _ in range(3))
        self.release = np.zeros((ranks, span), dtype=np.int64)
        self.passed = np.zeros((ranks, span), dtype=np.int64)
        self.transfers: list[Transfer] = []

    def agent(self, rank: int) -> int:
        """The number under which what it counted is known as a writer."""
        order = self.now.order
        return order.first + order.lanes + self.number * self.block.ranks + rank

    @verb
    def arrive(self, where=None) -> None:
        """mbarrier.arrive by each lane in `where`, on its own CTA's object."""
        active = self._enter("mbarrier.arrive", where)
        for rank, arrivals in self._counted(active):
            if arrivals > self.pending[rank]:
                given = counted(arrivals, "arrivals")
                self._overfull(rank, f"gets {given} and waits for {self.pending[rank]}: count={self.count}")
            self.pending[rank] -= min(arrivals, self.pending[rank])
            mine = active & (self.block.rank == rank)
            self.release[rank] = np.maximum(self.release[rank], self.now.order.released(mine, self.now.time))
            self._complete(rank)

    @verb
    def expect_tx(self, bytes: int, where=None) -> None:
        """mbarrier.expect_tx by each lane in `where`: the phase also waits for so many bytes. It is no arrival."""
        active = self._enter("mbarrier.expect_tx", where, size=bytes)
        for rank, lanes in self._counted(active):
            self.expected[rank] += bytes * lanes

    @verb
    def wait(self, phase: int, where=None) -> None:
        """mbarrier.try_wait.parity until the phase with this parity, 0 or 1, is over. ValueError for another parity."""
        if phase not in (0, 1):
            raise ValueError(f"phase {phase}: mbarrier.try_wait.parity takes 0 or 1, as in turn // stages % 2")
        active = self._enter("mbarrier.try_wait", where)
        for rank, _ in self._counted(active):
            mine = active & (self.block.rank == rank)
            if self.phase[rank] % 2 == phase:
                self._end_phase(rank, mine)
            self.now.order.learn(self.passed[rank], mine)

    def _enter(self, verb, where, size=0):
        """The lanes that take part; reports those who cannot know yet that the object is initialised."""
        block = self.block
        active = block.mask(where)
        block.record(verb, active, array=self.name, size=size, mbarrier=self.number)
        lane = block.lane[active]
        zero = self.now.order.first + block.rank[active] * block.ntid
        unknown = ~self.now.order.sees(zero, zero, np.full(len(lane), self.time), lane)
        if unknown.any():
            self.now.uninitialised(self, lane[unknown], zero[unknown])
        return active

    def _counted(self, active):
        lanes = active.reshape(self.block.ranks, -1).sum(1)
        return [(rank, int(lanes[rank])) for rank in np.flatnonzero(lanes)]

    def _complete(self, rank):
        """Ends the phase if nothing is missing."""
        if self.pending[rank] == 0 and self.expected[rank] == self.came[rank]:
            self.pending[rank] = self.count
            self.expected[rank] = self.came[rank] = 0
            self.phase[rank] += 1
            self.passed[rank], self.release[rank] = self.release[rank], 0

    def _end_phase(self, rank, waiting):
        """Lets what is on its way arrive; a phase that still lacks something never ends."""
        before = self.phase[rank]
        self._deliver(rank)
        self._complete(rank)
        if self.phase[rank] > before:
            return
        lane = self.block.lane[waiting]
        expected, came, left = self.expected[rank], self.came[rank], self.pending[rank]
        if self._too_many(rank):
            raise Stopped
        if left:
            came = f"{self.count - left} of {counted(self.count, 'arrivals')} came"
            missing = f"{came}. As many lanes must arrive as count= says"
            self.now.report("mbarrier waits", lane, array=self.name, missing=missing)
        else:
            expects = f"it expects {counted(expected, 'bytes')} and {came} came"
            missing = f"{expects}. Expect what the copies bring, or start them before"
            self.now.report("mbarrier waits", lane, array=self.name, missing=missing)
        raise Stopped

    def finish(self) -> None:
        """The program has ended: what comes now was not expected where the phase is over."""
        for rank in range(len(self.phase)):
            self._deliver(rank)
            self._too_many(rank)

    def _deliver(self, rank):
        """All copies that this CTA's object counts arrive."""
        due = [transfer for transfer in self.transfers if transfer.rank == rank]
        self.transfers = [transfer for transfer in self.transfers if transfer.rank != rank]
        time = self.now.time
        for transfer in due:
            transfer.arrive(self.agent(rank), time)
            self.came[rank] += transfer.bytes
        self.release[rank, self.agent(rank) - self.now.order.first] = time + 1

    def _too_many(self, rank):
        expected, came = self.expected[rank], self.came[rank]
        if came > expected:
            expects = f"expects {counted(expected, 'bytes')} in a phase and gets {came}"
            self._overfull(rank, f"{expects}: expect_tx what all copies bring")
        return came > expected

    def _overfull(self, rank, excess):
        first = self.now.order.first + rank * self.block.ntid
        self.now.report("mbarrier overfull", [first], array=self.name, cta=self.block.cta + rank, excess=excess)
