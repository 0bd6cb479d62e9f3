"""Lesson 04: the sum of a row, and elements so many apart."""

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
