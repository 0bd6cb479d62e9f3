"""Global and shared memory: values, and for each location who wrote it, who read it, and when.

A read that no barrier orders behind the write it should see gets poison, or, where an order of the warps is given, the
old value or the new one by that order. A write that no barrier orders behind a read or another write leaves poison, or
what that order gives. PTX calls such a pair a data race and promises nothing about it (PTX ISA, "Memory Consistency
Model", "Data-races"). Two writes of the same value are let pass.
"""

import math

import numpy as np

from quack_lite.simt.dtypes import differs, itemsize, poison, register


class Memory:
    """An array in global memory, or in the shared memory of each of `ranks` CTAs.

    base: its first byte.  A location is rank * size + element.  pending: an asynchronous copy is on its way there.
    """

    def __init__(self, name: str, space: str, shape, dtype: str, base: int, ranks: int = 1, values=None):
        self.name, self.space, self.shape, self.dtype, self.base = name, space, tuple(shape), dtype, base
        self.size, self.itemsize = math.prod(self.shape), itemsize(dtype)
        count = self.size * ranks
        self.poison = poison(dtype)
        self.given = values is not None
        held = values if self.given else np.full(count, poison(dtype))
        self.value = np.array(held, dtype=register(dtype)).reshape(count)
        self.old = self.value.copy()
        self.known = np.full(count, self.given)
        self.pending = np.zeros(count, dtype=bool)
        self.writer, self.low, self.high = (np.full(count, -1, dtype=np.int64) for _ in range(3))
        self.write_time, self.read_time = (np.zeros(count, dtype=np.int64) for _ in range(2))
        self.stored = False

    def flat(self, i):
        """An element's number; i: that, or a tuple with one index a dimension."""
        if not isinstance(i, tuple):
            return i
        if len(i) != len(self.shape):
            raise ValueError(f"{self.name} has {len(self.shape)} dimensions, and the index has {len(i)}")
        strides = [math.prod(self.shape[d + 1 :]) for d in range(len(i))]
        return sum(index * stride for index, stride in zip(i, strides, strict=True))

    def read(self, at, lane, now) -> np.ndarray:
        """The values that `lane` (k,) gets from the locations `at` (k,). now: the Moment of the read."""
        value = self.value[at]
        if self.stored or not self.given:
            value = self._checked(value, at, lane, now)
        again = now.order.sees(self.low[at], self.high[at], self.read_time[at], lane)
        low, high = self.low[at], self.high[at]
        # Where several lanes read one location the last assignment stays: the lowest lane, and the highest.
        self.low[at[::-1]] = np.where(again, lane, np.minimum(low, lane))[::-1]
        self.high[at] = np.where(again, lane, np.maximum(high, lane))
        self.read_time[at] = now.time
        return value

    def place(self, at: int) -> dict[str, object]:
        """The words for an element, numbered through the cluster's CTAs."""
        index = int(at) % self.size
        return {"array": self.name, "index": index, "place": f"{self.name}[{index}]"}

    def _checked(self, value, at, lane, now):
        late = self.pending[at]
        blank = ~late & ~self.known[at]
        writer, time = self.writer[at], self.write_time[at]
        early = ~late & ~blank & ~now.order.sees(writer, writer, time, lane)
        if late.any():
            now.not_waited(self, late, at, lane, time, "reads")
        if blank.any():
            now.report("read before written", lane[blank], **self.place(at[blank][0]))
        if early.any():
            now.race(self, early, at, lane, writer, time, "reads", "wrote")
            value = np.where(early, self._raced(value, self.old[at], lane, writer, now), value)
        return np.where(late, self.poison, value).astype(value.dtype)

    def _raced(self, after, before, lane, other, now):
        """What a race gives: `after` where this lane runs after the other one, `before` where it runs first."""
        if now.place is None:
            return np.full_like(after, self.poison)
        return np.where(now.runs_before(other, lane), after, before)

    def write(self, at, value, lane, now) -> None:
        """`lane` (k,) writes `value` (k,), already rounded, to the locations `at` (k,)."""
        if now.place is not None:
            turn = np.argsort(now.place[lane - now.order.first], kind="stable")
            at, value, lane = at[turn], value[turn], lane[turn]
        self._behind_copies(at, lane, now)
        value = self._over_writes(at, value, lane, now)
        torn = ~self._behind_reads(at, lane, now)
        if now.place is not None:
            torn &= now.runs_before(lane, self.low[at])
        value = np.where(torn, self.poison, value).astype(value.dtype)
        self._put(at, value, lane, now.time)
        self._settle(at, value, lane, now)

    def begin(self, at, lane, now) -> np.ndarray:
        """An asynchronous copy to `at` is issued by `lane`. Returns (k,) where it overwrites what may still be read."""
        self._behind_copies(at, lane, now)
        torn = ~self._behind_reads(at, lane, now)
        self.stored = True
        self.pending[at] = True
        self.writer[at], self.write_time[at] = lane, now.time
        return torn

    def finish(self, at, value, writer, time: int) -> None:
        """What begin() announced has come; `writer` is the lane or agent from which others may learn of it."""
        self.pending[at] = False
        self._put(at, value, writer, time)

    def _put(self, at, value, lane, time):
        self.stored = True
        self.old[at] = self.value[at]
        self.value[at] = value
        self.known[at] = True
        self.writer[at], self.write_time[at] = lane, time

    def _over_writes(self, at, value, lane, now):
        """The values as they will be found beside those of earlier writes that nothing orders before these."""
        before, writer, time = self.value[at], self.writer[at], self.write_time[at]
        over = self.known[at] & ~now.order.sees(writer, writer, time, lane) & differs(before, value)
        if over.any():
            now.overwritten(self, over, at, lane, writer, time)
            value = np.where(over, self._raced(value, before, lane, writer, now), value)
        return value

    def _settle(self, at, value, lane, now):
        """Lanes of one instruction that write one location: which of them stays is not defined in PTX."""
        clash = differs(self.value[at], value)
        if clash.any():
            now.overwritten(self, clash, at, lane, self.writer[at], self.write_time[at])
            if now.place is None:
                self.value[at[clash]] = self.poison

    def _behind_copies(self, at, lane, now):
        late = self.pending[at]
        if late.any():
            now.not_waited(self, late, at, lane, self.write_time[at], "overwrites")

    def _behind_reads(self, at, lane, now):
        low, high, time = self.low[at], self.high[at], self.read_time[at]
        behind = now.order.sees(low, high, time, lane)
        if not behind.all():
            now.race(self, ~behind, at, lane, np.where(low == lane, high, low), time, "overwrites", "read")
        return behind
