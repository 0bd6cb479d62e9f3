"""The vector at the end of a row is moved as a whole: it reaches over the end into the padding."""

from faults import kernel_of
from quack_lite import copies
from quack_lite.evidence.delay import replaced

CAUGHT_BY = ("guard", "values")
KERNEL = kernel_of("softmax", "bfloat16", "block")

right_tile = copies.row_tile


def row_tile(*arguments):
    tile = right_tile(*arguments)
    return tile._replace(end=tile.n)


def planted():
    return replaced(copies, {"row_tile": row_tile})
