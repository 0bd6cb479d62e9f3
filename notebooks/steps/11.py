"""Lesson 11: the kernels between a variance in one pass and LayerNorm."""

from collections.abc import Callable
from typing import NamedTuple

import cutlass
import cutlass.cute as cute
from cutlass import Float32, Int32
from cutlass.memory import SmemAllocator

from quack_lite import copies, grid, reductions, tiling

VECTOR, WARP = 8, 32
EPS = 1e-5


class Operator(NamedTuple):
    """combine(a, b) of two values, tuples of numbers; identity changes nothing that it is combined with."""

    identity: tuple
    combine: Callable


def combine_moments(a, b):
    """(count, mean, squared deviations) of two parts of a row become those of both."""
    count = a[0] + b[0]
    share = 1.0 / cute.arch.fmax(count, 1.0)
    apart = a[1] - b[1]
    mean = (a[0] * a[1] + b[0] * b[1]) * share
    return count, mean, a[2] + b[2] + apart * apart * (a[0] * b[0] * share)


SUM = Operator((0.0,), lambda a, b: (a[0] + b[0],))
PAIR = Operator((0.0, 0.0), lambda a, b: (a[0] + b[0], a[1] + b[1]))
MOMENTS = Operator((0.0, 0.0, 0.0), combine_moments)


class Plan(NamedTuple):
    """How rows are handed out: vectors of a thread, threads of a block, which has a row."""

    vectors: int
    threads: int


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


def warp_reduce(value, op: Operator):
    """The butterfly of lesson 8."""
    for step in range(5):
        other = tuple(cute.arch.shuffle_sync_bfly(v, offset=1 << step) for v in value)
        value = op.combine(value, other)
    return value


@cute.jit
def block_reduce(value, op: Operator, sW: cute.Tensor):
    """block_sum of lesson 10 for any operator; sW (parts, warps)."""
    lane, warp = cute.arch.lane_idx(), cute.arch.warp_idx()
    value = warp_reduce(value, op)
    if lane == 0:
        for part in cutlass.range_constexpr(len(value)):
            sW[part, warp] = value[part]
    cute.arch.barrier()
    value = tuple(Float32(part) for part in op.identity)
    if lane < sW.shape[1]:
        value = tuple(sW[part, lane] for part in range(sW.shape[0]))
    return warp_reduce(value, op)


@cute.kernel
def careless_kernel(mX: cute.Tensor, mY: cute.Tensor, mV: cute.Tensor, plan: cutlass.Constexpr):
    row, _, _ = cute.arch.block_idx()
    thread, _, _ = cute.arch.thread_idx()
    n, vectors = Float32(mX.shape[1]), Int32(mX.shape[1]) // VECTOR
    gX, gY = row_vectors(mX[row, None]), row_vectors(mY[row, None])  # (vector, n / vector)
    sW = SmemAllocator().allocate_tensor(Float32, cute.make_layout((1, plan.threads // WARP, 2)))  # (1, warps, 2)
    rX = cute.make_rmem_tensor((VECTOR, plan.vectors), mX.element_type)  # (vector, vectors)
    rX.fill(0.0)
    for j in cutlass.range_constexpr(plan.vectors):
        if thread + j * plan.threads < vectors:
            rX[None, j].store(gX[None, thread + j * plan.threads].load())
    value = Float32(0.0)
    for j in cutlass.range_constexpr(plan.vectors):
        value += total(rX[None, j].load().to(Float32))
    mean = block_reduce((value,), SUM, sW[None, None, 0])[0] / n
    value = Float32(0.0)
    for j in cutlass.range_constexpr(plan.vectors):
        d = rX[None, j].load().to(Float32) - mean  # (vector)
        value += total(d * d)
    variance = block_reduce((value,), SUM, sW[None, None, 1])[0] / n
    rstd = cute.math.rsqrt(variance + EPS)
    for j in cutlass.range_constexpr(plan.vectors):
        if thread + j * plan.threads < vectors:
            y = (rX[None, j].load().to(Float32) - mean) * rstd  # (vector)
            gY[None, thread + j * plan.threads].store(y.to(mY.element_type))
    if thread == 0:
        mV[row] = variance


@cute.kernel
def two_pass_kernel(mX: cute.Tensor, mY: cute.Tensor, mV: cute.Tensor, plan: cutlass.Constexpr):
    row, _, _ = cute.arch.block_idx()
    thread, _, _ = cute.arch.thread_idx()
    n, vectors = Float32(mX.shape[1]), Int32(mX.shape[1]) // VECTOR
    gX, gY = row_vectors(mX[row, None]), row_vectors(mY[row, None])  # (vector, n / vector)
    sW = SmemAllocator().allocate_tensor(Float32, cute.make_layout((1, plan.threads // WARP, 2)))  # (1, warps, 2)
    rX = cute.make_rmem_tensor((VECTOR, plan.vectors), mX.element_type)  # (vector, vectors)
    rX.fill(0.0)
    for j in cutlass.range_constexpr(plan.vectors):
        if thread + j * plan.threads < vectors:
            rX[None, j].store(gX[None, thread + j * plan.threads].load())
    value = Float32(0.0)
    for j in cutlass.range_constexpr(plan.vectors):
        value += total(rX[None, j].load().to(Float32))
    mean = block_reduce((value,), SUM, sW[None, None, 0])[0] / n
    value = Float32(0.0)
    for j in cutlass.range_constexpr(plan.vectors):
        if thread + j * plan.threads < vectors:
            d = rX[None, j].load().to(Float32) - mean  # (vector)
            value += total(d * d)
    variance = block_reduce((value,), SUM, sW[None, None, 1])[0] / n
    rstd = cute.math.rsqrt(variance + EPS)
    for j in cutlass.range_constexpr(plan.vectors):
        if thread + j * plan.threads < vectors:
            y = (rX[None, j].load().to(Float32) - mean) * rstd  # (vector)
            gY[None, thread + j * plan.threads].store(y.to(mY.element_type))
    if thread == 0:
        mV[row] = variance


@cute.kernel
def moments_kernel(mX: cute.Tensor, mY: cute.Tensor, mV: cute.Tensor, plan: cutlass.Constexpr):
    row, _, _ = cute.arch.block_idx()
    thread, _, _ = cute.arch.thread_idx()
    n, vectors = Float32(mX.shape[1]), Int32(mX.shape[1]) // VECTOR
    gX, gY = row_vectors(mX[row, None]), row_vectors(mY[row, None])  # (vector, n / vector)
    sW = SmemAllocator().allocate_tensor(Float32, cute.make_layout((3, plan.threads // WARP)))  # (parts, warps)
    rX = cute.make_rmem_tensor((VECTOR, plan.vectors), mX.element_type)  # (vector, vectors)
    rX.fill(0.0)
    for j in cutlass.range_constexpr(plan.vectors):
        if thread + j * plan.threads < vectors:
            rX[None, j].store(gX[None, thread + j * plan.threads].load())
    value = tuple(Float32(part) for part in MOMENTS.identity)
    for j in cutlass.range_constexpr(plan.vectors):
        if thread + j * plan.threads < vectors:
            x = rX[None, j].load().to(Float32)  # (vector)
            mean = total(x) / VECTOR
            value = MOMENTS.combine(value, (Float32(VECTOR), mean, total((x - mean) * (x - mean))))
    value = block_reduce(value, MOMENTS, sW)
    mean = value[1]
    variance = value[2] / n
    rstd = cute.math.rsqrt(variance + EPS)
    for j in cutlass.range_constexpr(plan.vectors):
        if thread + j * plan.threads < vectors:
            y = (rX[None, j].load().to(Float32) - mean) * rstd  # (vector)
            gY[None, thread + j * plan.threads].store(y.to(mY.element_type))
    if thread == 0:
        mV[row] = variance


def norm_with(kernel, plan: Plan):
    """A host function (x (m, n), y (m, n), variance (m) float32) that runs one of these kernels as `plan` says."""

    @cute.jit
    def normalise(mX: cute.Tensor, mY: cute.Tensor, mV: cute.Tensor, stream):
        launched = kernel(mX, mY, mV, plan)
        launched.launch(grid=(mX.shape[0], 1, 1), block=(plan.threads, 1, 1), stream=stream)

    return normalise


@cute.kernel
def layer_norm_kernel(
    mX: cute.Tensor, mW: cute.Tensor, mB: cute.Tensor, mY: cute.Tensor, eps: cutlass.Constexpr, plan: cutlass.Constexpr
):
    # tile
    tile = copies.row_tile(mX, grid.row_place(plan), plan)
    mailbox = reductions.expect_peers(plan, parts=1, turns=2)
    n = Float32(mX.shape[1])

    # load
    x = copies.load(mX, tile, plan)  # (elements)
    w = copies.load_columns(mW, tile, plan)  # (elements)
    b = copies.load_columns(mB, tile, plan)  # (elements)

    # reduce
    (total,) = reductions.row_reduce(reductions.thread_sum(x), reductions.SUM, plan, mailbox, 0)
    mean = total / n
    d = copies.inside(x - mean, tile, plan)  # (elements)
    (squares,) = reductions.row_reduce(reductions.thread_sum(d * d), reductions.SUM, plan, mailbox, 1)
    rstd = cute.math.rsqrt(squares / n + eps)

    # compute
    y = d * rstd * w + b  # (elements)

    # store
    copies.store(y, mY, tile, plan)


@cute.kernel
def by_pieces_kernel(
    mX: cute.Tensor,
    mW: cute.Tensor,
    mB: cute.Tensor,
    mY: cute.Tensor,
    eps: cutlass.Constexpr,
    plan: cutlass.Constexpr,
):
    # tile
    place = grid.row_place(plan)
    tile = copies.row_tile(mX, place, plan)
    mailbox = reductions.expect_peers(plan, parts=1, turns=2)
    n = Float32(mX.shape[1])

    # load
    x = copies.fetch(mX, tile, plan)  # (vector, vectors), (1)

    # reduce
    total, squares = Float32(0.0), Float32(0.0)
    for j in cutlass.range_constexpr(copies.pieces(plan)):
        total += reductions.sum_of(copies.piece(x, j, plan))
    (total,) = reductions.row_reduce((total,), reductions.SUM, plan, mailbox, 0)
    mean = total / n
    for j in cutlass.range_constexpr(copies.pieces(plan)):
        d = copies.inside_piece(copies.piece(x, j, plan) - mean, tile, j, plan)  # (vector) or (1)
        squares += reductions.sum_of(d * d)
    (squares,) = reductions.row_reduce((squares,), reductions.SUM, plan, mailbox, 1)
    rstd = cute.math.rsqrt(squares / n + eps)

    # compute, store
    for j in cutlass.range_constexpr(copies.pieces(plan)):
        w, b = copies.columns_piece(mW, tile, j, plan), copies.columns_piece(mB, tile, j, plan)  # (vector) or (1)
        y = (copies.piece(x, j, plan) - mean) * rstd * w + b  # (vector) or (1)
        copies.store_piece(y, mY, tile, j, plan)


def layer_norm_with(plan: tiling.RowPlan, kernel=layer_norm_kernel):
    """A host function for rows of any length and start, as far as the plan's threads reach."""

    @cute.jit
    def layer_norm(mX: cute.Tensor, mW: cute.Tensor, mB: cute.Tensor, mY: cute.Tensor, stream):
        mW, mB = promised(mW, 4), promised(mB, 4)
        launched = kernel(mX, mW, mB, mY, EPS, plan)
        launched.launch(**grid.a_group_a_row(mX, plan), stream=stream)

    return layer_norm
