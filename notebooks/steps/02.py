"""Lesson 02: the kernel that forgets its block, and the one with any number of threads in a block."""

import cutlass
import cutlass.cute as cute


@cute.kernel
def forgotten_block_square_kernel(mX: cute.Tensor, mY: cute.Tensor):
    block, _, _ = cute.arch.block_idx()
    thread, _, _ = cute.arch.thread_idx()
    i = thread
    if i < mX.shape[0]:
        value = mX[i]
        mY[i] = value * value


@cute.jit
def forgotten_block_square(mX: cute.Tensor, mY: cute.Tensor, stream):
    blocks = cute.ceil_div(mX.shape[0], 256)
    forgotten_block_square_kernel(mX, mY).launch(grid=(blocks, 1, 1), block=(256, 1, 1), stream=stream)


@cute.kernel
def sized_square_kernel(mX: cute.Tensor, mY: cute.Tensor, threads: cutlass.Constexpr):
    block, _, _ = cute.arch.block_idx()
    thread, _, _ = cute.arch.thread_idx()
    i = block * threads + thread
    if i < mX.shape[0]:
        value = mX[i]
        mY[i] = value * value


def square_with(threads: int):
    """A host function that squares with so many threads in a block."""

    @cute.jit
    def sized_square(mX: cute.Tensor, mY: cute.Tensor, stream):
        blocks = cute.ceil_div(mX.shape[0], threads)
        kernel = sized_square_kernel(mX, mY, threads)
        kernel.launch(grid=(blocks, 1, 1), block=(threads, 1, 1), stream=stream)

    return sized_square
