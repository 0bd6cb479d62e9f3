"""cross_entropy(x, target) = lse - x[target], lse = log sum_j exp(x_j), a row at a time, forward and backward.

A loss needs one number of a row, so the row streams by and nothing of it stays on chip.
cross_entropy_backward:          dx_c = scale * (exp(x_c - lse) - [c = target])
smoothed_cross_entropy:          also spread = sum_c w_c (lse - x_c)
smoothed_cross_entropy_backward: dx_c = a * exp(x_c - lse) - b * [c = target] - e * w_c
"""

import math

import cutlass
import cutlass.cute as cute
from cutlass import Float32, Int32, Int64

from quack_lite import copies, grid, reductions

IGNORED, NO_CLASS = -1, -2


@cute.kernel
def cross_entropy_kernel(
    mX: cute.Tensor,
    mTarget: cute.Tensor,
    mLoss: cute.Tensor,
    mLse: cute.Tensor,
    ignore_index: Int64,
    plan: cutlass.Constexpr,
):
    # tile
    place = grid.row_place(plan)
    tile = copies.row_tile(mX, place, plan)
    mailbox = reductions.expect_peers(plan, parts=2)

    # load, reduce
    value = reductions.softmax_value(copies.load_edge(mX, tile, fill=-math.inf))  # (max, sum)
    for step in cutlass.range(copies.row_steps(tile, plan), unroll=1):
        x = copies.load_vectors(mX, copies.step_tile(tile, step, plan), plan, fill=-math.inf)  # (vector, vectors)
        value = reductions.add_softmax(value, x)
    reductions.peers_ready(plan)
    row_max, row_sum = reductions.row_reduce(value, reductions.SOFTMAX, plan, mailbox)

    # compute, store
    lse = row_max + reductions.log(row_sum)
    copies.store_number(lse, mLse, tile, place)
    copies.store_number(loss_of(mX, tile, class_of(mTarget, tile, ignore_index), lse), mLoss, tile, place)


@cute.kernel
def smoothed_cross_entropy_kernel(
    mX: cute.Tensor,
    mTarget: cute.Tensor,
    mW: cute.Tensor,
    mLoss: cute.Tensor,
    mLse: cute.Tensor,
    mSpread: cute.Tensor,
    ignore_index: Int64,
    plan: cutlass.Constexpr,
):
    # tile
    place = grid.row_place(plan)
    tile = copies.row_tile(mX, place, plan)
    mailbox = reductions.expect_peers(plan, parts=2, turns=2)

    # load, reduce
    value = reductions.softmax_value(Float32(-math.inf))  # (max, sum)
    weights = (Float32(0.0), Float32(0.0))  # (sum of w x, sum of w)
    for step in cutlass.range(copies.row_steps(tile, plan), unroll=1):
        part = copies.step_tile(tile, step, plan)
        x = copies.load(mX, part, plan, fill=-math.inf)  # (elements)
        w = copies.load_columns(mW, part, plan)  # (elements)
        value = reductions.add_softmax(value, x)
        wx = copies.inside(w * x, part, plan)  # (elements)
        weights = reductions.combine_pair(weights, (*reductions.thread_sum(wx), *reductions.thread_sum(w)))
    row_max, row_sum = reductions.row_reduce(value, reductions.SOFTMAX, plan, mailbox, 0)
    sum_wx, sum_w = reductions.row_reduce(weights, reductions.PAIR, plan, mailbox, 1)

    # compute, store
    lse = row_max + reductions.log(row_sum)
    label = class_of(mTarget, tile, ignore_index)
    copies.store_number(lse, mLse, tile, place)
    copies.store_number(loss_of(mX, tile, label, lse), mLoss, tile, place)
    copies.store_number(counted(sum_w * lse - sum_wx, label), mSpread, tile, place)


@cute.kernel
def cross_entropy_backward_kernel(
    mX: cute.Tensor,
    mTarget: cute.Tensor,
    mLse: cute.Tensor,
    mScale: cute.Tensor,
    mdX: cute.Tensor,
    ignore_index: Int64,
    plan: cutlass.Constexpr,
):
    # tile
    tile = copies.row_tile(mX, grid.piece_place(mX, plan), plan)

    # load
    x = copies.load(mX, tile, plan)  # (elements)
    lse, scale = copies.load_number(mLse, tile), copies.load_number(mScale, tile)
    label = class_of(mTarget, tile, ignore_index)

    # compute
    p = reductions.exp(x - lse) * scale  # (elements)
    dx = cute.where(copies.columns(tile, plan) == label, p - scale, p)  # (elements)
    dx = zero_unless(label >= 0, dx)  # (elements)

    # store
    copies.store(dx, mdX, tile, plan)


@cute.kernel
def smoothed_cross_entropy_backward_kernel(
    mX: cute.Tensor,
    mTarget: cute.Tensor,
    mW: cute.Tensor,
    mLse: cute.Tensor,
    mA: cute.Tensor,
    mB: cute.Tensor,
    mE: cute.Tensor,
    mdX: cute.Tensor,
    plan: cutlass.Constexpr,
):
    # tile
    tile = copies.row_tile(mX, grid.piece_place(mX, plan), plan)

    # load
    x = copies.load(mX, tile, plan)  # (elements)
    w = copies.load_columns(mW, tile, plan)  # (elements)
    lse, a = copies.load_number(mLse, tile), copies.load_number(mA, tile)
    b, e = copies.load_number(mB, tile), copies.load_number(mE, tile)
    label = class_of(mTarget, tile, Int64(NO_CLASS))

    # compute
    dx = reductions.exp(x - lse) * a - w * e  # (elements)
    dx = cute.where(copies.columns(tile, plan) == label, dx - b, dx)  # (elements)
    dx = zero_unless(a != 0.0 or e != 0.0, dx)  # (elements)

    # store
    copies.store(dx, mdX, tile, plan)


@cute.jit
def class_of(mTarget: cute.Tensor, tile: copies.Tile, ignore_index):
    """The label of a tile's row: a class 0 .. n - 1, IGNORED, NO_CLASS for any other number and past the last row."""
    label = Int32(NO_CLASS)
    if tile.n > 0:
        target = Int64(mTarget[tile.row])
        if target >= 0 and target < tile.n:
            label = Int32(target)
        if target == ignore_index:
            label = Int32(IGNORED)
    return label


@cute.jit
def loss_of(mX: cute.Tensor, tile: copies.Tile, label, lse):
    """lse - x[label]; 0 if the row is ignored, NaN if the label is no class, in which case nothing is read."""
    loss = Float32(0.0)
    if label >= 0:
        loss = lse - Float32(mX[tile.row, label])
    return counted(loss, label)


@cute.jit
def counted(loss, label):
    """A loss; 0 if the row is ignored, NaN if the label is no class."""
    found = loss
    if label == IGNORED:
        found = Float32(0.0)
    if label == NO_CLASS:
        found = Float32(math.nan)
    return found


@cute.jit
def zero_unless(condition, dx):
    """dx (elements) if the row has a gradient, else 0, whatever dx is."""
    found = cute.zeros_like(dx)
    if condition:
        found = dx
    return found


@cute.jit
def cross_entropy(
    mX: cute.Tensor,
    mTarget: cute.Tensor,
    mLoss: cute.Tensor,
    mLse: cute.Tensor,
    ignore_index: Int64,
    stream,
    plan: cutlass.Constexpr,
):
    """mX (m, n), mTarget (m) int64 -> mLoss, mLse (m) float32."""
    cross_entropy_kernel(mX, mTarget, mLoss, mLse, ignore_index, plan).launch(
        **grid.a_group_a_row(mX, plan), stream=stream
    )


@cute.jit
def cross_entropy_backward(
    mX: cute.Tensor,
    mTarget: cute.Tensor,
    mLse: cute.Tensor,
    mScale: cute.Tensor,
    mdX: cute.Tensor,
    ignore_index: Int64,
    stream,
    plan: cutlass.Constexpr,
):
    """mX (m, n), mTarget (m) int64, mLse, mScale (m) float32 -> mdX (m, n), which may be mX itself."""
    cross_entropy_backward_kernel(mX, mTarget, mLse, mScale, mdX, ignore_index, plan).launch(
        **grid.a_block_a_piece(mX, plan), stream=stream
    )


@cute.jit
def smoothed_cross_entropy(
    mX: cute.Tensor,
    mTarget: cute.Tensor,
    mW: cute.Tensor,
    mLoss: cute.Tensor,
    mLse: cute.Tensor,
    mSpread: cute.Tensor,
    ignore_index: Int64,
    stream,
    plan: cutlass.Constexpr,
):
    """mX (m, n), mTarget (m) int64, mW (n) float32 -> mLoss, mLse, mSpread (m) float32."""
    smoothed_cross_entropy_kernel(mX, mTarget, mW, mLoss, mLse, mSpread, ignore_index, plan).launch(
        **grid.a_group_a_row(mX, plan), stream=stream
    )


@cute.jit
def smoothed_cross_entropy_backward(
    mX: cute.Tensor,
    mTarget: cute.Tensor,
    mW: cute.Tensor,
    mLse: cute.Tensor,
    mA: cute.Tensor,
    mB: cute.Tensor,
    mE: cute.Tensor,
    mdX: cute.Tensor,
    stream,
    plan: cutlass.Constexpr,
):
    """mX (m, n), mTarget (m) int64, mW (n), mLse, mA, mB, mE (m) float32 -> mdX (m, n), which may be mX itself."""
    smoothed_cross_entropy_backward_kernel(mX, mTarget, mW, mLse, mA, mB, mE, mdX, plan).launch(
        **grid.a_block_a_piece(mX, plan), stream=stream
    )
