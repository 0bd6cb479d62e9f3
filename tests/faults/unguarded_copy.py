"""A copy to shared memory that asks no predicate: the padding between rows comes with them."""

import cutlass.cute as cute

from faults import kernel_of
from quack_lite import copies, staged
from quack_lite.evidence.delay import replaced

CAUGHT_BY = ("values",)
KERNEL = kernel_of("softmax_backward", "bfloat16", "block")


def send_vectors(sX, mX, tile, plan):
    tXgX, tXsX, _ = copies.vectors_of(mX[tile.row, None], sX, tile, plan)
    atom = cute.make_copy_atom(cute.nvgpu.cpasync.CopyG2SOp(), mX.element_type, num_bits_per_copy=copies.ACCESS_BITS)
    cute.copy(atom, tXgX, tXsX)


def planted():
    return replaced(staged, {"send_vectors": send_vectors})
