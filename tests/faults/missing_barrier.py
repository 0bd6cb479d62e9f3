"""A block reduction without the barrier between the warps' writes to shared memory and the reads."""

import cutlass.cute as cute

from faults import kernel_of
from quack_lite.evidence.delay import replaced

CAUGHT_BY = ("racecheck",)
KERNEL = kernel_of("softmax", "float32", "block")


def planted():
    return replaced(cute.arch, {"barrier": lambda: None})
