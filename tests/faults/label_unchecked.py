"""A label is looked up whatever it is: outside the classes something outside the row is read."""

import cutlass.cute as cute
from cutlass import Int32

from faults import kernel_of
from quack_lite.evidence.delay import replaced
from quack_lite.kernels import cross_entropy

CAUGHT_BY = ("values",)
KERNEL = kernel_of("cross_entropy", "bfloat16")


@cute.jit
def class_of(mTarget, tile, ignore_index):
    label = Int32(cross_entropy.NO_CLASS)
    if tile.n > 0:
        label = Int32(mTarget[tile.row] % (2 * tile.n))
        if mTarget[tile.row] == ignore_index:
            label = Int32(cross_entropy.IGNORED)
    return label


def planted():
    return replaced(cross_entropy, {"class_of": class_of})
