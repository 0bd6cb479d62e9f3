"""layer_norm(x) = (x - mean) * rstd * w + b, rstd = 1 / sqrt(var + eps), over the rows of a matrix, both ways.

The variance is the mean of (x - mean)^2: a second pass over the row, which is on chip.
backward: with x^ = (x - mean) * rstd,  dx = rstd * (w dy - mean_j(w_j dy_j) - x^ * mean_j(x^_j w_j dy_j)),
dw = sum over rows of dy x^,  db = sum over rows of dy.
"""

import cutlass
import cutlass.cute as cute
from cutlass import Float32, Int32

from quack_lite import copies, grid, reductions, staged, turns


@cute.kernel
def layer_norm_kernel(
    mX: cute.Tensor,
    mW: cute.Tensor,
    mB: cute.Tensor,
    mY: cute.Tensor,
    mMean: cute.Tensor,
    mRstd: cute.Tensor,
    eps: Float32,
    plan: cutlass.Constexpr,
):
    # tile
    place = grid.row_place(plan)
    tile = copies.row_tile(mX, place, plan)
    mailbox = reductions.expect_peers(plan, parts=1, turns=2)
    n = Float32(mX.shape[1])

    # load
    x = staged.send(mX, tile, plan)  # (vector, vectors), (1)
    staged.have_come()
    reductions.peers_ready(plan)

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
    rstd = cute.math.rsqrt(squares / n + eps, fastmath=True)

    # compute, store
    for j in cutlass.range_constexpr(copies.pieces(plan)):
        w, b = copies.columns_piece(mW, tile, j, plan), copies.columns_piece(mB, tile, j, plan)  # (vector) or (1)
        y = (copies.piece(x, j, plan) - mean) * rstd * w + b  # (vector) or (1)
        copies.store_piece(y, mY, tile, j, plan)
    copies.store_number(mean, mMean, tile, place)
    copies.store_number(rstd, mRstd, tile, place)


@cute.kernel
def long_layer_norm_kernel(
    mX: cute.Tensor,
    mW: cute.Tensor,
    mB: cute.Tensor,
    mY: cute.Tensor,
    mMean: cute.Tensor,
    mRstd: cute.Tensor,
    eps: Float32,
    plan: cutlass.Constexpr,
):
    # tile
    place = grid.row_place(plan)
    first = copies.row_tile(mX, place, plan)
    mailbox = reductions.expect_peers(plan, parts=1, turns=2)
    stages = turns.open_stages(mX.element_type, plan)  # (vector, vectors, stages)
    n = Float32(mX.shape[1])

    # load
    for turn in cutlass.range_constexpr(plan.stages):
        turns.send(stages, mX, turns.tile(first, mX, turn, plan), turn, plan)
        turns.sent()
    w = copies.load_columns(mW, first, plan)  # (elements)
    b = copies.load_columns(mB, first, plan)  # (elements)
    reductions.peers_ready(plan)

    for turn in cutlass.range(turns.count(mX, plan), unroll=1):
        tile = turns.tile(first, mX, turn, plan)
        turns.oldest_has_come(plan)
        x = turns.receive(stages, mX, tile, turn, plan)  # (elements)

        # reduce
        (total,) = reductions.row_reduce(reductions.thread_sum(x), reductions.SUM, plan, mailbox, 2 * turn)
        turns.send(stages, mX, turns.tile(first, mX, turn + plan.stages, plan), turn, plan)
        turns.sent()
        mean = total / n
        d = copies.inside(x - mean, tile, plan)  # (elements)
        (squares,) = reductions.row_reduce(reductions.thread_sum(d * d), reductions.SUM, plan, mailbox, 2 * turn + 1)
        rstd = cute.math.rsqrt(squares / n + eps, fastmath=True)

        # compute
        y = d * rstd * turns.columns_again(w, mW, tile, plan) + turns.columns_again(b, mB, tile, plan)  # (elements)

        # store
        copies.store(y, mY, tile, plan)
        copies.store_number(mean, mMean, tile, place)
        copies.store_number(rstd, mRstd, tile, place)


@cute.kernel
def layer_norm_backward_kernel(
    mdY: cute.Tensor,
    mX: cute.Tensor,
    mW: cute.Tensor,
    mMean: cute.Tensor,
    mRstd: cute.Tensor,
    mdX: cute.Tensor,
    mdW: cute.Tensor,
    mdB: cute.Tensor,
    plan: cutlass.Constexpr,
):
    # tile
    first = copies.row_tile(mX, grid.row_place(plan), plan)
    mailbox = reductions.expect_peers(plan, parts=2, turns=2)
    stages_x = turns.open_stages(mX.element_type, plan)  # (vector, vectors, stages)
    stages_dy = turns.open_stages(mdY.element_type, plan)  # (vector, vectors, stages)
    dw, db = turns.open_sums(plan), turns.open_sums(plan)  # (elements)
    n = Float32(mX.shape[1])

    # load
    for turn in cutlass.range_constexpr(plan.stages):
        later = turns.tile(first, mX, turn, plan)
        turns.send(stages_x, mX, later, turn, plan)
        turns.send(stages_dy, mdY, later, turn, plan)
        turns.sent()
    w = copies.load_columns(mW, first, plan)  # (elements)
    mean, rstd = copies.load_number(mMean, first), copies.load_number(mRstd, first)
    reductions.peers_ready(plan)

    for turn in cutlass.range(turns.count(mX, plan), unroll=1):
        tile = turns.tile(first, mX, turn, plan)
        turns.oldest_has_come(plan)
        x = turns.receive(stages_x, mX, tile, turn, plan)  # (elements)
        dy = turns.receive(stages_dy, mdY, tile, turn, plan)  # (elements)

        # reduce
        x_hat = (x - mean) * rstd  # (elements)
        next_tile = turns.tile(first, mX, turn + 1, plan)
        next_mean, next_rstd = copies.load_number(mMean, next_tile), copies.load_number(mRstd, next_tile)
        wdy = dy * turns.columns_again(w, mW, tile, plan)  # (elements)
        value = (*reductions.thread_sum(wdy), *reductions.thread_sum(wdy * x_hat))
        total, dot = reductions.row_reduce(value, reductions.PAIR, plan, mailbox, turn)
        later = turns.tile(first, mX, turn + plan.stages, plan)
        turns.send(stages_x, mX, later, turn, plan)
        turns.send(stages_dy, mdY, later, turn, plan)
        turns.sent()

        # compute
        dx = (wdy - total / n - x_hat * (dot / n)) * rstd  # (elements)
        turns.add_to(dw, dy * x_hat, plan)
        turns.add_to(db, dy, plan)

        # store
        copies.store(dx, mdX, tile, plan)
        mean, rstd = next_mean, next_rstd

    # store the sums over rows
    copies.store_columns(turns.total(dw, plan), mdW[first.row, None], first, plan)
    copies.store_columns(turns.total(db, plan), mdB[first.row, None], first, plan)


@cute.jit
def layer_norm(
    mX: cute.Tensor,
    mW: cute.Tensor,
    mB: cute.Tensor,
    mY: cute.Tensor,
    mMean: cute.Tensor,
    mRstd: cute.Tensor,
    eps: Float32,
    groups: Int32,
    stream,
    plan: cutlass.Constexpr,
):
    """mX (m, n), mW, mB (n) float32 -> mY (m, n), mMean, mRstd (m) float32; groups: as many as there are rows for."""
    launch = turns.groups_go_on(mX, groups, plan)
    layer_norm_kernel(mX, mW, mB, mY, mMean, mRstd, eps, plan).launch(**launch, stream=stream)


@cute.jit
def long_layer_norm(
    mX: cute.Tensor,
    mW: cute.Tensor,
    mB: cute.Tensor,
    mY: cute.Tensor,
    mMean: cute.Tensor,
    mRstd: cute.Tensor,
    eps: Float32,
    groups: Int32,
    stream,
    plan: cutlass.Constexpr,
):
    """As layer_norm, for rows too long to read weight and bias anew for each."""
    launch = turns.groups_go_on(mX, groups, plan)
    long_layer_norm_kernel(mX, mW, mB, mY, mMean, mRstd, eps, plan).launch(**launch, stream=stream)


@cute.jit
def layer_norm_backward(
    mdY: cute.Tensor,
    mX: cute.Tensor,
    mW: cute.Tensor,
    mMean: cute.Tensor,
    mRstd: cute.Tensor,
    mdX: cute.Tensor,
    mdW: cute.Tensor,
    mdB: cute.Tensor,
    stream,
    plan: cutlass.Constexpr,
):
    """mdY, mX (m, n), mW (n), mMean, mRstd (m) float32 -> mdX (m, n), mdW, mdB (p, n) float32: p sums each."""
    layer_norm_backward_kernel(mdY, mX, mW, mMean, mRstd, mdX, mdW, mdB, plan).launch(
        **turns.a_group_a_sum(mX, mdW, plan), stream=stream
    )
