"""copy(x) = x, over contiguous memory, each element read once and written once."""

import cutlass
import cutlass.cute as cute


@cute.kernel
def copy_kernel(mX: cute.Tensor, mY: cute.Tensor, plan: cutlass.Constexpr):
    # tile
    block, _, _ = cute.arch.block_idx()
    thread, _, _ = cute.arch.thread_idx()
    n = mX.shape[0]
    first = cutlass.Int64(block) * plan.threads * plan.vectors + thread
    gX = cute.zipped_divide(mX, (plan.vector,))  # (vector, n / vector)
    gY = cute.zipped_divide(mY, (plan.vector,))  # (vector, n / vector)
    rX = cute.make_rmem_tensor((plan.vector, plan.vectors), mX.element_type)  # (vector, vectors)

    # load
    for j in cutlass.range_constexpr(plan.vectors):
        if first + j * plan.threads < n // plan.vector:
            rX[None, j].store(gX[None, first + j * plan.threads].load())

    # store
    for j in cutlass.range_constexpr(plan.vectors):
        if first + j * plan.threads < n // plan.vector:
            gY[None, first + j * plan.threads].store(rX[None, j].load())

    # the elements after the last whole vector
    if first < n % plan.vector:
        mY[n - 1 - first] = mX[n - 1 - first]


@cute.jit
def copy(mX: cute.Tensor, mY: cute.Tensor, stream, plan: cutlass.Constexpr):
    """mX (n) -> mY (n), stride-1 elements."""
    blocks = cute.ceil_div(mX.shape[0], plan.capacity)
    copy_kernel(mX, mY, plan).launch(grid=(blocks, 1, 1), block=(plan.threads, 1, 1), stream=stream)
