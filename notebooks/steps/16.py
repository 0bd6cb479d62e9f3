"""Lesson 16: norms with a weight, over rows of one length that a single thread sends for."""

from typing import NamedTuple

import cutlass
import cutlass.cute as cute
from cutlass import Float32, Int64
from cutlass.memory import SmemAllocator

from quack_lite import lesson

before = lesson.steps(10)
promised = before.promised
block_sum = before.block_sum  # its barrier also says that every thread has come so far
VECTOR = 8  # of bfloat16: 128 bits
EPS = 1e-6


class Plan(NamedTuple):
    """vectors of a thread, threads and stages of a block, blocks of the grid. A row has vectors * threads vectors."""

    vectors: int
    threads: int
    stages: int
    blocks: int

    @property
    def n(self) -> int:
        """Elements of a row."""
        return VECTOR * self.vectors * self.threads


def vectors_of(tX: cute.Tensor, plan) -> cute.Tensor:
    """n elements as this thread's vectors (vector, vectors): neighbours have neighbours."""
    thread, _, _ = cute.arch.thread_idx()
    layout = cute.make_layout((VECTOR, plan.threads, plan.vectors))
    return cute.make_tensor(tX.iterator, layout)[None, thread, None]


def squares_of(rX: cute.Tensor, plan):
    """The sum of the squares of a thread's vectors (vector, vectors)."""
    squares = Float32(0.0)
    for j in range(plan.vectors):
        x = rX[None, j].load().to(Float32)  # (vector)
        squares += (x * x).reduce(cute.ReductionOp.ADD, Float32(0.0), 0)
    return squares


@cute.jit
def loaded(tX: cute.Tensor, plan: cutlass.Constexpr):
    """This thread's vectors of n elements in registers, (vector, vectors)."""
    rX = cute.make_rmem_tensor((VECTOR, plan.vectors), tX.element_type)  # (vector, vectors)
    tX = vectors_of(tX, plan)  # (vector, vectors)
    for j in cutlass.range_constexpr(plan.vectors):
        rX[None, j].store(tX[None, j].load())
    return rX


@cute.jit
def store(rX: cute.Tensor, rstd, rW: cute.Tensor, gY: cute.Tensor, plan: cutlass.Constexpr):
    """This thread's vectors, times rstd and the weight, to a row gY (n)."""
    tY = vectors_of(promised(gY, 16), plan)  # (vector, vectors)
    for j in cutlass.range_constexpr(plan.vectors):
        y = rX[None, j].load().to(Float32) * rstd * rW[None, j].load().to(Float32)  # (vector)
        tY[None, j].store(y.to(gY.element_type))


def open_sums(plan):
    """Two places for the sums of the warps, (warps, 2): a slow warp may still read those of the turn before."""
    return SmemAllocator().allocate_tensor(Float32, cute.make_layout((plan.threads // 32, 2)))


def open_stages(mX: cute.Tensor, plan):
    """Shared memory for as many rows as the plan has stages: (n, stages)."""
    layout = cute.make_layout((plan.n, plan.stages))
    return SmemAllocator().allocate_tensor(mX.element_type, layout, byte_alignment=128)


@cute.jit
def open_mbarriers(plan: cutlass.Constexpr, count: cutlass.Constexpr = 1):
    """An mbarrier a stage, of `count` arrivals, which one thread sets up before the others may wait there."""
    came = SmemAllocator().allocate_array(Int64, plan.stages)
    thread, _, _ = cute.arch.thread_idx()
    if thread == 0:
        for stage in cutlass.range_constexpr(plan.stages):
            cute.arch.mbarrier_init(came + stage, count)
        cute.arch.mbarrier_init_fence()
    cute.arch.barrier()
    return came


@cute.jit
def send(mX: cute.Tensor, row, sX: cute.Tensor, came, plan: cutlass.Constexpr, extra: cutlass.Constexpr = 0):
    """One thread says how many bytes `came` is to count, and sends a row for them into sX (n); no row, nothing."""
    thread, _, _ = cute.arch.thread_idx()
    if thread == 0 and row < mX.shape[0]:
        cute.arch.mbarrier_arrive_and_expect_tx(came, plan.n * mX.element_type.width // 8 + extra)
        gX = cute.make_tensor(promised(mX[row, None], 16).iterator, sX.layout)  # (n)
        cute.copy(cute.make_copy_atom(cute.nvgpu.cpasync.CopyBulkG2SOp(), mX.element_type), gX, sX, mbar_ptr=came)


@cute.jit
def cp_async(mX: cute.Tensor, row, sX: cute.Tensor, plan: cutlass.Constexpr):
    """Lesson 15's way: each thread starts to copy its own vectors, and closes a group."""
    atom = cute.make_copy_atom(cute.nvgpu.cpasync.CopyG2SOp(), mX.element_type, num_bits_per_copy=128)
    if row < mX.shape[0]:
        tXgX, tXsX = vectors_of(promised(mX[row, None], 16), plan), vectors_of(sX, plan)  # (vector, vectors)
        for j in cutlass.range_constexpr(plan.vectors):
            cute.copy(atom, tXgX[None, j], tXsX[None, j])
    cute.arch.cp_async_commit_group()


@cute.kernel
def staged_kernel(mX: cute.Tensor, mW: cute.Tensor, mY: cute.Tensor, plan: cutlass.Constexpr):
    block, _, _ = cute.arch.block_idx()
    sX, sW = open_stages(mX, plan), open_sums(plan)  # (n, stages), (warps, 2)
    for turn in cutlass.range_constexpr(plan.stages):
        cp_async(mX, block + turn * plan.blocks, sX[None, turn], plan)
    for turn in cutlass.range(cute.ceil_div(mX.shape[0] - block, plan.blocks), unroll=1):
        row, stage = block + turn * plan.blocks, turn % plan.stages
        cute.arch.cp_async_wait_group(plan.stages - 1)
        rX = loaded(sX[None, stage], plan)  # (vector, vectors)
        rstd = cute.math.rsqrt(block_sum(squares_of(rX, plan), sW[None, turn % 2]) / plan.n + EPS)
        cp_async(mX, row + plan.stages * plan.blocks, sX[None, stage], plan)
        store(rX, rstd, loaded(mW, plan), mY[row, None], plan)


@cute.kernel
def bulk_kernel(mX: cute.Tensor, mW: cute.Tensor, mY: cute.Tensor, plan: cutlass.Constexpr):
    block, _, _ = cute.arch.block_idx()
    sX, sW, came = open_stages(mX, plan), open_sums(plan), open_mbarriers(plan)  # (n, stages), (warps, 2), (stages)
    for turn in cutlass.range_constexpr(plan.stages):
        send(mX, block + turn * plan.blocks, sX[None, turn], came + turn, plan)
    for turn in cutlass.range(cute.ceil_div(mX.shape[0] - block, plan.blocks), unroll=1):
        row, stage = block + turn * plan.blocks, turn % plan.stages
        cute.arch.mbarrier_wait(came + stage, turn // plan.stages % 2)
        rX = loaded(sX[None, stage], plan)  # (vector, vectors)
        rstd = cute.math.rsqrt(block_sum(squares_of(rX, plan), sW[None, turn % 2]) / plan.n + EPS)
        send(mX, row + plan.stages * plan.blocks, sX[None, stage], came + stage, plan)
        store(rX, rstd, loaded(mW, plan), mY[row, None], plan)


@cute.kernel
def weight_kept_kernel(mX: cute.Tensor, mW: cute.Tensor, mY: cute.Tensor, plan: cutlass.Constexpr):
    block, _, _ = cute.arch.block_idx()
    sX, sW, came = open_stages(mX, plan), open_sums(plan), open_mbarriers(plan)  # (n, stages), (warps, 2), (stages)
    for turn in cutlass.range_constexpr(plan.stages):
        send(mX, block + turn * plan.blocks, sX[None, turn], came + turn, plan)
    rW = loaded(mW, plan)  # (vector, vectors)
    for turn in cutlass.range(cute.ceil_div(mX.shape[0] - block, plan.blocks), unroll=1):
        row, stage = block + turn * plan.blocks, turn % plan.stages
        cute.arch.mbarrier_wait(came + stage, turn // plan.stages % 2)
        rX = loaded(sX[None, stage], plan)  # (vector, vectors)
        rstd = cute.math.rsqrt(block_sum(squares_of(rX, plan), sW[None, turn % 2]) / plan.n + EPS)
        send(mX, row + plan.stages * plan.blocks, sX[None, stage], came + stage, plan)
        store(rX, rstd, rW, mY[row, None], plan)


@cute.kernel
def kept_shared_kernel(mX: cute.Tensor, mW: cute.Tensor, mY: cute.Tensor, plan: cutlass.Constexpr):
    block, _, _ = cute.arch.block_idx()
    sX, sW, came = open_stages(mX, plan), open_sums(plan), open_mbarriers(plan)  # (n, stages), (warps, 2), (stages)
    sV = SmemAllocator().allocate_tensor(mW.element_type, cute.make_layout(plan.n), byte_alignment=16)  # (n)
    for turn in cutlass.range_constexpr(plan.stages):
        send(mX, block + turn * plan.blocks, sX[None, turn], came + turn, plan)
    vectors_of(sV, plan).store(loaded(mW, plan).load())
    for turn in cutlass.range(cute.ceil_div(mX.shape[0] - block, plan.blocks), unroll=1):
        row, stage = block + turn * plan.blocks, turn % plan.stages
        cute.arch.mbarrier_wait(came + stage, turn // plan.stages % 2)
        rX = loaded(sX[None, stage], plan)  # (vector, vectors)
        rstd = cute.math.rsqrt(block_sum(squares_of(rX, plan), sW[None, turn % 2]) / plan.n + EPS)
        send(mX, row + plan.stages * plan.blocks, sX[None, stage], came + stage, plan)
        store(rX, rstd, vectors_of(sV, plan), mY[row, None], plan)


@cute.kernel
def same_parity_kernel(mX: cute.Tensor, mW: cute.Tensor, mY: cute.Tensor, plan: cutlass.Constexpr):
    block, _, _ = cute.arch.block_idx()
    sX, sW, came = open_stages(mX, plan), open_sums(plan), open_mbarriers(plan)  # (n, stages), (warps, 2), (stages)
    for turn in cutlass.range_constexpr(plan.stages):
        send(mX, block + turn * plan.blocks, sX[None, turn], came + turn, plan)
    rW = loaded(mW, plan)  # (vector, vectors)
    for turn in cutlass.range(cute.ceil_div(mX.shape[0] - block, plan.blocks), unroll=1):
        row, stage = block + turn * plan.blocks, turn % plan.stages
        cute.arch.mbarrier_wait(came + stage, 0)
        rX = loaded(sX[None, stage], plan)  # (vector, vectors)
        rstd = cute.math.rsqrt(block_sum(squares_of(rX, plan), sW[None, turn % 2]) / plan.n + EPS)
        send(mX, row + plan.stages * plan.blocks, sX[None, stage], came + stage, plan)
        store(rX, rstd, rW, mY[row, None], plan)


@cute.kernel
def wrong_count_kernel(mX: cute.Tensor, mW: cute.Tensor, mY: cute.Tensor, plan: cutlass.Constexpr):
    block, _, _ = cute.arch.block_idx()
    sX, sW = open_stages(mX, plan), open_sums(plan)  # (n, stages), (warps, 2)
    came = open_mbarriers(plan, 2)  # (stages)
    for turn in cutlass.range_constexpr(plan.stages):
        send(mX, block + turn * plan.blocks, sX[None, turn], came + turn, plan)
    rW = loaded(mW, plan)  # (vector, vectors)
    for turn in cutlass.range(cute.ceil_div(mX.shape[0] - block, plan.blocks), unroll=1):
        row, stage = block + turn * plan.blocks, turn % plan.stages
        cute.arch.mbarrier_wait(came + stage, turn // plan.stages % 2)
        rX = loaded(sX[None, stage], plan)  # (vector, vectors)
        rstd = cute.math.rsqrt(block_sum(squares_of(rX, plan), sW[None, turn % 2]) / plan.n + EPS)
        send(mX, row + plan.stages * plan.blocks, sX[None, stage], came + stage, plan)
        store(rX, rstd, rW, mY[row, None], plan)


def expecting(extra: int):
    """weight_kept_kernel, with `extra` bytes expected beside those of a row."""

    @cute.kernel
    def wrong_bytes_kernel(mX: cute.Tensor, mW: cute.Tensor, mY: cute.Tensor, plan: cutlass.Constexpr):
        block, _, _ = cute.arch.block_idx()
        sX, sW, came = open_stages(mX, plan), open_sums(plan), open_mbarriers(plan)  # (n, stages), (warps, 2), ()
        for turn in cutlass.range_constexpr(plan.stages):
            send(mX, block + turn * plan.blocks, sX[None, turn], came + turn, plan, extra)
        rW = loaded(mW, plan)  # (vector, vectors)
        for turn in cutlass.range(cute.ceil_div(mX.shape[0] - block, plan.blocks), unroll=1):
            row, stage = block + turn * plan.blocks, turn % plan.stages
            cute.arch.mbarrier_wait(came + stage, turn // plan.stages % 2)
            rX = loaded(sX[None, stage], plan)  # (vector, vectors)
            rstd = cute.math.rsqrt(block_sum(squares_of(rX, plan), sW[None, turn % 2]) / plan.n + EPS)
            send(mX, row + plan.stages * plan.blocks, sX[None, stage], came + stage, plan, extra)
            store(rX, rstd, rW, mY[row, None], plan)

    return wrong_bytes_kernel


def norm_with(kernel, plan: Plan):
    """A host function that runs one of these kernels as `plan` says."""

    @cute.jit
    def rms_norm(mX: cute.Tensor, mW: cute.Tensor, mY: cute.Tensor, stream):
        launched = kernel(mX, mW, mY, plan)
        launched.launch(grid=(plan.blocks, 1, 1), block=(plan.threads, 1, 1), stream=stream)

    return rms_norm
