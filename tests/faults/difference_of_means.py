"""A variance as the mean of the squares less the square of the mean: far from zero nothing of it is left."""

import cutlass
import cutlass.cute as cute
from cutlass import Float32

from faults import kernel_of
from quack_lite import copies, grid, reductions, turns
from quack_lite.evidence.delay import replaced
from quack_lite.kernels import layer_norm

CAUGHT_BY = ("values",)
KERNEL = kernel_of("layer_norm", "float32")


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
    first = copies.row_tile(mX, place, plan)
    mailbox = reductions.expect_peers(plan, parts=2, turns=2)
    n = Float32(mX.shape[1])

    for turn in cutlass.range(turns.count(mX, plan), unroll=1):
        # load
        tile = turns.tile(first, mX, turn, plan)
        x = copies.load(mX, tile, plan)  # (elements)

        # reduce
        sums = (*reductions.thread_sum(x), *reductions.thread_sum(x * x))
        total, squares = reductions.row_reduce(sums, reductions.PAIR, plan, mailbox, turn)

        # compute
        mean = total / n
        rstd = cute.math.rsqrt(squares / n - mean * mean + eps, fastmath=True)
        y = (x - mean) * rstd * copies.load_columns(mW, tile, plan) + copies.load_columns(mB, tile, plan)

        # store
        copies.store(y, mY, tile, plan)
        copies.store_number(mean, mMean, tile, place)
        copies.store_number(rstd, mRstd, tile, place)


def planted():
    return replaced(layer_norm, {"layer_norm_kernel": layer_norm_kernel})
