"""Runs a program on the model, cluster after cluster, and keeps what it did."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from quack_lite.counted import counted
from quack_lite.simt.barriers import Stopped
from quack_lite.simt.checks import Checks, Report
from quack_lite.simt.counts import Counts, tally
from quack_lite.simt.dtypes import ITEMSIZE, rounded
from quack_lite.simt.machine import Block
from quack_lite.simt.memory import Memory
from quack_lite.simt.moment import Moment
from quack_lite.simt.order import WARP, Order
from quack_lite.simt.trace import Event, Line, Request

MOST_THREADS, MOST_RANKS = 1024, 16  # of a CTA; CTAs of a cluster, on Hopper (CUDA C++ Programming Guide)
APART = 256  # bytes: arrays in global memory begin at multiples, as those from cudaMalloc


@dataclass(frozen=True)
class Tensor:
    """An array for a program. values: None for an output, which a program must write completely."""

    dtype: str
    shape: tuple[int, ...]
    values: np.ndarray | None = None


def tensor(values, dtype: str) -> Tensor:
    """An array that holds the values, rounded to `dtype`. ValueError where they do not fit."""
    held = rounded(values, dtype)
    return Tensor(dtype, held.shape, held)


def empty(shape, dtype: str) -> Tensor:
    """An output: poison until the program writes it."""
    rounded(0, dtype)
    return Tensor(dtype, shape if isinstance(shape, tuple) else (shape,))


@dataclass(frozen=True)
class Run:
    """What a program did.

    outputs: what is in each `empty` argument.  arrays: in each array argument.  reports: what is wrong, none if
    nothing.  hung: it stopped where a GPU would wait for ever.  events: every verb, cluster after cluster.
    Values of float16 come back as float16, those of bfloat16 as float32.
    """

    outputs: tuple[np.ndarray, ...]
    arrays: tuple[np.ndarray, ...]
    reports: list[Report]
    hung: bool
    events: list[Event]
    grid: int
    block: int
    cluster: int

    @property
    def ok(self) -> bool:
        """Whether nothing is reported."""
        return not self.reports

    @cached_property
    def counts(self) -> dict[tuple[Line, str], Counts]:
        """What each verb on each line of the program cost, all CTAs together."""
        return tally(self.events)

    def total(self, verb: str | None = None) -> Counts:
        """Of one verb, or of all."""
        return sum((found for (_, name), found in self.counts.items() if verb in (None, name)), Counts())

    def by_line(self) -> dict[Line, Counts]:
        """Of each line, in the order of the source."""
        lines = sorted({line for line, _ in self.counts})
        return {line: sum((c for (at, _), c in self.counts.items() if at == line), Counts()) for line in lines}

    def requests(self, line: int | None = None, verb: str | None = None, cta: int = 0, warp: int = 0) -> list[Request]:
        """What a warp of a CTA asked of memory, in order; of a line's number or a verb if they are given."""
        found = []
        for event in self.events:
            here = event.cta <= cta < event.cta + self.cluster and event.address is not None
            if here and line in (None, event.line.number) and verb in (None, event.verb):
                number = (cta - event.cta) * self.block // WARP + warp
                if event.asking[number]:
                    found.append(event.request(number))
        return found

    def __repr__(self) -> str:
        lines = [f"{line.number:4}  {line.text}\n      {counts}" for line, counts in self.by_line().items()]
        return "\n".join([*lines, *(str(report) for report in self.reports or ["nothing to report"])])


def run(program: Callable, *args, grid: int, block: int, cluster: int = 1, order: int | None = None) -> Run:
    """Runs program(b, *args) for a grid of CTAs with `block` threads each, `cluster` CTAs at a time.

    args: arrays (NumPy's, tensor(), empty()) reach the program as arrays in global memory, anything else as it is.
    order: the seed of a sequence in which warps and CTAs run; None: CTAs by their number, and a race leaves poison.
    The arrays that are given are copied. ValueError for a launch that CUDA refuses.
    """
    if not 0 < block <= MOST_THREADS or block % WARP:
        raise ValueError(f"block={block}: a multiple of {WARP}, at most {MOST_THREADS}; a part of a warp costs a whole")
    if not 0 < cluster <= MOST_RANKS or grid % cluster or grid < 1:
        raise ValueError(f"grid={grid}, cluster={cluster}: clusters of 1 to {MOST_RANKS} CTAs that divide the grid")
    memories, handles = _place(program, args)
    checks, events, lines = Checks(cluster, block), [], [Line("", 0)]
    random = None if order is None else np.random.default_rng(order)
    clusters = np.arange(grid // cluster) if random is None else random.permutation(grid // cluster)
    hung = False
    for number in clusters:
        place = None if random is None else _places(random, cluster * block)
        span = 2 * cluster * block
        now = Moment(Order(int(number) * span, cluster, block), checks, events, lines, place)
        b = Block(now, int(number) * cluster, grid)
        try:
            program(b, *handles)
            b.finish()
        except Stopped:
            hung = True
            break
    if not hung:
        _all_written(memories, checks)
    arrays = tuple(_given_back(memory) for memory in memories)
    outputs = tuple(array for array, memory in zip(arrays, memories, strict=True) if not memory.given)
    return Run(outputs, arrays, list(checks.reports.values()), hung, events, grid, block, cluster)


def _place(program, args):
    """The arrays in global memory, and the arguments with them in their places."""
    names = list(inspect.signature(program).parameters)[1:]
    names += [f"argument {k}" for k in range(len(names), len(args))]
    memories, handles, base = [], [], 0
    for name, given in zip(names, args, strict=False):
        given = _tensor_of(given, name) if isinstance(given, np.ndarray) else given
        if isinstance(given, Tensor):
            given = Memory(name, "global", given.shape, given.dtype, base, values=given.values)
            base += -(-given.size * given.itemsize // APART) * APART
            memories.append(given)
        handles.append(given)
    return memories, handles


def _tensor_of(array, name):
    if array.dtype.name not in ITEMSIZE:
        raise ValueError(f"{name} is {array.dtype}: the model has {', '.join(ITEMSIZE)}; see tensor(values, dtype)")
    return tensor(array, array.dtype.name)


def _places(random, lanes):
    """(2 * lanes,) when each lane's turn comes: warps in a random sequence, lanes within them; agents before all."""
    warps = random.permutation(lanes // WARP)[:, None] * WARP
    turns = np.concatenate([start + random.permutation(WARP) for start in warps])
    return np.concatenate([turns + 1, np.zeros(lanes, dtype=np.int64)])


def _all_written(memories, checks):
    for memory in memories:
        missing = np.flatnonzero(~memory.known)
        if len(missing):
            elements = counted(len(missing), "elements")
            checks.report("never written", None, array=memory.name, elements=elements, index=int(missing[0]))


def _given_back(memory):
    value = memory.value.reshape(memory.shape)
    return value.astype(np.float16) if memory.dtype == "float16" else value
