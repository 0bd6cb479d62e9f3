"""Lesson 12: the kernels between the softmax that reads its row three times and the one that reads it once."""

import math
from typing import NamedTuple

import cutlass
import cutlass.cute as cute
from cutlass import Float32, Int32
from cutlass.memory import SmemAllocator

from quack_lite import lesson, reductions

row_vectors = lesson.steps(10).row_vectors
VECTOR = 8  # of bfloat16: 128 bits


class Plan(NamedTuple):
    """Vectors that a thread takes in a step, and threads of a block, which has a row."""

    vectors: int
    threads: int


def steps_of(mX: cute.Tensor, plan):
    """Steps in which a block goes through a row of mX (m, n)."""
    return cute.ceil_div(Int32(mX.shape[1]), VECTOR * plan.vectors * plan.threads)


@cute.jit
def load(mX: cute.Tensor, row, step, plan):
    """What a thread takes of a row of mX (m, n) in a step: (elements), float32, -inf where the row has ended."""
    gX = row_vectors(mX[row, None])  # (vector, n / vector)
    rX = cute.make_rmem_tensor((VECTOR, plan.vectors), mX.element_type)  # (vector, vectors)
    rX.fill(mX.element_type(-math.inf))
    thread, _, _ = cute.arch.thread_idx()
    first = step * plan.vectors * plan.threads + thread
    for j in cutlass.range_constexpr(plan.vectors):
        if first + j * plan.threads < Int32(mX.shape[1]) // VECTOR:
            rX[None, j].store(gX[None, first + j * plan.threads].load())
    return rX.load().to(Float32)


@cute.jit
def store(y, mY: cute.Tensor, row, step, plan):
    """Rounds y (elements), and stores it where load has taken x."""
    gY = row_vectors(mY[row, None])  # (vector, n / vector)
    rY = cute.make_rmem_tensor((VECTOR, plan.vectors), mY.element_type)  # (vector, vectors)
    rY.store(y.to(mY.element_type))
    thread, _, _ = cute.arch.thread_idx()
    first = step * plan.vectors * plan.threads + thread
    for j in cutlass.range_constexpr(plan.vectors):
        if first + j * plan.threads < Int32(mY.shape[1]) // VECTOR:
            gY[None, first + j * plan.threads].store(rY[None, j].load())


def warp_values(plan, numbers: int = 1) -> cute.Tensor:
    """Shared memory for a value of so many numbers from each warp: (numbers, warps)."""
    return SmemAllocator().allocate_tensor(Float32, cute.make_layout((numbers, plan.threads // 32)))


@cute.kernel
def two_reads_kernel(mX: cute.Tensor, mY: cute.Tensor, plan: cutlass.Constexpr):
    row, _, _ = cute.arch.block_idx()
    sW = warp_values(plan, 2)  # (2, warps)
    value = reductions.softmax_value(Float32(-math.inf))  # (max, sum)
    for step in cutlass.range(steps_of(mX, plan)):
        value = reductions.add_softmax(value, load(mX, row, step, plan))
    row_max, row_sum = reductions.block_reduce(value, reductions.SOFTMAX, sW)
    for step in cutlass.range(steps_of(mX, plan)):
        y = reductions.exp(load(mX, row, step, plan) - row_max) * (1.0 / row_sum)  # (elements)
        store(y, mY, row, step, plan)


@cute.kernel
def kept_kernel(mX: cute.Tensor, mY: cute.Tensor, plan: cutlass.Constexpr):
    # tile
    row, _, _ = cute.arch.block_idx()
    sW = warp_values(plan, 2)  # (2, warps)

    # load
    x = load(mX, row, 0, plan)  # (elements)

    # reduce
    powers, value = reductions.thread_softmax(x)  # (elements), (max, sum)
    row_max, row_sum = reductions.block_reduce(value, reductions.SOFTMAX, sW)

    # compute
    y = powers * (reductions.exp(value[0] - row_max) / row_sum)  # (elements)

    # store
    store(y, mY, row, 0, plan)


@cute.kernel
def kept_two_exchanges_kernel(mX: cute.Tensor, mY: cute.Tensor, plan: cutlass.Constexpr):
    row, _, _ = cute.arch.block_idx()
    sM, sS = warp_values(plan), warp_values(plan)  # (1, warps)
    x = load(mX, row, 0, plan)  # (elements)
    (row_max,) = reductions.block_reduce(reductions.thread_max(x), reductions.MAX, sM)
    powers = reductions.exp(x - row_max)  # (elements)
    (row_sum,) = reductions.block_reduce(reductions.thread_sum(powers), reductions.SUM, sS)
    store(powers * (1.0 / row_sum), mY, row, 0, plan)


def careless_combine(a, b):
    """Two (max, sum of exp(x - max)) become one, as the formula says."""
    maximum = cute.arch.fmax(a[0], b[0])
    return maximum, a[1] * reductions.exp(a[0] - maximum) + b[1] * reductions.exp(b[0] - maximum)


CARELESS = reductions.Operator((-math.inf, 0.0), careless_combine)


def careless_softmax(x):
    """exp(x - maximum) for a thread's values, and their (maximum, sum), as the formula says."""
    (maximum,) = reductions.thread_max(x)
    powers = reductions.exp(x - maximum)
    return powers, (maximum, *reductions.thread_sum(powers))


@cute.kernel
def careless_kernel(mX: cute.Tensor, mY: cute.Tensor, plan: cutlass.Constexpr):
    # tile
    row, _, _ = cute.arch.block_idx()
    sW = warp_values(plan, 2)  # (2, warps)

    # load
    x = load(mX, row, 0, plan)  # (elements)

    # reduce
    powers, value = careless_softmax(x)  # (elements), (max, sum)
    row_max, row_sum = reductions.block_reduce(value, CARELESS, sW)

    # compute
    y = powers * (reductions.exp(value[0] - row_max) / row_sum)  # (elements)

    # store
    store(y, mY, row, 0, plan)


@cute.kernel
def exact_kernel(mX: cute.Tensor, mY: cute.Tensor, plan: cutlass.Constexpr):
    row, _, _ = cute.arch.block_idx()
    sM, sS = warp_values(plan), warp_values(plan)  # (1, warps)
    x = load(mX, row, 0, plan)  # (elements)
    (row_max,) = reductions.block_reduce(reductions.thread_max(x), reductions.MAX, sM)
    powers = cute.math.exp(x - row_max)  # (elements)
    (row_sum,) = reductions.block_reduce(reductions.thread_sum(powers), reductions.SUM, sS)
    store(powers * (1.0 / row_sum), mY, row, 0, plan)


def softmax_with(kernel, plan: Plan):
    """A host function that runs one of these kernels as `plan` says."""

    @cute.jit
    def softmax(mX: cute.Tensor, mY: cute.Tensor, stream):
        kernel(mX, mY, plan).launch(grid=(mX.shape[0], 1, 1), block=(plan.threads, 1, 1), stream=stream)

    return softmax


@cute.kernel
def powers_kernel(mX: cute.Tensor, mY: cute.Tensor, power: cutlass.Constexpr):
    block, _, _ = cute.arch.block_idx()
    thread, _, _ = cute.arch.thread_idx()
    i = block * 256 + thread
    if i < mX.shape[0]:
        mY[i] = power(mX[i])


def powers_with(power):
    """A host function that takes `power` of each element of mX (n), float32."""

    @cute.jit
    def powers(mX: cute.Tensor, mY: cute.Tensor, stream):
        blocks = cute.ceil_div(mX.shape[0], 256)
        powers_kernel(mX, mY, power).launch(grid=(blocks, 1, 1), block=(256, 1, 1), stream=stream)

    return powers
