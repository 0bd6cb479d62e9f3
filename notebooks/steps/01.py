"""Lesson 01: a copy that also computes."""

import cutlass
import cutlass.cute as cute

THREADS = 256


@cute.kernel
def work_kernel(mX: cute.Tensor, mY: cute.Tensor, elements: cutlass.Constexpr, rounds: cutlass.Constexpr):
    block, _, _ = cute.arch.block_idx()
    thread, _, _ = cute.arch.thread_idx()
    n = mX.shape[0]
    i = block * THREADS + thread
    gX = cute.zipped_divide(mX, (elements,))  # (elements, n / elements)
    gY = cute.zipped_divide(mY, (elements,))  # (elements, n / elements)
    if i < n // elements:
        value = gX[None, i].load()
        for _ in cutlass.range_constexpr(rounds):
            value = value * 0.5 + 1.0
        gY[None, i].store(value)


def work_with(rounds: int, elements: int = 4):
    """A host function: y = x with x -> x * 0.5 + 1 so many times; float32, n a multiple of `elements`."""

    @cute.jit
    def work(mX: cute.Tensor, mY: cute.Tensor, stream):
        blocks = cute.ceil_div(mX.shape[0], THREADS * elements)
        kernel = work_kernel(mX, mY, elements, rounds)
        kernel.launch(grid=(blocks, 1, 1), block=(THREADS, 1, 1), stream=stream)

    return work
