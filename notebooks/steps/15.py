"""Lesson 15: the kernels between a norm that takes a row a block and one whose next rows are on their way."""

from typing import NamedTuple

import cutlass
import cutlass.cute as cute
from cutlass import Float32, Int32
from cutlass.memory import SmemAllocator

from quack_lite import lesson

before = lesson.steps(10)
row_vectors, total, block_sum = before.row_vectors, before.total, before.block_sum
VECTOR = 8  # of bfloat16: 128 bits
EPS = 1e-6


class Plan(NamedTuple):
    """vectors of a thread, threads of a block; stages in shared memory; blocks in the grid, 0: one a row."""

    vectors: int
    threads: int
    stages: int = 1
    blocks: int = 0


def squares_of(rX: cute.Tensor, plan):
    """The sum of the squares of a thread's vectors (vector, vectors)."""
    squares = Float32(0.0)
    for j in range(plan.vectors):
        x = rX[None, j].load().to(Float32)  # (vector)
        squares += total(x * x)
    return squares


@cute.jit
def load(mX: cute.Tensor, row, plan: cutlass.Constexpr):
    """This thread's vectors of a row in registers, (vector, vectors); 0 where there is none."""
    thread, _, _ = cute.arch.thread_idx()
    gX, vectors = row_vectors(mX[row, None]), vectors_of(mX, row)  # (vector, n / vector)
    rX = cute.make_rmem_tensor((VECTOR, plan.vectors), mX.element_type)  # (vector, vectors)
    rX.fill(0.0)
    for j in cutlass.range_constexpr(plan.vectors):
        if thread + j * plan.threads < vectors:
            rX[None, j].store(gX[None, thread + j * plan.threads].load())
    return rX


@cute.jit
def store(rX: cute.Tensor, rstd, mY: cute.Tensor, row, plan: cutlass.Constexpr):
    """This thread's vectors, times rstd, to a row of mY."""
    thread, _, _ = cute.arch.thread_idx()
    gY, vectors = row_vectors(mY[row, None]), vectors_of(mY, row)  # (vector, n / vector)
    for j in cutlass.range_constexpr(plan.vectors):
        if thread + j * plan.threads < vectors:
            y = rX[None, j].load().to(Float32) * rstd  # (vector)
            gY[None, thread + j * plan.threads].store(y.to(mY.element_type))


@cute.jit
def vectors_of(mX: cute.Tensor, row):
    """Vectors of a row: none of a row behind the last."""
    vectors = Int32(0)
    if row < mX.shape[0]:
        vectors = Int32(mX.shape[1]) // VECTOR
    return vectors


def open_stages(mX: cute.Tensor, plan):
    """Shared memory for as many rows as the plan has stages: (vector, vectors of a row, stages)."""
    layout = cute.make_layout((VECTOR, plan.vectors * plan.threads, plan.stages))
    return SmemAllocator().allocate_tensor(mX.element_type, layout, byte_alignment=16)


def open_sums(plan):
    """Two places for the sums of the warps, (warps, 2): a slow warp may still read those of the turn before."""
    return SmemAllocator().allocate_tensor(Float32, cute.make_layout((plan.threads // 32, 2)))


@cute.jit
def send(mX: cute.Tensor, row, sX: cute.Tensor, plan: cutlass.Constexpr):
    """Starts to copy this thread's vectors of a row into a stage sX (vector, vectors of a row), and closes a group."""
    thread, _, _ = cute.arch.thread_idx()
    gX, vectors = row_vectors(mX[row, None]), vectors_of(mX, row)  # (vector, n / vector)
    atom = cute.make_copy_atom(cute.nvgpu.cpasync.CopyG2SOp(), mX.element_type, num_bits_per_copy=128)
    for j in cutlass.range_constexpr(plan.vectors):
        if thread + j * plan.threads < vectors:
            cute.copy(atom, gX[None, thread + j * plan.threads], sX[None, thread + j * plan.threads])
    cute.arch.cp_async_commit_group()


@cute.jit
def receive(mX: cute.Tensor, row, sX: cute.Tensor, plan: cutlass.Constexpr):
    """This thread's vectors of a stage in registers, (vector, vectors); 0 where the row has none."""
    thread, _, _ = cute.arch.thread_idx()
    vectors = vectors_of(mX, row)
    rX = cute.make_rmem_tensor((VECTOR, plan.vectors), mX.element_type)  # (vector, vectors)
    rX.fill(0.0)
    for j in cutlass.range_constexpr(plan.vectors):
        if thread + j * plan.threads < vectors:
            rX[None, j].store(sX[None, thread + j * plan.threads].load())
    return rX


@cute.kernel
def row_a_block_kernel(mX: cute.Tensor, mY: cute.Tensor, plan: cutlass.Constexpr):
    row, _, _ = cute.arch.block_idx()
    sW = open_sums(plan)  # (warps, 2)
    rX = load(mX, row, plan)  # (vector, vectors)
    rstd = cute.math.rsqrt(block_sum(squares_of(rX, plan), sW[None, 0]) / mX.shape[1] + EPS)
    store(rX, rstd, mY, row, plan)


@cute.kernel
def persistent_kernel(mX: cute.Tensor, mY: cute.Tensor, plan: cutlass.Constexpr):
    block, _, _ = cute.arch.block_idx()
    sW = open_sums(plan)  # (warps, 2)
    for turn in cutlass.range(cute.ceil_div(mX.shape[0] - block, plan.blocks), unroll=1):
        row = block + turn * plan.blocks
        rX = load(mX, row, plan)  # (vector, vectors)
        rstd = cute.math.rsqrt(block_sum(squares_of(rX, plan), sW[None, turn % 2]) / mX.shape[1] + EPS)
        store(rX, rstd, mY, row, plan)


@cute.kernel
def staged_kernel(mX: cute.Tensor, mY: cute.Tensor, plan: cutlass.Constexpr):
    block, _, _ = cute.arch.block_idx()
    sW = open_sums(plan)  # (warps, 2)
    sX = open_stages(mX, plan)  # (vector, vectors of a row, stages)
    for turn in cutlass.range_constexpr(plan.stages):
        send(mX, block + turn * plan.blocks, sX[None, None, turn], plan)
    for turn in cutlass.range(cute.ceil_div(mX.shape[0] - block, plan.blocks), unroll=1):
        row, stage = block + turn * plan.blocks, turn % plan.stages
        cute.arch.cp_async_wait_group(plan.stages - 1)
        rX = receive(mX, row, sX[None, None, stage], plan)  # (vector, vectors)
        send(mX, row + plan.stages * plan.blocks, sX[None, None, stage], plan)
        rstd = cute.math.rsqrt(block_sum(squares_of(rX, plan), sW[None, turn % 2]) / mX.shape[1] + EPS)
        store(rX, rstd, mY, row, plan)


@cute.kernel
def hasty_kernel(mX: cute.Tensor, mY: cute.Tensor, plan: cutlass.Constexpr):
    block, _, _ = cute.arch.block_idx()
    sW = open_sums(plan)  # (warps, 2)
    sX = open_stages(mX, plan)  # (vector, vectors of a row, stages)
    for turn in cutlass.range_constexpr(plan.stages):
        send(mX, block + turn * plan.blocks, sX[None, None, turn], plan)
    for turn in cutlass.range(cute.ceil_div(mX.shape[0] - block, plan.blocks), unroll=1):
        row, stage = block + turn * plan.blocks, turn % plan.stages
        rX = receive(mX, row, sX[None, None, stage], plan)  # (vector, vectors)
        send(mX, row + plan.stages * plan.blocks, sX[None, None, stage], plan)
        rstd = cute.math.rsqrt(block_sum(squares_of(rX, plan), sW[None, turn % 2]) / mX.shape[1] + EPS)
        store(rX, rstd, mY, row, plan)


@cute.kernel
def ahead_kernel(mX: cute.Tensor, mY: cute.Tensor, plan: cutlass.Constexpr):
    block, _, _ = cute.arch.block_idx()
    sW = open_sums(plan)  # (warps, 2)
    rX = load(mX, block, plan)  # (vector, vectors)
    for turn in cutlass.range(cute.ceil_div(mX.shape[0] - block, plan.blocks), unroll=1):
        row = block + turn * plan.blocks
        rN = load(mX, row + plan.blocks, plan)  # (vector, vectors)
        rstd = cute.math.rsqrt(block_sum(squares_of(rX, plan), sW[None, turn % 2]) / mX.shape[1] + EPS)
        store(rX, rstd, mY, row, plan)
        rX.store(rN.load())


@cute.kernel
def staged_copy_kernel(mX: cute.Tensor, mY: cute.Tensor, plan: cutlass.Constexpr):
    block, _, _ = cute.arch.block_idx()
    sX = open_stages(mX, plan)  # (vector, vectors of a row, stages)
    for turn in cutlass.range_constexpr(plan.stages):
        send(mX, block + turn * plan.blocks, sX[None, None, turn], plan)
    for turn in cutlass.range(cute.ceil_div(mX.shape[0] - block, plan.blocks), unroll=1):
        row, stage = block + turn * plan.blocks, turn % plan.stages
        cute.arch.cp_async_wait_group(plan.stages - 1)
        rX = receive(mX, row, sX[None, None, stage], plan)  # (vector, vectors)
        send(mX, row + plan.stages * plan.blocks, sX[None, None, stage], plan)
        store(rX, Float32(1.0), mY, row, plan)


def norm_with(kernel, plan: Plan):
    """A host function that runs one of these kernels as `plan` says."""

    @cute.jit
    def unit_norm(mX: cute.Tensor, mY: cute.Tensor, stream):
        blocks = plan.blocks or mX.shape[0]
        kernel(mX, mY, plan).launch(grid=(blocks, 1, 1), block=(plan.threads, 1, 1), stream=stream)

    return unit_norm
