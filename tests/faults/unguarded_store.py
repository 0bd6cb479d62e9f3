"""A store that asks no predicate: it writes over what lies between and behind the rows."""

import cutlass.cute as cute

from faults import kernel_of
from quack_lite import copies
from quack_lite.evidence.delay import replaced

CAUGHT_BY = ("guard",)
KERNEL = kernel_of("softmax", "bfloat16", "block")


def store(values, mY, tile, plan):
    rY = copies.rounded(values, mY.element_type, plan)
    tYgY, tYrY, _ = copies.vectors_of(mY[tile.row, None], rY.vectors, tile, plan)
    cute.copy(copies.vector_atom(mY), tYrY, tYgY)


def planted():
    return replaced(copies, {"store": store})
