"""A load that asks no predicate: it reads the padding between rows, and past the end of the last one."""

import cutlass.cute as cute

from faults import kernel_of
from quack_lite import copies
from quack_lite.evidence.delay import replaced

CAUGHT_BY = ("memcheck", "initcheck", "values")
KERNEL = kernel_of("softmax", "float32", "block")


def fetch(mX, tile, plan, fill=0.0):
    rX = copies.empty_part(mX.element_type, plan)
    rX.edge.fill(mX.element_type(fill))
    tXgX, tXrX, _ = copies.vectors_of(mX[tile.row, None], rX.vectors, tile, plan)
    cute.copy(copies.vector_atom(mX), tXgX, tXrX)
    return rX


def planted():
    return replaced(copies, {"fetch": fetch})
