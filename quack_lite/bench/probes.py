"""Kernels that measure the machine: read as fast as it can, and follow a chain of addresses."""

import cutlass
import cutlass.cute as cute
from cutlass import Float32

VECTOR, VECTORS, THREADS = 4, 4, 512
NEVER = 12345.678


@cute.kernel
def read_kernel(mX: cute.Tensor, mY: cute.Tensor):
    """Reads mX (n) and adds it up; writes only a sum that the caller's data cannot give."""
    block, _, _ = cute.arch.block_idx()
    thread, _, _ = cute.arch.thread_idx()
    first = cutlass.Int64(block) * THREADS * VECTORS + thread
    gX = cute.zipped_divide(mX, (VECTOR,))  # (vector, n / vector)
    rX = cute.make_rmem_tensor((VECTOR, VECTORS), Float32)  # (vector, vectors)
    rX.fill(0.0)
    for j in cutlass.range_constexpr(VECTORS):
        if first + j * THREADS < mX.shape[0] // VECTOR:
            rX[None, j].store(gX[None, first + j * THREADS].load())
    total = rX.load().reduce(cute.ReductionOp.ADD, 0.0, 0)
    if total == NEVER:
        mY[0] = total


@cute.jit
def read(mX: cute.Tensor, mY: cute.Tensor, stream):
    """mX (n) float32, n a multiple of 4; mY (1) float32 stays as it is."""
    blocks = cute.ceil_div(mX.shape[0], VECTOR * VECTORS * THREADS)
    read_kernel(mX, mY).launch(grid=(blocks, 1, 1), block=(THREADS, 1, 1), stream=stream)


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
