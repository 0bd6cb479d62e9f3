"""Who knows what: which accesses of a cluster come before which, by its barriers.

An access is known to its own thread at once, and to another only by way of a synchronisation that both take part in
(PTX ISA, "Memory Consistency Model", causality order). Threads of a warp are no exception: since Volta they are
scheduled one by one, so they need bar.warp.sync; a shuffle exchanges registers and orders no memory (CUDA C++
Programming Guide, "Independent Thread Scheduling", "Warp Shuffle Functions").
Lanes are numbered through: a cluster's come first, then one agent for each of its mbarriers, as the writer of what
arrives asynchronously. Times count the verbs.
"""

from dataclasses import dataclass

import numpy as np

WARP = 32


@dataclass
class Fact:
    """What the threads in `target` learnt from an mbarrier: all that lane i did before time[i]."""

    time: np.ndarray  # (span,)
    target: np.ndarray  # (lanes,) bool


class Order:
    """The order within one cluster of `ranks` CTAs; `first` is the number of its first lane."""

    def __init__(self, first: int, ranks: int, threads: int):
        self.first, self.ranks, self.threads = first, ranks, threads
        self.lanes = ranks * threads
        self.span = 2 * self.lanes
        self.warp = np.zeros(self.lanes // WARP, dtype=np.int64)
        self.cta = np.zeros(ranks, dtype=np.int64)
        self.cluster = 0
        self.facts: list[Fact] = []

    def sees(self, low, high, time, lane) -> np.ndarray:
        """Whether all that lanes low to high did up to `time` comes before what `lane` does now; time 0 is before all.

        All arrays of one shape. Between low and high only the two are looked at: they are the first and the last of
        several lanes that did the same.
        """
        seen = (time == 0) | (low == lane) & (high == lane)
        if seen.all():
            return seen
        local, limit = lane - self.first, np.zeros_like(time)
        for size, times in ((WARP, self.warp), (self.threads, self.cta), (self.span, self.cluster)):
            group = lane // size
            same = (low // size == group) & (high // size == group)
            limit = np.maximum(limit, np.where(same, times[local // size] if size < self.span else times, 0))
        inside = (low // self.span == lane // self.span) & (high // self.span == lane // self.span)
        for fact in self.facts:
            told = np.minimum(fact.time[low % self.span], fact.time[high % self.span])
            limit = np.maximum(limit, np.where(inside & fact.target[local], told, 0))
        return seen | (time < limit)

    def released(self, active: np.ndarray, now: int) -> np.ndarray:
        """(span,) the time before which each lane's accesses are passed on by the lanes in `active`, who arrive now."""
        time = np.full(self.span, self.cluster)
        time[: self.lanes] = np.maximum(self.cluster, self._of_groups(active, WARP, self.warp))
        time[: self.lanes] = np.maximum(time[: self.lanes], self._of_groups(active, self.threads, self.cta))
        time[: self.lanes][active] = now
        for fact in self.facts:
            if fact.target[active].any():
                time = np.maximum(time, fact.time)
        return time

    def _of_groups(self, active, size, times):
        return np.repeat(np.where(active.reshape(-1, size).any(1), times, 0), size)

    def learn(self, time: np.ndarray, target: np.ndarray) -> None:
        """The lanes in `target` know from now on what released() gave as `time`."""
        self.facts = [fact for fact in self.facts if not (target | ~fact.target).all() or (fact.time > time).any()]
        self.facts.append(Fact(time.copy(), target.copy()))

    def sync(self, active: np.ndarray, size: int, now: int) -> None:
        """Warps or CTAs (groups of `size` lanes) that are in `active` have met."""
        met = active.reshape(-1, size).all(1)
        times = self.warp if size == WARP else self.cta
        times[met] = now
        for fact in self.facts:
            groups = fact.target.reshape(-1, size)
            groups |= (met & groups.any(1))[:, None]

    def sync_cluster(self, arrived: int) -> None:
        """All threads of the cluster know what each did before it arrived."""
        self.cluster = arrived
        for fact in self.facts:
            fact.target[:] = True
