"""How a row is cut over a cluster, its blocks, their threads and their registers: the only table of heuristics."""

from dataclasses import dataclass
from functools import cache

MAX_N = 300_000
WIDEST_LOAD_BITS = 128


@dataclass(frozen=True)
class RowPlan:
    """A way to cut a row; it holds no n, so that a new row length within the plan compiles nothing.

    vector: elements a load.  vectors: loads a thread.  threads: of one block, for one row.  rows: in a block.
    cluster: blocks that share a row.
    """

    vector: int
    vectors: int
    threads: int
    rows: int
    cluster: int

    @property
    def block(self) -> int:
        """Threads in a block."""
        return self.threads * self.rows

    @property
    def capacity(self) -> int:
        """The longest row, in elements."""
        return self.vector * self.vectors * self.threads * self.cluster

    @property
    def shape(self):
        """((thread, rank), ((element of a vector, 1), vector)): with `stride`, the TV layout of a row."""
        return ((self.threads, self.cluster), ((self.vector, 1), self.vectors))

    @property
    def stride(self):
        """Neighbouring vectors lie in neighbouring threads, then in the next block, then in the same thread again."""
        across = self.threads * self.vector
        return ((self.vector, across), ((1, 0), across * self.cluster))


# Vectors a thread, threads a row, rows a block, cluster. The first line that holds the row is taken.
# Eight vectors keep enough bytes in flight; a block moves 8 KB at least, since blocks cost time to start.
WIDE = (
    (8, 8, 16, 1),
    (8, 16, 8, 1),
    (8, 32, 4, 1),
    (8, 64, 1, 1),
    (8, 128, 1, 1),
    (8, 256, 1, 1),
    (8, 128, 1, 4),
    (8, 128, 1, 8),
    (8, 128, 1, 16),
    (5, 512, 1, 8),
    (8, 256, 1, 16),
    (5, 512, 1, 16),
    (10, 512, 1, 16),
)
ONE_ELEMENT = (
    (32, 8, 16, 1),
    (32, 32, 4, 1),
    (32, 128, 1, 1),
    (32, 512, 1, 1),
    (32, 256, 1, 8),
    (32, 512, 1, 16),
    (20, 1024, 1, 16),
)
COPY_WIDE = (1, 256, 1, 1)
COPY_ONE_ELEMENT = (8, 256, 1, 1)


def plan_row(n: int, element_bits: int, alignment: int) -> RowPlan:
    """The plan for rows of n elements of element_bits bits each.

    alignment: a number of elements that divides n, the distance between rows and the offset of the first element from
    a 16-byte boundary; 128-bit loads need a multiple of 128 / element_bits, otherwise a load takes one element.
    Raises ValueError for n outside 1 .. MAX_N.
    """
    if not 1 <= n <= MAX_N:
        raise ValueError(f"a row has {n} elements; rows of 1 to {MAX_N} elements are supported: split or pad the row")
    return next(plan for plan in plans(vector_width(element_bits, alignment)) if n <= plan.capacity)


def plan_copy(element_bits: int, alignment: int) -> RowPlan:
    """The plan for copying contiguous memory, cut into tiles of `capacity` elements.

    alignment: a number of elements that divides both addresses.
    """
    vector = vector_width(element_bits, alignment)
    return RowPlan(vector, *(COPY_ONE_ELEMENT if vector == 1 else COPY_WIDE))


def vector_width(element_bits: int, alignment: int) -> int:
    """Elements a load: 128 bits of them where the alignment allows it, otherwise one."""
    widest = WIDEST_LOAD_BITS // element_bits
    return widest if alignment % widest == 0 else 1


@cache
def plans(vector: int) -> tuple[RowPlan, ...]:
    """All plans with this vector width, shortest rows first, none longer than the longest row needs."""
    table = [RowPlan(vector, *line) for line in (ONE_ELEMENT if vector == 1 else WIDE)]
    needed = sum(plan.capacity < MAX_N for plan in table) + 1
    return tuple(table[:needed])
