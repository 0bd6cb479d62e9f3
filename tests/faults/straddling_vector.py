"""One-element predicates and 128-bit accesses: the last vector of a row reaches over its end into the padding."""

import cutlass

from faults import softmax_over
from quack_lite import copies
from quack_lite.evidence.delay import replaced

CAUGHT_BY = ("guard", "values")
KERNEL = softmax_over("bfloat16", "block")
LAST_ELEMENTS = 3


def row_length(mX, place):
    """A length that the vector does not divide, one vector longer than allowed once it is rounded up."""
    return right_row_length(mX, place) + cutlass.Int32(LAST_ELEMENTS)


right_row_length = copies.row_length


def planted():
    return replaced(copies, {"row_length": row_length})
