"""layer_norm(x) = (x - mean) * rstd * w + b, rstd = 1 / sqrt(var + eps), over the rows of a matrix, both ways.

The variance is the mean of (x - mean)^2: a second pass over the row, which is on chip.
backward: with x^ = (x - mean) * rstd,  dx = rstd * (w dy - mean_j(w_j dy_j) - x^ * mean_j(x^_j w_j dy_j)),
dw = sum over rows of dy x^,  db = sum over rows of dy.
"""

import cutlass
import cutlass.cute as cute
from cutlass import Float32

from quack_lite import copies, grid, reductions, turns


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
    x = copies.load(mX, tile, plan)  # (elements)
    reductions.peers_ready(plan)

    # reduce
    (total,) = reductions.row_reduce(reductions.thread_sum(x), reductions.SUM, plan, mailbox, 0)
    mean = total / n
    d = copies.inside(x - mean, tile, plan)  # (elements)
    (squares,) = reductions.row_reduce(reductions.thread_sum(d * d), reductions.SUM, plan, mailbox, 1)
    rstd = cute.math.rsqrt(squares / n + eps, fastmath=True)

    # compute
    w, b = copies.load_columns(mW, tile, plan), copies.load_columns(mB, tile, plan)  # (elements)
    y = d * rstd * w + b  # (elements)

    # store
    copies.store(y, mY, tile, plan)
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
    mailbox = reductions.expect_peers(plan, parts=1, turns=2)
    stages = turns.open_stages(mX.element_type, plan)  # (vector, vectors, stages)
    n = Float32(mX.shape[1])

    # load
    for turn in cutlass.range_constexpr(plan.stages):
        turns.send(stages, mX, turns.tile(mX, place, turn, plan), turn, plan)
        turns.sent()
    first = turns.tile(mX, place, 0, plan)
    w = copies.load_columns(mW, first, plan)  # (elements)
    b = copies.load_columns(mB, first, plan)  # (elements)
    reductions.peers_ready(plan)

    for turn in cutlass.range(turns.count(mX, plan), unroll=1):
        tile = turns.tile(mX, place, turn, plan)
        turns.oldest_has_come(plan)
        x = turns.receive(stages, mX, tile, turn, plan)  # (elements)

        # reduce
        (total,) = reductions.row_reduce(reductions.thread_sum(x), reductions.SUM, plan, mailbox, 2 * turn)
        turns.send(stages, mX, turns.tile(mX, place, turn + plan.stages, plan), turn, plan)
        turns.sent()
        mean = total / n
        d = copies.inside(x - mean, tile, plan)  # (elements)
        (squares,) = reductions.row_reduce(reductions.thread_sum(d * d), reductions.SUM, plan, mailbox, 2 * turn + 1)
        rstd = cute.math.rsqrt(squares / n + eps, fastmath=True)

        # compute
        y = d * rstd * w + b  # (elements)

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
    place = grid.row_place(plan)
    mailbox = reductions.expect_peers(plan, parts=2, turns=2)
    stages_x = turns.open_stages(mX.element_type, plan)  # (vector, vectors, stages)
    stages_dy = turns.open_stages(mdY.element_type, plan)  # (vector, vectors, stages)
    dw, db = turns.open_sums(plan), turns.open_sums(plan)  # (elements)
    n = Float32(mX.shape[1])

    # load
    for turn in cutlass.range_constexpr(plan.stages):
        later = turns.tile(mX, place, turn, plan)
        turns.send(stages_x, mX, later, turn, plan)
        turns.send(stages_dy, mdY, later, turn, plan)
        turns.sent()
    w = copies.load_columns(mW, turns.tile(mX, place, 0, plan), plan)  # (elements)
    reductions.peers_ready(plan)

    for turn in cutlass.range(turns.count(mX, plan), unroll=1):
        tile = turns.tile(mX, place, turn, plan)
        mean, rstd = copies.load_number(mMean, tile), copies.load_number(mRstd, tile)
        turns.oldest_has_come(plan)
        x = turns.receive(stages_x, mX, tile, turn, plan)  # (elements)
        dy = turns.receive(stages_dy, mdY, tile, turn, plan)  # (elements)

        # reduce
        x_hat = (x - mean) * rstd  # (elements)
        wdy = dy * turns.columns_again(w, mW, tile, plan)  # (elements)
        value = (*reductions.thread_sum(wdy), *reductions.thread_sum(wdy * x_hat))
        total, dot = reductions.row_reduce(value, reductions.PAIR, plan, mailbox, turn)
        later = turns.tile(mX, place, turn + plan.stages, plan)
        turns.send(stages_x, mX, later, turn, plan)
        turns.send(stages_dy, mdY, later, turn, plan)
        turns.sent()

        # compute
        dx = (wdy - total / n - x_hat * (dot / n)) * rstd  # (elements)
        turns.add_to(dw, dy * x_hat, plan)
        turns.add_to(db, dy, plan)

        # store
        copies.store(dx, mdX, tile, plan)

    # store the sums over rows
    first = turns.tile(mX, place, 0, plan)
    copies.store_columns(turns.total(dw, plan), mdW[place.row, None], first, plan)
    copies.store_columns(turns.total(db, plan), mdB[place.row, None], first, plan)


@cute.jit
def layer_norm(
    mX: cute.Tensor,
    mW: cute.Tensor,
    mB: cute.Tensor,
    mY: cute.Tensor,
    mMean: cute.Tensor,
    mRstd: cute.Tensor,
    eps: Float32,
    stream,
    plan: cutlass.Constexpr,
):
    """mX (m, n), mW, mB (n) float32 -> mY (m, n), mMean, mRstd (m) float32."""
    layer_norm_kernel(mX, mW, mB, mY, mMean, mRstd, eps, plan).launch(**grid.a_group_a_row(mX, plan), stream=stream)


@cute.jit
def long_layer_norm(
    mX: cute.Tensor,
    mW: cute.Tensor,
    mB: cute.Tensor,
    mY: cute.Tensor,
    mMean: cute.Tensor,
    mRstd: cute.Tensor,
    eps: Float32,
    stream,
    plan: cutlass.Constexpr,
):
    """As layer_norm, for rows too long to read weight and bias anew for each."""
    long_layer_norm_kernel(mX, mW, mB, mY, mMean, mRstd, eps, plan).launch(
        **turns.groups_go_on(mX, plan), stream=stream
    )


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
