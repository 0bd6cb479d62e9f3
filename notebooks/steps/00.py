"""Lesson 00: a copy of several elements a thread, and one that does not look where the array ends."""

import cutlass
import cutlass.cute as cute

THREADS = 256


@cute.kernel
def wide_copy_kernel(mX: cute.Tensor, mY: cute.Tensor, elements: cutlass.Constexpr):
    block, _, _ = cute.arch.block_idx()
    thread, _, _ = cute.arch.thread_idx()
    n = mX.shape[0]
    i = block * THREADS + thread
    gX = cute.zipped_divide(mX, (elements,))  # (elements, n / elements)
    gY = cute.zipped_divide(mY, (elements,))  # (elements, n / elements)
    if i < n // elements:
        gY[None, i].store(gX[None, i].load())
    if i < n % elements:
        mY[n - 1 - i] = mX[n - 1 - i]


def copy_with(elements: int):
    """A host function that copies with so many neighbouring elements a thread."""

    @cute.jit
    def wide_copy(mX: cute.Tensor, mY: cute.Tensor, stream):
        blocks = cute.ceil_div(mX.shape[0], THREADS * elements)
        kernel = wide_copy_kernel(mX, mY, elements)
        kernel.launch(grid=(blocks, 1, 1), block=(THREADS, 1, 1), stream=stream)

    return wide_copy


@cute.kernel
def unguarded_copy_kernel(mX: cute.Tensor, mY: cute.Tensor):
    block, _, _ = cute.arch.block_idx()
    thread, _, _ = cute.arch.thread_idx()
    i = block * 256 + thread
    mY[i] = mX[i]


@cute.jit
def unguarded_copy(mX: cute.Tensor, mY: cute.Tensor, stream):
    blocks = cute.ceil_div(mX.shape[0], THREADS)
    unguarded_copy_kernel(mX, mY).launch(grid=(blocks, 1, 1), block=(THREADS, 1, 1), stream=stream)
