"""A store that asks no predicate: it writes over what lies between and behind the rows."""

import cutlass.cute as cute

from faults import softmax_over
from quack_lite import copies
from quack_lite.evidence.delay import replaced

CAUGHT_BY = ("guard",)
KERNEL = softmax_over("bfloat16", "block")


def store(values, tYgY, tYpY):
    tYrY = cute.make_rmem_tensor(tYgY.shape, tYgY.element_type)
    tYrY.store(values.to(tYgY.element_type))
    cute.copy(copies.vector_atom(tYgY), tYrY, tYgY)


def planted():
    return replaced(copies, {"store": store})
