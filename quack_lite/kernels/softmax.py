"""softmax(x)_i = exp(x_i - max) / sum_j exp(x_j - max), over the rows of a matrix, each read once and written once."""

import math

import cutlass
import cutlass.cute as cute

from quack_lite import copies, reductions


@cute.kernel
def softmax_kernel(mX: cute.Tensor, mY: cute.Tensor, plan: cutlass.Constexpr):
    # tile
    place = copies.row_place(plan)
    tXgX = copies.partition(mX[place.row, None], place, plan)  # ((vector, 1), vectors)
    tYgY = copies.partition(mY[place.row, None], place, plan)  # ((vector, 1), vectors)
    tXpX = copies.predicate(copies.row_length(mX, place), place, plan)  # (1, vectors)
    mailbox = reductions.expect_peers(plan)

    # load
    x = copies.load(tXgX, tXpX, fill=-math.inf).to(cutlass.Float32)  # ((vector, 1), vectors)

    # reduce
    powers, value = reductions.thread_softmax(x)  # ((vector, 1), vectors), (max, sum)
    row_max, row_sum = reductions.row_reduce(value, reductions.SOFTMAX, plan, mailbox)

    # compute
    y = powers * (reductions.exp(value[0] - row_max) / row_sum)

    # store
    copies.store(y, tYgY, tXpX)


@cute.jit
def softmax(mX: cute.Tensor, mY: cute.Tensor, stream, plan: cutlass.Constexpr):
    """mX (m, n) -> mY (m, n), rows of stride-1 elements."""
    blocks = cute.ceil_div(mX.shape[0], plan.rows) * plan.cluster
    softmax_kernel(mX, mY, plan).launch(
        grid=(blocks, 1, 1), block=(plan.block, 1, 1), cluster=(plan.cluster, 1, 1), stream=stream
    )
