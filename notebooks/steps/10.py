"""Lesson 10: the kernels between the first RMSNorm and the last one."""

from typing import NamedTuple

import cutlass
import cutlass.cute as cute
from cutlass import Float32, Int32
from cutlass.memory import SmemAllocator

from quack_lite import copies, grid, reductions, tiling

VECTOR = 8  # of bfloat16: 128 bits
EPS = 1e-6


def promised(tX: cute.Tensor, bytes: int) -> cute.Tensor:
    """The same tensor, of which the compiler now believes that it starts at a multiple of `bytes`."""
    start = cute.make_ptr(tX.element_type, tX.iterator.toint(), cute.AddressSpace.gmem, assumed_align=bytes)
    return cute.make_tensor(start, tX.layout)


def row_vectors(gX: cute.Tensor) -> cute.Tensor:
    """A row (n) as vectors of 8, (vector, n / vector), with the promise that it starts at a multiple of 16 bytes."""
    layout = cute.make_layout((VECTOR, gX.shape[0] // VECTOR), stride=(1, VECTOR))
    return cute.make_tensor(promised(gX, 16).iterator, layout)


def total(x):
    """The sum of a thread's values."""
    return x.reduce(cute.ReductionOp.ADD, Float32(0.0), 0)


def butterfly_sum(value, lanes: int = 32):
    """The butterfly of lesson 8, over groups of so many lanes."""
    for step in range(lanes.bit_length() - 1):
        value += cute.arch.shuffle_sync_bfly(value, offset=1 << step)
    return value


@cute.jit
def block_sum(value, sW: cute.Tensor):
    lane, warp = cute.arch.lane_idx(), cute.arch.warp_idx()
    value = butterfly_sum(value)
    if lane == 0:
        sW[warp] = value
    cute.arch.barrier()
    value = Float32(0.0)
    if lane < cute.size(sW):
        value = sW[lane]
    return butterfly_sum(value)


class Plan(NamedTuple):
    """How rows are handed out: vectors of a thread, threads of a row, rows of a block."""

    vectors: int
    threads: int
    rows: int = 1


@cute.kernel
def planned_kernel(mX: cute.Tensor, mW: cute.Tensor, mY: cute.Tensor, plan: cutlass.Constexpr):
    row, _, _ = cute.arch.block_idx()
    thread, _, _ = cute.arch.thread_idx()
    vectors = Int32(mX.shape[1]) // VECTOR
    gX, gW, gY = row_vectors(mX[row, None]), row_vectors(mW), row_vectors(mY[row, None])  # (vector, n / vector)
    sW = SmemAllocator().allocate_tensor(Float32, cute.make_layout(plan.threads // 32))  # (warps)
    rX = cute.make_rmem_tensor((VECTOR, plan.vectors), mX.element_type)  # (vector, vectors)
    rX.fill(0.0)
    for j in cutlass.range_constexpr(plan.vectors):
        if thread + j * plan.threads < vectors:
            rX[None, j].store(gX[None, thread + j * plan.threads].load())
    squares = Float32(0.0)
    for j in cutlass.range_constexpr(plan.vectors):
        x = rX[None, j].load().to(Float32)  # (vector)
        squares += total(x * x)
    rstd = cute.math.rsqrt(block_sum(squares, sW) / mX.shape[1] + EPS)
    for j in cutlass.range_constexpr(plan.vectors):
        if thread + j * plan.threads < vectors:
            y = rX[None, j].load().to(Float32) * rstd * gW[None, thread + j * plan.threads].load()  # (vector)
            gY[None, thread + j * plan.threads].store(y.to(mY.element_type))


@cute.kernel
def weight_early_kernel(mX: cute.Tensor, mW: cute.Tensor, mY: cute.Tensor, plan: cutlass.Constexpr):
    row, _, _ = cute.arch.block_idx()
    thread, _, _ = cute.arch.thread_idx()
    vectors = Int32(mX.shape[1]) // VECTOR
    gX, gW, gY = row_vectors(mX[row, None]), row_vectors(mW), row_vectors(mY[row, None])  # (vector, n / vector)
    sW = SmemAllocator().allocate_tensor(Float32, cute.make_layout(plan.threads // 32))  # (warps)
    rX = cute.make_rmem_tensor((VECTOR, plan.vectors), mX.element_type)  # (vector, vectors)
    rW = cute.make_rmem_tensor((VECTOR, plan.vectors), mW.element_type)  # (vector, vectors)
    rX.fill(0.0)
    rW.fill(0.0)
    for j in cutlass.range_constexpr(plan.vectors):
        if thread + j * plan.threads < vectors:
            rX[None, j].store(gX[None, thread + j * plan.threads].load())
    for j in cutlass.range_constexpr(plan.vectors):
        if thread + j * plan.threads < vectors:
            rW[None, j].store(gW[None, thread + j * plan.threads].load())
    squares = Float32(0.0)
    for j in cutlass.range_constexpr(plan.vectors):
        x = rX[None, j].load().to(Float32)  # (vector)
        squares += total(x * x)
    rstd = cute.math.rsqrt(block_sum(squares, sW) / mX.shape[1] + EPS)
    for j in cutlass.range_constexpr(plan.vectors):
        if thread + j * plan.threads < vectors:
            y = rX[None, j].load().to(Float32) * rstd * rW[None, j].load()  # (vector)
            gY[None, thread + j * plan.threads].store(y.to(mY.element_type))


@cute.kernel
def without_weight_kernel(mX: cute.Tensor, mW: cute.Tensor, mY: cute.Tensor, plan: cutlass.Constexpr):
    row, _, _ = cute.arch.block_idx()
    thread, _, _ = cute.arch.thread_idx()
    vectors = Int32(mX.shape[1]) // VECTOR
    gX, gY = row_vectors(mX[row, None]), row_vectors(mY[row, None])  # (vector, n / vector)
    sW = SmemAllocator().allocate_tensor(Float32, cute.make_layout(plan.threads // 32))  # (warps)
    rX = cute.make_rmem_tensor((VECTOR, plan.vectors), mX.element_type)  # (vector, vectors)
    rX.fill(0.0)
    for j in cutlass.range_constexpr(plan.vectors):
        if thread + j * plan.threads < vectors:
            rX[None, j].store(gX[None, thread + j * plan.threads].load())
    squares = Float32(0.0)
    for j in cutlass.range_constexpr(plan.vectors):
        x = rX[None, j].load().to(Float32)  # (vector)
        squares += total(x * x)
    rstd = cute.math.rsqrt(block_sum(squares, sW) / mX.shape[1] + EPS)
    for j in cutlass.range_constexpr(plan.vectors):
        if thread + j * plan.threads < vectors:
            y = rX[None, j].load().to(Float32) * rstd  # (vector)
            gY[None, thread + j * plan.threads].store(y.to(mY.element_type))


@cute.kernel
def widened_kernel(mX: cute.Tensor, mW: cute.Tensor, mY: cute.Tensor, plan: cutlass.Constexpr):
    row, _, _ = cute.arch.block_idx()
    thread, _, _ = cute.arch.thread_idx()
    vectors = Int32(mX.shape[1]) // VECTOR
    gX, gW, gY = row_vectors(mX[row, None]), row_vectors(mW), row_vectors(mY[row, None])  # (vector, n / vector)
    sW = SmemAllocator().allocate_tensor(Float32, cute.make_layout(plan.threads // 32))  # (warps)
    rX = cute.make_rmem_tensor((VECTOR, plan.vectors), Float32)  # (vector, vectors)
    rX.fill(0.0)
    for j in cutlass.range_constexpr(plan.vectors):
        if thread + j * plan.threads < vectors:
            rX[None, j].store(gX[None, thread + j * plan.threads].load().to(Float32))
    squares = Float32(0.0)
    for j in cutlass.range_constexpr(plan.vectors):
        x = rX[None, j].load()  # (vector)
        squares += total(x * x)
    rstd = cute.math.rsqrt(block_sum(squares, sW) / mX.shape[1] + EPS)
    for j in cutlass.range_constexpr(plan.vectors):
        if thread + j * plan.threads < vectors:
            y = rX[None, j].load() * rstd * gW[None, thread + j * plan.threads].load()  # (vector)
            gY[None, thread + j * plan.threads].store(y.to(mY.element_type))


@cute.kernel
def narrow_sum_kernel(mX: cute.Tensor, mW: cute.Tensor, mY: cute.Tensor, plan: cutlass.Constexpr):
    row, _, _ = cute.arch.block_idx()
    thread, _, _ = cute.arch.thread_idx()
    vectors = Int32(mX.shape[1]) // VECTOR
    gX, gW, gY = row_vectors(mX[row, None]), row_vectors(mW), row_vectors(mY[row, None])  # (vector, n / vector)
    sW = SmemAllocator().allocate_tensor(Float32, cute.make_layout(plan.threads // 32))  # (warps)
    rX = cute.make_rmem_tensor((VECTOR, plan.vectors), mX.element_type)  # (vector, vectors)
    rX.fill(0.0)
    for j in cutlass.range_constexpr(plan.vectors):
        if thread + j * plan.threads < vectors:
            rX[None, j].store(gX[None, thread + j * plan.threads].load())
    squares = Float32(0.0)
    for j in cutlass.range_constexpr(plan.vectors):
        x = rX[None, j].load()  # (vector)
        squares += total((x * x).to(Float32))
    rstd = cute.math.rsqrt(block_sum(squares, sW) / mX.shape[1] + EPS)
    for j in cutlass.range_constexpr(plan.vectors):
        if thread + j * plan.threads < vectors:
            y = rX[None, j].load().to(Float32) * rstd * gW[None, thread + j * plan.threads].load()  # (vector)
            gY[None, thread + j * plan.threads].store(y.to(mY.element_type))


@cute.kernel
def short_rows_kernel(mX: cute.Tensor, mW: cute.Tensor, mY: cute.Tensor, plan: cutlass.Constexpr):
    block, _, _ = cute.arch.block_idx()
    thread, _, _ = cute.arch.thread_idx()
    row, thread = block * plan.rows + thread // plan.threads, thread % plan.threads
    vectors = Int32(0)
    if row < mX.shape[0]:
        vectors = Int32(mX.shape[1]) // VECTOR
    gX, gW, gY = row_vectors(mX[row, None]), row_vectors(mW), row_vectors(mY[row, None])  # (vector, n / vector)
    rX = cute.make_rmem_tensor((VECTOR, plan.vectors), mX.element_type)  # (vector, vectors)
    rX.fill(0.0)
    for j in cutlass.range_constexpr(plan.vectors):
        if thread + j * plan.threads < vectors:
            rX[None, j].store(gX[None, thread + j * plan.threads].load())
    squares = Float32(0.0)
    for j in cutlass.range_constexpr(plan.vectors):
        x = rX[None, j].load().to(Float32)  # (vector)
        squares += total(x * x)
    rstd = cute.math.rsqrt(butterfly_sum(squares, plan.threads) / mX.shape[1] + EPS)
    for j in cutlass.range_constexpr(plan.vectors):
        if thread + j * plan.threads < vectors:
            y = rX[None, j].load().to(Float32) * rstd * gW[None, thread + j * plan.threads].load()  # (vector)
            gY[None, thread + j * plan.threads].store(y.to(mY.element_type))


def norm_with(kernel, plan: Plan):
    """A host function that runs one of these kernels as `plan` says."""

    @cute.jit
    def rms_norm(mX: cute.Tensor, mW: cute.Tensor, mY: cute.Tensor, stream):
        blocks = cute.ceil_div(mX.shape[0], plan.rows)
        launched = kernel(mX, mW, mY, plan)
        launched.launch(grid=(blocks, 1, 1), block=(plan.threads * plan.rows, 1, 1), stream=stream)

    return rms_norm


@cute.kernel
def whole_kernel(mX: cute.Tensor, mW: cute.Tensor, mY: cute.Tensor, eps: cutlass.Constexpr, plan: cutlass.Constexpr):
    # tile
    tile = copies.row_tile(mX, grid.row_place(plan), plan)
    mailbox = reductions.expect_peers(plan, parts=1)

    # load
    x = copies.fetch(mX, tile, plan)  # (vector, vectors), (1)
    w = copies.fetch_columns(mW, tile, plan)  # (vector, vectors), (1)

    # reduce
    squares = Float32(0.0)
    for j in cutlass.range_constexpr(copies.pieces(plan)):
        squares += reductions.sum_of(copies.piece(x, j, plan) * copies.piece(x, j, plan))
    (squares,) = reductions.row_reduce((squares,), reductions.SUM, plan, mailbox)
    rstd = cute.math.rsqrt(squares / mX.shape[1] + eps)

    # compute, store
    for j in cutlass.range_constexpr(copies.pieces(plan)):
        y = copies.piece(x, j, plan) * rstd * copies.piece(w, j, plan)  # (vector) or (1)
        copies.store_piece(y, mY, tile, j, plan)


def whole_norm(plan: tiling.RowPlan):
    """A host function for rows of any length and start, as far as the plan's threads reach."""

    @cute.jit
    def rms_norm(mX: cute.Tensor, mW: cute.Tensor, mY: cute.Tensor, stream):
        mW = promised(mW, 4)
        whole_kernel(mX, mW, mY, EPS, plan).launch(**grid.a_group_a_row(mX, plan), stream=stream)

    return rms_norm
