"""A load that asks no predicate: it reads the padding between rows, and past the end of the last one."""

import cutlass.cute as cute

from faults import softmax_over
from quack_lite import copies
from quack_lite.evidence.delay import replaced

CAUGHT_BY = ("memcheck", "initcheck", "values")
KERNEL = softmax_over("float32", "block")


def load(tXgX, tXpX, fill=0.0):
    tXrX = cute.make_rmem_tensor(tXgX.shape, tXgX.element_type)
    cute.copy(copies.vector_atom(tXgX), tXgX, tXrX)
    return tXrX.load()


def planted():
    return replaced(copies, {"load": load})
