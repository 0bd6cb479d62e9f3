"""Lanes past the end of a row count as (0 - mean) squared in the variance."""

from faults import kernel_of
from quack_lite import copies
from quack_lite.evidence.delay import replaced

CAUGHT_BY = ("values",)
KERNEL = kernel_of("layer_norm", "float32")


def planted():
    return replaced(copies, {"inside_piece": lambda values, tile, j, plan: values})
