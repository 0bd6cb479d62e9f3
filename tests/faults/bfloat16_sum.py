"""A sum that is kept in bfloat16."""

from cutlass import BFloat16, Float32

from faults import kernel_of
from quack_lite import reductions
from quack_lite.evidence.delay import replaced

CAUGHT_BY = ("values",)
KERNEL = kernel_of("softmax", "bfloat16", "block")


def combine(a, b):
    maximum, total = reductions.combine_softmax(a, b)
    return maximum, Float32(BFloat16(total))


def planted():
    return replaced(reductions, {"SOFTMAX": reductions.SOFTMAX._replace(combine=combine)})
