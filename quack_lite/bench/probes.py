"""Kernels that measure the machine: read as fast as it can, and follow a chain of addresses."""

import cutlass
import cutlass.cute as cute

from quack_lite import copies, tiling

READ_PLAN = tiling.RowPlan(vector=4, vectors=4, threads=512, rows=1, cluster=1)
NEVER = 12345.678


@cute.kernel
def read_kernel(mX: cute.Tensor, mY: cute.Tensor, plan: cutlass.Constexpr):
    """Reads mX (n) and adds it up; writes only a sum that the caller's data cannot give."""
    place = copies.row_place(plan)
    tile = cutlass.Int64(place.row)
    gX = cute.local_tile(mX, (plan.capacity,), (tile,))  # (capacity)
    tXpX = copies.predicate(mX.shape[0] - tile * plan.capacity, place, plan)  # (1, vectors)
    x = copies.load(copies.partition(gX, place, plan), tXpX)  # ((vector, 1), vectors)
    total = x.reduce(cute.ReductionOp.ADD, 0.0, 0)
    if total == NEVER:
        mY[0] = total


@cute.jit
def read(mX: cute.Tensor, mY: cute.Tensor, stream):
    """mX (n) float32, n a multiple of 4; mY (1) float32 stays as it is."""
    blocks = cute.ceil_div(mX.shape[0], READ_PLAN.capacity)
    read_kernel(mX, mY, READ_PLAN).launch(grid=(blocks, 1, 1), block=(READ_PLAN.block, 1, 1), stream=stream)


@cute.kernel
def chase_kernel(mNext: cute.Tensor, mEnd: cute.Tensor):
    """One thread goes from i to mNext[i], as often as mEnd (1) says, and writes where it ends."""
    i = cutlass.Int32(0)
    for _ in range(mEnd[0]):
        i = mNext[i]
    mEnd[0] = i


@cute.jit
def chase(mNext: cute.Tensor, mEnd: cute.Tensor, stream):
    """mNext (n) int32: the chain.  mEnd (1) int32: steps before, the last index after."""
    chase_kernel(mNext, mEnd).launch(grid=(1, 1, 1), block=(1, 1, 1), stream=stream)
