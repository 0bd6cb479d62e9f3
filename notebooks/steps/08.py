"""Lesson 08: the kernels between a thread a row and a warp a row with any operator."""

from collections.abc import Callable
from typing import NamedTuple

import cutlass
import cutlass.cute as cute
from cutlass import Float32, Int32

THREADS, WARP = 256, 32


@cute.jit
def butterfly_sum(value):
    """The sum over a warp, in every lane."""
    for step in range(5):
        value = value + cute.arch.shuffle_sync_bfly(value, offset=1 << step)
    return value


@cute.jit
def downward_sum(value):
    """The sum over a warp, in lane 0."""
    for step in range(5):
        value = value + cute.arch.shuffle_sync_down(value, offset=16 >> step)
    return value


@cute.kernel
def warp_sum_kernel(mX: cute.Tensor, mY: cute.Tensor):
    block, _, _ = cute.arch.block_idx()
    thread, _, _ = cute.arch.thread_idx()
    row, lane = block * (THREADS // WARP) + thread // WARP, thread % WARP
    if row < mX.shape[0]:
        total = Float32(0.0)
        for j in cutlass.range(lane, Int32(mX.shape[1]), WARP):
            total += mX[row, j]
        total = butterfly_sum(total)
        if lane == 0:
            mY[row] = total


@cute.kernel
def downward_sum_kernel(mX: cute.Tensor, mY: cute.Tensor):
    block, _, _ = cute.arch.block_idx()
    thread, _, _ = cute.arch.thread_idx()
    row, lane = block * (THREADS // WARP) + thread // WARP, thread % WARP
    if row < mX.shape[0]:
        total = Float32(0.0)
        for j in cutlass.range(lane, Int32(mX.shape[1]), WARP):
            total += mX[row, j]
        total = downward_sum(total)
        if lane == 0:
            mY[row] = total


@cute.jit
def warp_sum(mX: cute.Tensor, mY: cute.Tensor, stream):
    blocks = cute.ceil_div(mX.shape[0], THREADS // WARP)
    warp_sum_kernel(mX, mY).launch(grid=(blocks, 1, 1), block=(THREADS, 1, 1), stream=stream)


@cute.jit
def downward_warp_sum(mX: cute.Tensor, mY: cute.Tensor, stream):
    blocks = cute.ceil_div(mX.shape[0], THREADS // WARP)
    downward_sum_kernel(mX, mY).launch(grid=(blocks, 1, 1), block=(THREADS, 1, 1), stream=stream)


class Operator(NamedTuple):
    """combine(a, b) of two values, tuples of numbers; identity changes nothing that it is combined with."""

    identity: tuple
    combine: Callable


def warp_reduce(value, op: Operator):
    """Combines the values of a warp: every lane gets the result."""
    for step in range(5):
        other = tuple(cute.arch.shuffle_sync_bfly(v, offset=1 << step) for v in value)
        value = op.combine(value, other)
    return value


@cute.kernel
def row_reduce_kernel(mX: cute.Tensor, mY: cute.Tensor, op: cutlass.Constexpr):
    block, _, _ = cute.arch.block_idx()
    thread, _, _ = cute.arch.thread_idx()
    row, lane = block * (THREADS // WARP) + thread // WARP, thread % WARP
    identity, combine = op
    if row < mX.shape[0]:
        value = tuple(Float32(part) for part in identity)
        for j in cutlass.range(lane, Int32(mX.shape[1]), WARP):
            value = combine(value, (mX[row, j],))
        value = warp_reduce(value, op)
        mY[row, lane] = value[0]


def reduce_with(op: Operator):
    """A host function that reduces rows with `op`; mY (m, 32) gets what every lane has in the end."""

    @cute.jit
    def row_reduce(mX: cute.Tensor, mY: cute.Tensor, stream):
        blocks = cute.ceil_div(mX.shape[0], THREADS // WARP)
        row_reduce_kernel(mX, mY, op).launch(grid=(blocks, 1, 1), block=(THREADS, 1, 1), stream=stream)

    return row_reduce


def promised(mX: cute.Tensor) -> cute.Tensor:
    """mX (m, n) with the promise that its rows are multiples of 4 elements apart."""
    stride = (cute.assume(mX.stride[0], 4), 1)
    return cute.make_tensor(mX.iterator, cute.make_layout(mX.shape, stride=stride))


@cute.kernel
def vector_sum_kernel(mX: cute.Tensor, mY: cute.Tensor):
    block, _, _ = cute.arch.block_idx()
    thread, _, _ = cute.arch.thread_idx()
    row, lane = block * (THREADS // WARP) + thread // WARP, thread % WARP
    if row < mX.shape[0]:
        gX = cute.zipped_divide(mX[row, None], (4,))  # (4, n / 4)
        total = Float32(0.0)
        for j in cutlass.range(lane, Int32(mX.shape[1]) // 4, WARP):
            total += gX[None, j].load().reduce(cute.ReductionOp.ADD, 0.0, 0)
        total = butterfly_sum(total)
        if lane == 0:
            mY[row] = total


@cute.jit
def vector_sum(mX: cute.Tensor, mY: cute.Tensor, stream):
    blocks = cute.ceil_div(mX.shape[0], THREADS // WARP)
    vector_sum_kernel(promised(mX), mY).launch(grid=(blocks, 1, 1), block=(THREADS, 1, 1), stream=stream)
