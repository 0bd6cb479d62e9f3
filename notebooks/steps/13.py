"""Lesson 13: the kernels between the loss that updates its pair for each element and the one that believes no label."""

import math

import cutlass
import cutlass.cute as cute
from cutlass import Float32, Int64

from quack_lite import copies, grid, lesson, reductions, tiling

before = lesson.steps(12)
Plan, load, steps_of, warp_values = before.Plan, before.load, before.steps_of, before.warp_values
promised = lesson.steps(10).promised
IGNORE_INDEX = -100


@cute.kernel
def stepwise_kernel(mX: cute.Tensor, mTarget: cute.Tensor, mLoss: cute.Tensor, plan: cutlass.Constexpr):
    row, _, _ = cute.arch.block_idx()
    thread, _, _ = cute.arch.thread_idx()
    sW = warp_values(plan, 2)  # (2, warps)
    value = (Float32(-math.inf), Float32(0.0))  # (max, sum)
    for step in cutlass.range(steps_of(mX, plan), unroll=1):
        value = reductions.add_softmax(value, load(mX, row, step, plan))
    row_max, row_sum = reductions.block_reduce(value, reductions.SOFTMAX, sW)
    if thread == 0:
        mLoss[row] = row_max + reductions.log(row_sum) - Float32(mX[row, mTarget[row]])


@cute.kernel
def kept_kernel(mX: cute.Tensor, mTarget: cute.Tensor, mLoss: cute.Tensor, plan: cutlass.Constexpr):
    row, _, _ = cute.arch.block_idx()
    thread, _, _ = cute.arch.thread_idx()
    sM, sS = warp_values(plan), warp_values(plan)  # (1, warps)
    x = load(mX, row, 0, plan)  # (elements)
    (row_max,) = reductions.block_reduce(reductions.thread_max(x), reductions.MAX, sM)
    powers = reductions.exp(x - row_max)  # (elements)
    (row_sum,) = reductions.block_reduce(reductions.thread_sum(powers), reductions.SUM, sS)
    if thread == 0:
        mLoss[row] = row_max + reductions.log(row_sum) - Float32(mX[row, mTarget[row]])


@cute.jit
def loss_of(mX: cute.Tensor, mTarget: cute.Tensor, row, lse):
    """lse - x[label]; 0 for a label that is to be ignored, NaN for one that is no class, where nothing is read."""
    label = Int64(mTarget[row])
    loss = Float32(math.nan)
    if label >= 0 and label < mX.shape[1]:
        loss = lse - Float32(mX[row, label])
    if label == IGNORE_INDEX:
        loss = Float32(0.0)
    return loss


@cute.kernel
def careful_kernel(mX: cute.Tensor, mTarget: cute.Tensor, mLoss: cute.Tensor, plan: cutlass.Constexpr):
    row, _, _ = cute.arch.block_idx()
    thread, _, _ = cute.arch.thread_idx()
    sW = warp_values(plan, 2)  # (2, warps)
    value = (Float32(-math.inf), Float32(0.0))  # (max, sum)
    for step in cutlass.range(steps_of(mX, plan), unroll=1):
        value = reductions.add_softmax(value, load(mX, row, step, plan))
    row_max, row_sum = reductions.block_reduce(value, reductions.SOFTMAX, sW)
    if thread == 0:
        mLoss[row] = loss_of(mX, mTarget, row, row_max + reductions.log(row_sum))


@cute.kernel
def whole_kernel(
    mX: cute.Tensor,
    mTarget: cute.Tensor,
    mLoss: cute.Tensor,
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
    row_max, row_sum = reductions.row_reduce(value, reductions.SOFTMAX, plan, mailbox)

    # compute, store
    loss = loss_of(mX, mTarget, tile.row, row_max + reductions.log(row_sum))
    copies.store_number(loss, mLoss, tile, place)


def whole_loss(plan: tiling.RowPlan):
    """A host function for rows of any length and start."""

    @cute.jit
    def loss(mX: cute.Tensor, mTarget: cute.Tensor, mLoss: cute.Tensor, stream):
        mTarget, mLoss = promised(mTarget, 8), promised(mLoss, 4)
        whole_kernel(mX, mTarget, mLoss, plan).launch(**grid.a_group_a_row(mX, plan), stream=stream)

    return loss


def loss_with(kernel, plan: Plan):
    """A host function that runs one of these kernels as `plan` says."""

    @cute.jit
    def loss(mX: cute.Tensor, mTarget: cute.Tensor, mLoss: cute.Tensor, stream):
        kernel(mX, mTarget, mLoss, plan).launch(grid=(mX.shape[0], 1, 1), block=(plan.threads, 1, 1), stream=stream)

    return loss


@cute.kernel
def exponentials_kernel(mX: cute.Tensor, mY: cute.Tensor, count: cutlass.Constexpr):
    block, _, _ = cute.arch.block_idx()
    thread, _, _ = cute.arch.thread_idx()
    i = block * 256 + thread
    x = mX[i]
    for _ in cutlass.range(count // 64, unroll=1):
        for _ in cutlass.range_constexpr(64):
            x = cute.math.exp2(x, fastmath=True)
    mY[i] = x


def exponentials(count: int):
    """A host function in which a thread takes `count` exponentials, one of the other; a multiple of 256 threads."""

    @cute.jit
    def many(mX: cute.Tensor, mY: cute.Tensor, stream):
        exponentials_kernel(mX, mY, count).launch(grid=(mX.shape[0] // 256, 1, 1), block=(256, 1, 1), stream=stream)

    return many
