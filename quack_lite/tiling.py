"""How a row is cut over a cluster, its blocks, their threads and their registers: the package's only tuned numbers."""

from dataclasses import dataclass
from functools import cache

MAX_N = 300_000  # the longest row that any table is made for
WIDEST_LOAD_BITS = 128
FEW_ROWS = 128  # so few streams do not fill a GPU with a block each


@dataclass(frozen=True)
class RowPlan:
    """A way to cut a row; it holds no n, so that a new row length within the plan compiles nothing.

    vector: elements of 128 bits, of the input's dtype.  vectors: of a thread.  threads: of a block, for one row; the
    most, where a block has a row to itself, since a launch takes as many warps as its rows need.  rows: of a block.
    cluster: blocks that share a row.
    stages: turns on their way to shared memory while one is worked on, if groups of blocks go on over the rows (see
    turns), else 0.  groups: the most of those groups; with sums, as many as an SM takes.  sums: each group adds up
    sums over its rows.  lean: no registers are left for weights and sums: weights are loaded anew for each row, and
    sums lie in shared memory.
    """

    vector: int
    vectors: int
    threads: int
    rows: int
    cluster: int
    stages: int = 0
    groups: int = 0
    sums: bool = False
    lean: bool = False

    @property
    def block(self) -> int:
        """The most threads in a block."""
        return self.threads * self.rows

    @property
    def capacity(self) -> int:
        """Elements that a row's threads hold at once: the longest row, unless rows stream by or are cut in pieces."""
        return self.vector * self.vectors * self.threads * self.cluster


# Vectors of a thread, threads, rows, cluster; stages, groups, sums, lean.
# The first line that holds the row is taken. Measured on an H200: four to eight vectors keep enough bytes in flight; a
# block that moves less than 8 KB costs more time to start than it saves; several small blocks on an SM overlap better
# than a large one.
# softmax and log_softmax: one tensor stays in registers, or two in their backward.
ONE_TENSOR = (
    (2, 16, 16, 1),
    (4, 32, 8, 1),
    (8, 32, 4, 1),
    (6, 192, 1, 1),
    (8, 128, 1, 2),
    (8, 128, 1, 4),
    (8, 128, 1, 8),
    (8, 128, 1, 16),
    (5, 512, 1, 8),
    (8, 256, 1, 16),
    (5, 512, 1, 16),
    (10, 512, 1, 16),
)
TWO_TENSORS = (
    (4, 16, 8, 1),
    (4, 32, 8, 1),
    (4, 256, 1, 1),
    (4, 128, 1, 4),
    (4, 128, 1, 8),
    (4, 128, 1, 16),
    (4, 256, 1, 16),
    (4, 320, 1, 16),
    (4, 512, 1, 16),
)
# rms_norm and layer_norm; add_rms_norm, which loads two tensors and stores two; their backward.
NORM = (
    (4, 16, 8, 1),
    (4, 32, 4, 1),
    (5, 128, 1, 1),
    (4, 256, 1, 1),
    (4, 512, 1, 1, 2, 2112),
    (4, 512, 1, 2, 2, 528),
    (4, 256, 1, 8, 2, 264),
    (4, 256, 1, 16, 3, 128),
    (4, 320, 1, 16, 2, 128),
    (4, 512, 1, 16, 3, 128),
    (5, 512, 1, 16),
    (10, 512, 1, 16),
)
ADD_NORM = (
    (4, 16, 8, 1),
    (4, 32, 4, 1),
    (5, 128, 1, 1),
    (4, 256, 1, 1),
    (4, 512, 1, 1, 2, 2112),
    (4, 512, 1, 2, 2, 528),
    (4, 256, 1, 8, 3, 264),
    (4, 320, 1, 16, 3, 128),
    (5, 512, 1, 16),
    (10, 512, 1, 16),
)
NORM_BACKWARD = (
    (4, 16, 8, 1, 2, 2, True),
    (4, 32, 4, 1, 2, 2, True),
    (4, 128, 1, 1, 2, 2, True),
    (4, 128, 1, 2, 2, 2, True),
    (4, 256, 1, 2, 2, 1, True),
    (4, 256, 1, 4, 2, 1, True),
    (4, 256, 1, 8, 2, 1, True),
    (4, 256, 1, 16, 2, 1, True),
    (5, 256, 1, 16, 2, 1, True),
    (4, 512, 1, 16, 1, 1, True, True),
)
# cross_entropy: a row of any length streams through one: of a block with several short rows, a block, a cluster.
STREAM = ((4, 16, 8, 1), (4, 128, 1, 1), (4, 256, 1, 16))
SHORT_STEPS = 8  # of a row that shares a block; one that would take more does not
# A block takes a piece of a row: in a loss's backward and a smoothed loss, in swiglu; in copy, of contiguous memory.
LOSS_PIECE = (2, 256, 1, 1)
PRODUCT_PIECE = (2, 64, 1, 1)
COPY_PIECE = (1, 256, 1, 1)


@cache
def plans(element_bits: int, table: tuple) -> tuple[RowPlan, ...]:
    """All plans of a table for elements of element_bits bits, shortest rows first, none longer than MAX_N needs."""
    found = [RowPlan(WIDEST_LOAD_BITS // element_bits, *line) for line in table]
    needed = sum(plan.capacity < MAX_N for plan in found) + 1
    return tuple(found[:needed])


def plan_row(n: int, candidates: tuple[RowPlan, ...]) -> RowPlan:
    """The first of the plans that holds a row of n elements. Raises ValueError for n outside 1 .. longest."""
    most = longest(candidates)
    if not 1 <= n <= most:
        raise ValueError(f"a row has {n} elements; rows of 1 to {most} elements are supported: split or pad the row")
    return next(plan for plan in candidates if n <= plan.capacity)


def longest(candidates: tuple[RowPlan, ...]) -> int:
    """The longest row that one of the plans holds."""
    return min(MAX_N, candidates[-1].capacity)


def plan_stream(n: int, few_rows: bool, element_bits: int) -> RowPlan:
    """The plan for rows of n elements that stream by; of few rows, FEW_ROWS at most, each long one gets a cluster."""
    short, block, cluster = plans_of_streams(element_bits)
    if n <= stream_lengths(short)[1]:
        return short
    return cluster if few_rows and n >= stream_lengths(cluster)[0] else block


@cache
def plans_of_streams(element_bits: int) -> tuple[RowPlan, ...]:
    """The three plans through which rows stream."""
    return tuple(RowPlan(WIDEST_LOAD_BITS // element_bits, *line) for line in STREAM)


def stream_lengths(plan: RowPlan) -> tuple[int, int]:
    """The shortest and the longest row that gets this plan of plans_of_streams: of many rows, or of few."""
    short = SHORT_STEPS * plans_of_streams(WIDEST_LOAD_BITS // plan.vector)[0].capacity
    if plan.rows > 1:
        return 1, short
    return (short if plan.cluster == 1 else 2 * short) + 1, MAX_N


def plan_piece(element_bits: int, line: tuple) -> RowPlan:
    """The plan for pieces of `capacity` elements: of LOSS_PIECE, PRODUCT_PIECE or COPY_PIECE."""
    return RowPlan(WIDEST_LOAD_BITS // element_bits, *line)
