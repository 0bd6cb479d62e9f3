"""How a row is cut over a cluster, its blocks, their threads and their registers: the package's only tuned numbers."""

from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

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
    turns), else 0.  groups: how many of those groups start for each that the GPU holds with one block on an SM.
    lean: no registers are left for weights and sums: weights are loaded anew for each row, and sums lie in shared
    memory.
    """

    vector: int
    vectors: int
    threads: int
    rows: int
    cluster: int
    stages: int = 0
    groups: int = 0
    lean: bool = False

    @property
    def block(self) -> int:
        """The most threads in a block."""
        return self.threads * self.rows

    @property
    def capacity(self) -> int:
        """Elements that a row's threads hold at once: the longest row, unless rows stream by or are cut in pieces."""
        return self.vector * self.vectors * self.threads * self.cluster


class ByWidth(NamedTuple):
    """A table for elements of 16 bits and one for elements of 32.

    Weights are float32: as many bytes as a row of 32 bits, and twice those of a row of 16, if each row reads them anew.
    """

    of_16_bits: tuple
    of_32_bits: tuple


# Vectors of a thread, threads, rows, cluster; stages, groups, lean.
# The first line that holds the row is taken. Measured on an H200: four to eight vectors keep enough bytes in flight; a
# block that moves less than 8 KB costs more time to start than it saves; several small blocks on an SM overlap better
# than a large one. Groups that all start at once end together: one more than fit costs a whole turn of waiting.
# softmax and log_softmax keep a row in registers; in which size of block they need the fewest, the compiler decides.
# Their backward has two tensors in shared memory.
SHORT_SOFTMAX = ((2, 16, 16, 1), (4, 32, 8, 1), (8, 32, 4, 1), (6, 192, 1, 1), (8, 128, 1, 2))
LONGEST_SOFTMAX = ((8, 320, 1, 16), (8, 512, 1, 16), (10, 512, 1, 16))
SOFTMAX = (
    *SHORT_SOFTMAX,
    (8, 256, 1, 2),
    (8, 256, 1, 4),
    (8, 256, 1, 8),
    (5, 256, 1, 16),
    (8, 256, 1, 16),
    *LONGEST_SOFTMAX,
)
LOG_SOFTMAX = (
    *SHORT_SOFTMAX,
    (8, 128, 1, 4),
    (8, 128, 1, 8),
    (8, 128, 1, 16),
    (5, 256, 1, 16),
    (4, 512, 1, 16),
    *LONGEST_SOFTMAX,
)
SOFTMAX_BACKWARD = (
    (4, 16, 8, 1),
    (4, 32, 8, 1),
    (2, 256, 1, 1),
    (4, 512, 1, 1),
    (4, 512, 1, 2),
    (4, 512, 1, 4),
    (2, 512, 1, 16),
    (5, 480, 1, 8),
    (4, 512, 1, 16),
)
# rms_norm; add_rms_norm, which loads two tensors and stores two; layer_norm, which has a weight and a bias; their
# backward.
RMS_NORM = ByWidth(
    of_16_bits=(
        (4, 16, 8, 1),
        (8, 16, 8, 1),
        (8, 32, 4, 1),
        (4, 128, 1, 1),
        (4, 160, 1, 1),
        (4, 256, 1, 1),
        (4, 512, 1, 1),
        (5, 416, 1, 2, 2, 8),
        (8, 128, 1, 8, 2, 2),
        (8, 128, 1, 16, 2, 2),
        (5, 480, 1, 8, 2, 1),
        (5, 416, 1, 16, 2, 1),
        (5, 512, 1, 16, 2, 1),
    ),
    of_32_bits=(
        (4, 16, 8, 1),
        (4, 32, 4, 1),
        (8, 32, 4, 1),
        (4, 128, 1, 1),
        (4, 160, 1, 1),
        (4, 256, 1, 1),
        (4, 512, 1, 1),
        (4, 512, 1, 2),
        (4, 512, 1, 4),
        (4, 256, 1, 16),
        (8, 256, 1, 16),
        (5, 512, 1, 16, 2, 1),
        (10, 512, 1, 16, 2, 1),
    ),
)
ADD_RMS_NORM = (
    (4, 16, 8, 1),
    (4, 32, 4, 1),
    (4, 64, 1, 1),
    (4, 128, 1, 1),
    (4, 160, 1, 1),
    (4, 256, 1, 1),
    (4, 256, 1, 2),
    (4, 512, 1, 2),
    (5, 224, 1, 8, 2, 1),
    (4, 512, 1, 8, 2, 2),
    (4, 320, 1, 16, 2, 1),
    (5, 416, 1, 16, 2, 1),
    (5, 512, 1, 16, 1, 1),
    (10, 512, 1, 16, 1, 1),
)
LAYER_NORM = ByWidth(
    of_16_bits=(
        (4, 16, 8, 1, 2, 3),
        (4, 32, 8, 1, 2, 3),
        (8, 32, 4, 1),
        (4, 128, 1, 1, 3, 2),
        (5, 128, 1, 1, 2, 2),
        (4, 256, 1, 1, 3, 1),
        (4, 512, 1, 1, 3, 1),
        (4, 512, 1, 2, 2, 1),
        (4, 512, 1, 4, 2, 1),
        (4, 512, 1, 8, 2, 1),
        (5, 256, 1, 16, 2, 1),
        (4, 512, 1, 16, 2, 1),
        (5, 512, 1, 16, 2, 1, True),
    ),
    of_32_bits=(
        (4, 16, 8, 1),
        (4, 32, 8, 1),
        (8, 32, 8, 1),
        (4, 128, 1, 1),
        (4, 256, 1, 1),
        (5, 256, 1, 1),
        (4, 512, 1, 1),
        (4, 512, 1, 2, 3, 1),
        (10, 224, 1, 4, 2, 1),
        (8, 256, 1, 8, 2, 1),
        (8, 256, 1, 16, 2, 1),
        (4, 608, 1, 16, 3, 1),
        (8, 512, 1, 16, 1, 1),
        (10, 512, 1, 16, 2, 1, True),
    ),
)
RMS_NORM_BACKWARD = (
    (4, 16, 8, 1, 2, 2),
    (4, 32, 4, 1, 2, 2),
    (5, 128, 1, 1, 2, 2),
    (4, 128, 1, 2, 2, 2),
    (4, 256, 1, 2, 2, 1),
    (5, 224, 1, 4, 2, 1),
    (4, 128, 1, 16, 2, 6),
    (4, 512, 1, 8, 2, 1),
    (5, 256, 1, 16, 2, 1),
    (4, 512, 1, 16, 2, 1),
)
ADD_RMS_NORM_BACKWARD = (
    (4, 16, 8, 1, 2, 2),
    (4, 32, 4, 1, 2, 2),
    (4, 128, 1, 1, 2, 2),
    (5, 128, 1, 1, 2, 2),
    (4, 128, 1, 2, 2, 2),
    (4, 256, 1, 2, 2, 1),
    (5, 224, 1, 4, 2, 1),
    (4, 256, 1, 8, 2, 1),
    (5, 224, 1, 16, 2, 1),
    (5, 256, 1, 16, 2, 1),
    (4, 512, 1, 16, 1, 1),
)
LAYER_NORM_BACKWARD = (
    (4, 16, 8, 1, 2, 6),
    (4, 32, 4, 1, 2, 6),
    (4, 128, 1, 1, 3, 2),
    (5, 128, 1, 1, 2, 2),
    (4, 256, 1, 1, 3, 1),
    (4, 256, 1, 2, 3, 1),
    (4, 256, 1, 4, 3, 1),
    (4, 256, 1, 8, 3, 1),
    (4, 256, 1, 16, 2, 1),
    (5, 256, 1, 16, 2, 1),
    (4, 512, 1, 16, 1, 1, True),
)
# cross_entropy: a row of any length streams through one: of a block with several rows, a block, a cluster.
STREAM = ((4, 16, 8, 1), (4, 128, 1, 1), (4, 256, 1, 16))
SHORT_STEPS = 16  # of a row that shares a block; one that would take more does not
# A block takes a piece of a row: in a loss's backward, in a smoothed loss, which has a weight, and in its backward, in
# swiglu; in copy, of contiguous memory.
LOSS_PIECE = (2, 160, 1, 1)
SMOOTHED_LOSS_PIECE = (4, 128, 1, 1)
PRODUCT_PIECE = (2, 64, 1, 1)
COPY_PIECE = (1, 256, 1, 1)


@cache
def plans(element_bits: int, table: tuple) -> tuple[RowPlan, ...]:
    """All plans of a table for elements of element_bits bits, shortest rows first, none longer than MAX_N needs."""
    if isinstance(table, ByWidth):
        table = table.of_32_bits if element_bits == 32 else table.of_16_bits
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
    """The plan for rows of n elements that stream by; few rows, FEW_ROWS at most, share no block, and long ones get
    a cluster each."""
    short, block, cluster = plans_of_streams(element_bits)
    if n <= (short.capacity if few_rows else stream_lengths(short)[1]):
        return short
    return cluster if few_rows and n >= stream_lengths(cluster)[0] else block


@cache
def plans_of_streams(element_bits: int) -> tuple[RowPlan, ...]:
    """The three plans through which rows stream."""
    return tuple(RowPlan(WIDEST_LOAD_BITS // element_bits, *line) for line in STREAM)


def stream_lengths(plan: RowPlan) -> tuple[int, int]:
    """The shortest and the longest row that gets this plan of plans_of_streams: of many rows, or of few."""
    short, _, cluster = plans_of_streams(WIDEST_LOAD_BITS // plan.vector)
    shared = SHORT_STEPS * short.capacity
    if plan == short:
        return 1, shared
    return (shared if plan == cluster else short.capacity) + 1, MAX_N


def plan_piece(element_bits: int, line: tuple) -> RowPlan:
    """The plan for pieces of `capacity` elements: of LOSS_PIECE, PRODUCT_PIECE or COPY_PIECE."""
    return RowPlan(WIDEST_LOAD_BITS // element_bits, *line)
