"""A barrier that one warp and a half of each block reach, the others do not."""

import cutlass.cute as cute

from faults import kernel_of
from quack_lite.evidence.delay import replaced

CAUGHT_BY = ("synccheck",)
KERNEL = kernel_of("softmax", "float32", "block")
REACHED_BY = 48

right_barrier = cute.arch.barrier


@cute.jit
def barrier():
    thread, _, _ = cute.arch.thread_idx()
    if thread < REACHED_BY:
        right_barrier()


def planted():
    return replaced(cute.arch, {"barrier": barrier})
