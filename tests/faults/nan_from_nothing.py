"""A combination that takes the exponential of -inf - -inf where a thread, warp or block holds nothing: NaN."""

from faults import kernel_of
from quack_lite import reductions
from quack_lite.evidence.delay import replaced

CAUGHT_BY = ("values",)
KERNEL = kernel_of("softmax", "bfloat16", "cluster")


def planted():
    return replaced(reductions, {"finite": lambda maximum: maximum})
