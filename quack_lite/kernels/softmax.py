"""softmax(x)_i = exp(x_i - max) / sum_j exp(x_j - max) and its logarithm, over the rows of a matrix, both ways.

softmax:     dx = y * (dy - sum_j y_j dy_j)
log_softmax: dx = dy - exp(y) * sum_j dy_j
"""

import math

import cutlass
import cutlass.cute as cute
from cutlass import Float32

from quack_lite import copies, grid, reductions, staged


@cute.kernel
def softmax_kernel(mX: cute.Tensor, mY: cute.Tensor, plan: cutlass.Constexpr):
    # tile
    tile = copies.row_tile(mX, grid.row_place(plan), plan)
    mailbox = reductions.expect_peers(plan, parts=2)

    # load
    x = copies.load(mX, tile, plan, fill=-math.inf)  # (elements)
    aside = staged.put_aside(tile, plan)

    # reduce
    powers, value = reductions.thread_softmax(x)  # (elements), (max, sum)
    reductions.peers_ready(plan)
    row_max, row_sum = reductions.row_reduce(value, reductions.SOFTMAX, plan, mailbox)

    # compute
    y = powers * (reductions.exp(value[0] - row_max) / row_sum)  # (elements)

    # store
    copies.store(y, mY, staged.taken_back(aside, tile), plan)


@cute.kernel
def log_softmax_kernel(mX: cute.Tensor, mY: cute.Tensor, plan: cutlass.Constexpr):
    # tile
    tile = copies.row_tile(mX, grid.row_place(plan), plan)
    mailbox = reductions.expect_peers(plan, parts=2)

    # load
    x = copies.load(mX, tile, plan, fill=-math.inf)  # (elements)
    aside = staged.put_aside(tile, plan)

    # reduce
    value = reductions.thread_softmax_value(x)  # (max, sum)
    reductions.peers_ready(plan)
    row_max, row_sum = reductions.row_reduce(value, reductions.SOFTMAX, plan, mailbox)

    # compute
    y = (x - row_max) - reductions.log(row_sum)  # (elements)

    # store
    copies.store(y, mY, staged.taken_back(aside, tile), plan)


@cute.kernel
def softmax_backward_kernel(mdY: cute.Tensor, mY: cute.Tensor, mdX: cute.Tensor, plan: cutlass.Constexpr):
    # tile
    tile = copies.row_tile(mY, grid.row_place(plan), plan)
    mailbox = reductions.expect_peers(plan, parts=1)

    # load
    dy, y = staged.send(mdY, tile, plan), staged.send(mY, tile, plan)  # (vector, vectors), (1)
    staged.have_come()
    reductions.peers_ready(plan)

    # reduce
    dot = Float32(0.0)
    for j in cutlass.range_constexpr(copies.pieces(plan)):
        dot += reductions.sum_of(copies.piece(y, j, plan) * copies.piece(dy, j, plan))
    (dot,) = reductions.row_reduce((dot,), reductions.SUM, plan, mailbox)

    # compute, store
    for j in cutlass.range_constexpr(copies.pieces(plan)):
        dx = copies.piece(y, j, plan) * (copies.piece(dy, j, plan) - dot)  # (vector) or (1)
        copies.store_piece(dx, mdX, tile, j, plan)


@cute.kernel
def log_softmax_backward_kernel(mdY: cute.Tensor, mY: cute.Tensor, mdX: cute.Tensor, plan: cutlass.Constexpr):
    # tile
    tile = copies.row_tile(mY, grid.row_place(plan), plan)
    mailbox = reductions.expect_peers(plan, parts=1)

    # load
    dy, y = staged.send(mdY, tile, plan), staged.send(mY, tile, plan)  # (vector, vectors), (1)
    staged.have_come()
    reductions.peers_ready(plan)

    # reduce
    total = Float32(0.0)
    for j in cutlass.range_constexpr(copies.pieces(plan)):
        total += reductions.sum_of(copies.piece(dy, j, plan))
    (total,) = reductions.row_reduce((total,), reductions.SUM, plan, mailbox)

    # compute, store
    for j in cutlass.range_constexpr(copies.pieces(plan)):
        dx = copies.piece(dy, j, plan) - reductions.exp(copies.piece(y, j, plan)) * total  # (vector) or (1)
        copies.store_piece(dx, mdX, tile, j, plan)


@cute.jit
def softmax(mX: cute.Tensor, mY: cute.Tensor, stream, plan: cutlass.Constexpr):
    """mX (m, n) -> mY (m, n)."""
    softmax_kernel(mX, mY, plan).launch(**grid.a_group_a_row(mX, plan), stream=stream)


@cute.jit
def log_softmax(mX: cute.Tensor, mY: cute.Tensor, stream, plan: cutlass.Constexpr):
    """mX (m, n) -> mY (m, n)."""
    log_softmax_kernel(mX, mY, plan).launch(**grid.a_group_a_row(mX, plan), stream=stream)


@cute.jit
def softmax_backward(mdY: cute.Tensor, mY: cute.Tensor, mdX: cute.Tensor, stream, plan: cutlass.Constexpr):
    """mdY, mY (m, n) -> mdX (m, n); mY: the forward's result."""
    softmax_backward_kernel(mdY, mY, mdX, plan).launch(**grid.a_group_a_row(mY, plan), stream=stream)


@cute.jit
def log_softmax_backward(mdY: cute.Tensor, mY: cute.Tensor, mdX: cute.Tensor, stream, plan: cutlass.Constexpr):
    """mdY, mY (m, n) -> mdX (m, n); mY: the forward's result."""
    log_softmax_backward_kernel(mdY, mY, mdX, plan).launch(**grid.a_group_a_row(mY, plan), stream=stream)
