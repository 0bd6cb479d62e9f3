"""rms_norm(x) = x * rstd * w, rstd = 1 / sqrt(mean_j x_j^2 + eps), over the rows of a matrix, forward and backward.

add_rms_norm: the same of r = x + residual, rounded as it is stored.
backward: with x^ = x * rstd,  dx = rstd * (w dy - x^ * mean_j(x^_j w_j dy_j)),  dw = sum over rows of dy x^;
computed as x^ * mean_j(x^_j w_j dy_j) = x * sum_j(x_j w_j dy_j) / (sum_j x_j^2 + n eps), which rounds less often.
"""

import cutlass
import cutlass.cute as cute
from cutlass import Float32, Int32

from quack_lite import copies, grid, reductions, staged, turns


@cute.kernel
def rms_norm_kernel(mX: cute.Tensor, mW: cute.Tensor, mY: cute.Tensor, eps: Float32, plan: cutlass.Constexpr):
    # tile
    tile = copies.row_tile(mX, grid.row_place(plan), plan)
    mailbox = reductions.expect_peers(plan, parts=1)

    # load
    x = staged.send(mX, tile, plan)  # (vector, vectors), (1)
    w = copies.fetch_columns(mW, tile, plan)  # (vector, vectors), (1)
    staged.have_come()
    reductions.peers_ready(plan)

    # reduce
    squares = Float32(0.0)
    for j in cutlass.range_constexpr(copies.pieces(plan)):
        squares += reductions.sum_of(copies.piece(x, j, plan) * copies.piece(x, j, plan))
    (squares,) = reductions.row_reduce((squares,), reductions.SUM, plan, mailbox)
    rstd = rstd_of(squares, mX, eps)

    # compute, store
    for j in cutlass.range_constexpr(copies.pieces(plan)):
        y = copies.piece(x, j, plan) * rstd * copies.piece(w, j, plan)  # (vector) or (1)
        copies.store_piece(y, mY, tile, j, plan)


@cute.kernel
def long_rms_norm_kernel(mX: cute.Tensor, mW: cute.Tensor, mY: cute.Tensor, eps: Float32, plan: cutlass.Constexpr):
    # tile
    first = copies.row_tile(mX, grid.row_place(plan), plan)
    mailbox = reductions.expect_peers(plan, parts=1, turns=2)
    stages = turns.open_stages(mX.element_type, plan)  # (vector, vectors, stages)

    # load
    for turn in cutlass.range_constexpr(plan.stages):
        turns.send(stages, mX, turns.tile(first, mX, turn, plan), turn, plan)
        turns.sent()
    w = copies.load_columns(mW, first, plan)  # (elements)
    reductions.peers_ready(plan)

    for turn in cutlass.range(turns.count(mX, plan), unroll=1):
        tile = turns.tile(first, mX, turn, plan)
        turns.oldest_has_come(plan)
        x = turns.receive(stages, mX, tile, turn, plan)  # (elements)

        # reduce
        (squares,) = reductions.row_reduce(reductions.thread_sum(x * x), reductions.SUM, plan, mailbox, turn)
        turns.send(stages, mX, turns.tile(first, mX, turn + plan.stages, plan), turn, plan)
        turns.sent()

        # compute
        y = x * rstd_of(squares, mX, eps) * w  # (elements)

        # store
        copies.store(y, mY, tile, plan)


@cute.kernel
def add_rms_norm_kernel(
    mX: cute.Tensor,
    mResidual: cute.Tensor,
    mW: cute.Tensor,
    mY: cute.Tensor,
    mR: cute.Tensor,
    eps: Float32,
    plan: cutlass.Constexpr,
):
    # tile
    tile = copies.row_tile(mX, grid.row_place(plan), plan)
    mailbox = reductions.expect_peers(plan, parts=1)

    # load
    x, r = staged.send(mX, tile, plan), staged.send(mResidual, tile, plan)  # (vector, vectors), (1)
    w = copies.fetch_columns(mW, tile, plan)  # (vector, vectors), (1)
    staged.have_come()
    reductions.peers_ready(plan)

    # reduce
    squares = Float32(0.0)
    for j in cutlass.range_constexpr(copies.pieces(plan)):
        copies.put(copies.piece(x, j, plan) + copies.piece(r, j, plan), r, j, plan)
        squares += reductions.sum_of(copies.piece(r, j, plan) * copies.piece(r, j, plan))
    (squares,) = reductions.row_reduce((squares,), reductions.SUM, plan, mailbox)
    rstd = rstd_of(squares, mX, eps)

    # compute, store
    for j in cutlass.range_constexpr(copies.pieces(plan)):
        y = copies.piece(r, j, plan) * rstd * copies.piece(w, j, plan)  # (vector) or (1)
        copies.store_piece(y, mY, tile, j, plan)
        copies.store_piece(copies.piece(r, j, plan), mR, tile, j, plan)


@cute.kernel
def long_add_rms_norm_kernel(
    mX: cute.Tensor,
    mResidual: cute.Tensor,
    mW: cute.Tensor,
    mY: cute.Tensor,
    mR: cute.Tensor,
    eps: Float32,
    plan: cutlass.Constexpr,
):
    # tile
    first = copies.row_tile(mX, grid.row_place(plan), plan)
    mailbox = reductions.expect_peers(plan, parts=1, turns=2)
    stages_x = turns.open_stages(mX.element_type, plan)  # (vector, vectors, stages)
    stages_r = turns.open_stages(mR.element_type, plan)  # (vector, vectors, stages)

    # load
    for turn in cutlass.range_constexpr(plan.stages):
        later = turns.tile(first, mX, turn, plan)
        turns.send(stages_x, mX, later, turn, plan)
        turns.send(stages_r, mResidual, later, turn, plan)
        turns.sent()
    w = copies.load_columns(mW, first, plan)  # (elements)
    reductions.peers_ready(plan)

    for turn in cutlass.range(turns.count(mX, plan), unroll=1):
        tile = turns.tile(first, mX, turn, plan)
        turns.oldest_has_come(plan)
        x = turns.receive(stages_x, mX, tile, turn, plan)  # (elements)
        residual = turns.receive(stages_r, mResidual, tile, turn, plan)  # (elements)
        r = copies.as_stored(x + residual, mR, plan)  # (elements)

        # reduce
        (squares,) = reductions.row_reduce(reductions.thread_sum(r * r), reductions.SUM, plan, mailbox, turn)
        later = turns.tile(first, mX, turn + plan.stages, plan)
        turns.send(stages_x, mX, later, turn, plan)
        turns.send(stages_r, mResidual, later, turn, plan)
        turns.sent()

        # compute
        y = r * rstd_of(squares, mX, eps) * w  # (elements)

        # store
        copies.store(y, mY, tile, plan)
        copies.store(r, mR, tile, plan)


@cute.kernel
def rms_norm_backward_kernel(
    mdY: cute.Tensor,
    mX: cute.Tensor,
    mW: cute.Tensor,
    mdX: cute.Tensor,
    mdW: cute.Tensor,
    eps: Float32,
    plan: cutlass.Constexpr,
):
    # tile
    first = copies.row_tile(mX, grid.row_place(plan), plan)
    mailbox = reductions.expect_peers(plan, parts=2, turns=2)
    stages_x = turns.open_stages(mX.element_type, plan)  # (vector, vectors, stages)
    stages_dy = turns.open_stages(mdY.element_type, plan)  # (vector, vectors, stages)
    dw = turns.open_sums(plan)  # (elements)

    # load
    for turn in cutlass.range_constexpr(plan.stages):
        later = turns.tile(first, mX, turn, plan)
        turns.send(stages_x, mX, later, turn, plan)
        turns.send(stages_dy, mdY, later, turn, plan)
        turns.sent()
    w = copies.load_columns(mW, first, plan)  # (elements)
    reductions.peers_ready(plan)

    for turn in cutlass.range(turns.count(mX, plan), unroll=1):
        tile = turns.tile(first, mX, turn, plan)
        turns.oldest_has_come(plan)
        x = turns.receive(stages_x, mX, tile, turn, plan)  # (elements)
        dy = turns.receive(stages_dy, mdY, tile, turn, plan)  # (elements)

        # reduce
        wdy = dy * turns.columns_again(w, mW, tile, plan)  # (elements)
        value = (*reductions.thread_sum(x * x), *reductions.thread_sum(x * wdy))
        squares, dot = reductions.row_reduce(value, reductions.PAIR, plan, mailbox, turn)
        later = turns.tile(first, mX, turn + plan.stages, plan)
        turns.send(stages_x, mX, later, turn, plan)
        turns.send(stages_dy, mdY, later, turn, plan)
        turns.sent()

        # compute
        rstd = exact_rstd_of(squares, mX, eps)
        dx = (wdy - x * (dot / (squares + eps * Float32(mX.shape[1])))) * rstd  # (elements)
        turns.add_to(dw, dy * (x * rstd), plan)

        # store
        copies.store(dx, mdX, tile, plan)

    # store the sums over rows
    copies.store_columns(turns.total(dw, plan), mdW[first.row, None], first, plan)


@cute.kernel
def add_rms_norm_backward_kernel(
    mdY: cute.Tensor,
    mdR: cute.Tensor,
    mR: cute.Tensor,
    mW: cute.Tensor,
    mdX: cute.Tensor,
    mdW: cute.Tensor,
    eps: Float32,
    plan: cutlass.Constexpr,
):
    # tile
    first = copies.row_tile(mdY, grid.row_place(plan), plan)
    mailbox = reductions.expect_peers(plan, parts=2, turns=2)
    stages_r = turns.open_stages(mR.element_type, plan)  # (vector, vectors, stages)
    stages_dy = turns.open_stages(mdY.element_type, plan)  # (vector, vectors, stages)
    stages_dr = turns.open_stages(mdR.element_type, plan)  # (vector, vectors, stages)
    dw = turns.open_sums(plan)  # (elements)

    # load
    for turn in cutlass.range_constexpr(plan.stages):
        later = turns.tile(first, mdY, turn, plan)
        turns.send(stages_r, mR, later, turn, plan)
        turns.send(stages_dy, mdY, later, turn, plan)
        turns.send(stages_dr, mdR, later, turn, plan)
        turns.sent()
    w = copies.load_columns(mW, first, plan)  # (elements)
    reductions.peers_ready(plan)

    for turn in cutlass.range(turns.count(mdY, plan), unroll=1):
        tile = turns.tile(first, mdY, turn, plan)
        turns.oldest_has_come(plan)
        r = turns.receive(stages_r, mR, tile, turn, plan)  # (elements)
        dy = turns.receive(stages_dy, mdY, tile, turn, plan)  # (elements)

        # reduce
        wdy = dy * turns.columns_again(w, mW, tile, plan)  # (elements)
        value = (*reductions.thread_sum(r * r), *reductions.thread_sum(r * wdy))
        squares, dot = reductions.row_reduce(value, reductions.PAIR, plan, mailbox, turn)

        # compute
        rstd = exact_rstd_of(squares, mdY, eps)
        turns.add_to(dw, dy * (r * rstd), plan)
        dr = turns.receive(stages_dr, mdR, tile, turn, plan)  # (elements)
        dx = (wdy - r * (dot / (squares + eps * Float32(mdY.shape[1])))) * rstd + dr  # (elements)
        later = turns.tile(first, mdY, turn + plan.stages, plan)
        turns.send(stages_r, mR, later, turn, plan)
        turns.send(stages_dy, mdY, later, turn, plan)
        turns.send(stages_dr, mdR, later, turn, plan)
        turns.sent()

        # store
        copies.store(dx, mdX, tile, plan)

    # store the sums over rows
    copies.store_columns(turns.total(dw, plan), mdW[first.row, None], first, plan)


def rstd_of(squares, mX: cute.Tensor, eps):
    """1 / sqrt(mean + eps) from the sum of the squares of a row of mX (m, n)."""
    return cute.math.rsqrt(squares / Float32(mX.shape[1]) + eps, fastmath=True)


def exact_rstd_of(squares, mX: cute.Tensor, eps):
    """rstd_of without the hardware's approximation: a gradient has up to three of them in a product."""
    return 1.0 / cute.math.sqrt(squares / Float32(mX.shape[1]) + eps)


@cute.jit
def rms_norm(
    mX: cute.Tensor, mW: cute.Tensor, mY: cute.Tensor, eps: Float32, groups: Int32, stream, plan: cutlass.Constexpr
):
    """mX (m, n), mW (n) float32 -> mY (m, n); groups: as many as there are rows for."""
    rms_norm_kernel(mX, mW, mY, eps, plan).launch(**turns.groups_go_on(mX, groups, plan), stream=stream)


@cute.jit
def long_rms_norm(
    mX: cute.Tensor, mW: cute.Tensor, mY: cute.Tensor, eps: Float32, groups: Int32, stream, plan: cutlass.Constexpr
):
    """mX (m, n), mW (n) float32 -> mY (m, n), for rows too long to read the weight anew for each."""
    long_rms_norm_kernel(mX, mW, mY, eps, plan).launch(**turns.groups_go_on(mX, groups, plan), stream=stream)


@cute.jit
def add_rms_norm(
    mX: cute.Tensor,
    mResidual: cute.Tensor,
    mW: cute.Tensor,
    mY: cute.Tensor,
    mR: cute.Tensor,
    eps: Float32,
    groups: Int32,
    stream,
    plan: cutlass.Constexpr,
):
    """mX, mResidual (m, n), mW (n) float32 -> mY, mR (m, n); mResidual and mR have one dtype, mX's or float32.

    groups: as many as there are rows for.
    """
    launch = turns.groups_go_on(mX, groups, plan)
    add_rms_norm_kernel(mX, mResidual, mW, mY, mR, eps, plan).launch(**launch, stream=stream)


@cute.jit
def long_add_rms_norm(
    mX: cute.Tensor,
    mResidual: cute.Tensor,
    mW: cute.Tensor,
    mY: cute.Tensor,
    mR: cute.Tensor,
    eps: Float32,
    groups: Int32,
    stream,
    plan: cutlass.Constexpr,
):
    """As add_rms_norm, for rows too long to read the weight anew for each."""
    launch = turns.groups_go_on(mX, groups, plan)
    long_add_rms_norm_kernel(mX, mResidual, mW, mY, mR, eps, plan).launch(**launch, stream=stream)


@cute.jit
def rms_norm_backward(
    mdY: cute.Tensor,
    mX: cute.Tensor,
    mW: cute.Tensor,
    mdX: cute.Tensor,
    mdW: cute.Tensor,
    eps: Float32,
    stream,
    plan: cutlass.Constexpr,
):
    """mdY, mX (m, n), mW (n) float32 -> mdX (m, n), mdW (p, n) float32: p sums, each over some of the rows."""
    rms_norm_backward_kernel(mdY, mX, mW, mdX, mdW, eps, plan).launch(
        **turns.a_group_a_sum(mX, mdW, plan), stream=stream
    )


@cute.jit
def add_rms_norm_backward(
    mdY: cute.Tensor,
    mdR: cute.Tensor,
    mR: cute.Tensor,
    mW: cute.Tensor,
    mdX: cute.Tensor,
    mdW: cute.Tensor,
    eps: Float32,
    stream,
    plan: cutlass.Constexpr,
):
    """mdY, mdR, mR (m, n), mW (n) float32 -> mdX (m, n), mdW (p, n) float32; mR: the forward's, mdR its gradient."""
    add_rms_norm_backward_kernel(mdY, mdR, mR, mW, mdX, mdW, eps, plan).launch(
        **turns.a_group_a_sum(mdY, mdW, plan), stream=stream
    )
