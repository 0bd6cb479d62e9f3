"""Lesson 04: the kernels between one column and the rows in another order."""

import cutlass
import cutlass.cute as cute

THREADS = 256


@cute.kernel
def row_sum_kernel(mX: cute.Tensor, mY: cute.Tensor):
    block, _, _ = cute.arch.block_idx()
    thread, _, _ = cute.arch.thread_idx()
    n = mY.shape[0]
    k = block * 256 + thread
    gX = cute.zipped_divide(mX, (8,))  # (8, n)
    if k < n:
        total = gX[0, k]
        for j in cutlass.range_constexpr(1, 8):
            total += gX[j, k]
        mY[k] = total


@cute.jit
def row_sum(mX: cute.Tensor, mY: cute.Tensor, stream):
    blocks = cute.ceil_div(mY.shape[0], THREADS)
    row_sum_kernel(mX, mY).launch(grid=(blocks, 1, 1), block=(THREADS, 1, 1), stream=stream)


@cute.kernel
def by_rows_kernel(mX: cute.Tensor, mY: cute.Tensor, rows: cutlass.Constexpr):
    block, _, _ = cute.arch.block_idx()
    thread, _, _ = cute.arch.thread_idx()
    n = mY.shape[0]
    k = block * 256 * rows + thread
    gX = cute.zipped_divide(mX, (8,))  # (8, n)
    row = [cutlass.min(k + 256 * r, n - 1) for r in range(rows)]  # past the end the last one again
    rT = cute.make_rmem_tensor(rows, mX.element_type)  # (rows)
    rT.fill(0.0)
    for r in cutlass.range_constexpr(rows):
        for j in cutlass.range_constexpr(8):
            rT[r] += gX[j, row[r]]
    for r in cutlass.range_constexpr(rows):
        if k + 256 * r < n:
            mY[k + 256 * r] = rT[r]


@cute.kernel
def by_columns_kernel(mX: cute.Tensor, mY: cute.Tensor, rows: cutlass.Constexpr):
    block, _, _ = cute.arch.block_idx()
    thread, _, _ = cute.arch.thread_idx()
    n = mY.shape[0]
    k = block * 256 * rows + thread
    gX = cute.zipped_divide(mX, (8,))  # (8, n)
    row = [cutlass.min(k + 256 * r, n - 1) for r in range(rows)]  # past the end the last one again
    rT = cute.make_rmem_tensor(rows, mX.element_type)  # (rows)
    rT.fill(0.0)
    for j in cutlass.range_constexpr(8):
        for r in cutlass.range_constexpr(rows):
            rT[r] += gX[j, row[r]]
    for r in cutlass.range_constexpr(rows):
        if k + 256 * r < n:
            mY[k + 256 * r] = rT[r]


def by_rows(rows: int):
    """A host function of by_rows_kernel with so many rows a thread."""

    @cute.jit
    def sums_by_rows(mX: cute.Tensor, mY: cute.Tensor, stream):
        blocks = cute.ceil_div(mY.shape[0], THREADS * rows)
        by_rows_kernel(mX, mY, rows).launch(grid=(blocks, 1, 1), block=(THREADS, 1, 1), stream=stream)

    return sums_by_rows


def by_columns(rows: int):
    """A host function of by_columns_kernel with so many rows a thread."""

    @cute.jit
    def sums_by_columns(mX: cute.Tensor, mY: cute.Tensor, stream):
        blocks = cute.ceil_div(mY.shape[0], THREADS * rows)
        by_columns_kernel(mX, mY, rows).launch(grid=(blocks, 1, 1), block=(THREADS, 1, 1), stream=stream)

    return sums_by_columns


@cute.kernel
def strided_kernel(mX: cute.Tensor, mY: cute.Tensor, stride: cutlass.Constexpr):
    block, _, _ = cute.arch.block_idx()
    thread, _, _ = cute.arch.thread_idx()
    n = mY.shape[0]
    k = block * 256 + thread
    gX = cute.make_tensor(mX.iterator, cute.make_layout(n, stride=stride))  # (n)
    if k < n:
        mY[k] = gX[k]


def every(stride: int):
    """A host function that copies elements 0, stride, 2 stride, ... of mX."""

    @cute.jit
    def strided(mX: cute.Tensor, mY: cute.Tensor, stream):
        blocks = cute.ceil_div(mY.shape[0], THREADS)
        strided_kernel(mX, mY, stride).launch(grid=(blocks, 1, 1), block=(THREADS, 1, 1), stream=stream)

    return strided
