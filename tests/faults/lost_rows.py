"""Rows that do not fill a turn of all groups of blocks are left out: of the result, and of the gradient of a weight."""

from faults import kernel_of
from quack_lite import turns
from quack_lite.evidence.delay import replaced

CAUGHT_BY = ("values", "guard")
KERNEL = kernel_of("rms_norm_backward", "float32")


def planted():
    return replaced(turns, {"count": lambda mX, plan: mX.shape[0] // turns.stride(plan)})
