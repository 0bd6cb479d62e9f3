"""Lesson 05: the kernels between the naive copy and the last one."""

from typing import NamedTuple

import cutlass
import cutlass.cute as cute

THREADS = 256
LOADS = 8
VECTOR = 8  # of bfloat16: 128 bits


@cute.kernel
def one_by_one_copy_kernel(mX: cute.Tensor, mY: cute.Tensor):
    block, _, _ = cute.arch.block_idx()
    thread, _, _ = cute.arch.thread_idx()
    n = mX.shape[0]
    first = block * THREADS * LOADS + thread
    for j in cutlass.range_constexpr(LOADS):
        if first + j * THREADS < n:
            mY[first + j * THREADS] = mX[first + j * THREADS]


@cute.jit
def one_by_one_copy(mX: cute.Tensor, mY: cute.Tensor, stream):
    blocks = cute.ceil_div(mX.shape[0], THREADS * LOADS)
    one_by_one_copy_kernel(mX, mY).launch(grid=(blocks, 1, 1), block=(THREADS, 1, 1), stream=stream)


@cute.kernel
def loads_first_copy_kernel(mX: cute.Tensor, mY: cute.Tensor):
    block, _, _ = cute.arch.block_idx()
    thread, _, _ = cute.arch.thread_idx()
    n = mX.shape[0]
    first = block * THREADS * LOADS + thread
    rX = cute.make_rmem_tensor((LOADS,), mX.element_type)
    for j in cutlass.range_constexpr(LOADS):
        if first + j * THREADS < n:
            rX[j] = mX[first + j * THREADS]
    for j in cutlass.range_constexpr(LOADS):
        if first + j * THREADS < n:
            mY[first + j * THREADS] = rX[j]


@cute.jit
def loads_first_copy(mX: cute.Tensor, mY: cute.Tensor, stream):
    blocks = cute.ceil_div(mX.shape[0], THREADS * LOADS)
    loads_first_copy_kernel(mX, mY).launch(grid=(blocks, 1, 1), block=(THREADS, 1, 1), stream=stream)


@cute.kernel
def vector_copy_kernel(mX: cute.Tensor, mY: cute.Tensor):
    block, _, _ = cute.arch.block_idx()
    thread, _, _ = cute.arch.thread_idx()
    n = mX.shape[0]
    first = block * THREADS + thread
    gX = cute.zipped_divide(mX, (VECTOR,))  # (vector, n / vector)
    gY = cute.zipped_divide(mY, (VECTOR,))  # (vector, n / vector)
    if first < n // VECTOR:
        gY[None, first].store(gX[None, first].load())
    if first < n % VECTOR:
        mY[n - 1 - first] = mX[n - 1 - first]


@cute.jit
def vector_copy(mX: cute.Tensor, mY: cute.Tensor, stream):
    blocks = cute.ceil_div(mX.shape[0], THREADS * VECTOR)
    vector_copy_kernel(mX, mY).launch(grid=(blocks, 1, 1), block=(THREADS, 1, 1), stream=stream)


class Plan(NamedTuple):
    """How an array is cut: elements a load, loads a thread, threads a block."""

    vector: int
    vectors: int
    threads: int = THREADS


@cute.kernel
def planned_copy_kernel(mX: cute.Tensor, mY: cute.Tensor, plan: cutlass.Constexpr):
    block, _, _ = cute.arch.block_idx()
    thread, _, _ = cute.arch.thread_idx()
    n = mX.shape[0]
    first = block * plan.threads * plan.vectors + thread
    gX = cute.zipped_divide(mX, (plan.vector,))  # (vector, n / vector)
    gY = cute.zipped_divide(mY, (plan.vector,))  # (vector, n / vector)
    rX = cute.make_rmem_tensor((plan.vector, plan.vectors), mX.element_type)  # (vector, vectors)
    for j in cutlass.range_constexpr(plan.vectors):
        if first + j * plan.threads < n // plan.vector:
            rX[None, j].store(gX[None, first + j * plan.threads].load())
    for j in cutlass.range_constexpr(plan.vectors):
        if first + j * plan.threads < n // plan.vector:
            gY[None, first + j * plan.threads].store(rX[None, j].load())
    if first < n % plan.vector:
        mY[n - 1 - first] = mX[n - 1 - first]


def copy_with(plan: Plan, blocks_per_sm: int = 8):
    """A host function that copies as `plan` says, with so many blocks on an SM at a time.

    Shared memory that each block asks for and does not use keeps further blocks away.
    """
    unused = 220 * 1024 // blocks_per_sm if blocks_per_sm < 8 else 0

    @cute.jit
    def planned_copy(mX: cute.Tensor, mY: cute.Tensor, stream):
        blocks = cute.ceil_div(mX.shape[0], plan.threads * plan.vectors * plan.vector)
        kernel = planned_copy_kernel(mX, mY, plan)
        kernel.launch(grid=(blocks, 1, 1), block=(plan.threads, 1, 1), smem=unused, stream=stream)

    return planned_copy
