"""Lesson 17: a norm without a weight, of rows that one SM cannot hold: by one block, by two kernels, by a cluster."""

from typing import NamedTuple

import cutlass
import cutlass.cute as cute
from cutlass import Float32, Int32
from cutlass.memory import SmemAllocator

from quack_lite import lesson

before = lesson.steps(10)
row_vectors, total = before.row_vectors, before.total
butterfly_sum, block_sum = before.butterfly_sum, before.block_sum
VECTOR = 8  # of bfloat16: 128 bits
EPS = 1e-6
PIECE_THREADS, PIECE_VECTORS = 256, 4


class Plan(NamedTuple):
    """How a row is cut: vectors of a thread, threads of a block, blocks of a cluster."""

    vectors: int
    threads: int
    cluster: int


def of_peer(sV: cute.Tensor, i, peer):
    """Element i of the array that sV is in a peer's shared memory, float32."""
    there = cute.arch.map_dsmem_ptr(sV.iterator + i, peer).toint()
    return cute.arch.load(cute.make_ptr(Float32, there, cute.AddressSpace.smem), Float32, ss="cluster")


def as_loaded(rX: cute.Tensor):
    """Moves each register of a thread's part of a row to itself, in a line that the compiler does not look into.

    So it cannot keep what it has computed from them instead of them.
    """
    words = cute.recast_tensor(rX, Int32)
    for i in range(cute.size(words)):
        moved = {"read_only_args": [words[i]], "write_only_types": [Int32]}
        words[i] = cute.arch.inline_ptx("mov.b32 {$w0}, {$r0};", **moved)


@cute.kernel
def one_block_kernel(mX: cute.Tensor, mY: cute.Tensor, plan: cutlass.Constexpr):
    row, _, _ = cute.arch.block_idx()
    first, _, _ = cute.arch.thread_idx()
    step, vectors = plan.threads, Int32(mX.shape[1]) // VECTOR
    gX, gY = row_vectors(mX[row, None]), row_vectors(mY[row, None])  # (vector, n / vector)
    sW = SmemAllocator().allocate_tensor(Float32, cute.make_layout(plan.threads // 32))  # (warps)
    rX = cute.make_rmem_tensor((VECTOR, plan.vectors), mX.element_type)  # (vector, vectors)
    rX.fill(0.0)
    for j in cutlass.range_constexpr(plan.vectors):
        if first + j * step < vectors:
            rX[None, j].store(gX[None, first + j * step].load())
    squares = Float32(0.0)
    for j in cutlass.range_constexpr(plan.vectors):
        x = rX[None, j].load().to(Float32)  # (vector)
        squares += total(x * x)
    rstd = cute.math.rsqrt(block_sum(squares, sW) / mX.shape[1] + EPS)
    for j in cutlass.range_constexpr(plan.vectors):
        if first + j * step < vectors:
            y = rX[None, j].load().to(Float32) * rstd  # (vector)
            gY[None, first + j * step].store(y.to(mY.element_type))


@cute.kernel
def one_block_as_loaded_kernel(mX: cute.Tensor, mY: cute.Tensor, plan: cutlass.Constexpr):
    row, _, _ = cute.arch.block_idx()
    first, _, _ = cute.arch.thread_idx()
    step, vectors = plan.threads, Int32(mX.shape[1]) // VECTOR
    gX, gY = row_vectors(mX[row, None]), row_vectors(mY[row, None])  # (vector, n / vector)
    sW = SmemAllocator().allocate_tensor(Float32, cute.make_layout(plan.threads // 32))  # (warps)
    rX = cute.make_rmem_tensor((VECTOR, plan.vectors), mX.element_type)  # (vector, vectors)
    rX.fill(0.0)
    for j in cutlass.range_constexpr(plan.vectors):
        if first + j * step < vectors:
            rX[None, j].store(gX[None, first + j * step].load())
    squares = Float32(0.0)
    for j in cutlass.range_constexpr(plan.vectors):
        x = rX[None, j].load().to(Float32)  # (vector)
        squares += total(x * x)
    rstd = cute.math.rsqrt(block_sum(squares, sW) / mX.shape[1] + EPS)
    as_loaded(rX)
    for j in cutlass.range_constexpr(plan.vectors):
        if first + j * step < vectors:
            y = rX[None, j].load().to(Float32) * rstd  # (vector)
            gY[None, first + j * step].store(y.to(mY.element_type))


@cute.kernel
def read_twice_kernel(mX: cute.Tensor, mY: cute.Tensor, plan: cutlass.Constexpr):
    row, _, _ = cute.arch.block_idx()
    thread, _, _ = cute.arch.thread_idx()
    vectors = Int32(mX.shape[1]) // VECTOR
    gX, gY = row_vectors(mX[row, None]), row_vectors(mY[row, None])  # (vector, n / vector)
    sW = SmemAllocator().allocate_tensor(Float32, cute.make_layout(plan.threads // 32))  # (warps)
    squares = Float32(0.0)
    for v in cutlass.range(thread, vectors, plan.threads, unroll=plan.vectors):
        x = gX[None, v].load().to(Float32)  # (vector)
        squares += total(x * x)
    rstd = cute.math.rsqrt(block_sum(squares, sW) / mX.shape[1] + EPS)
    for v in cutlass.range(thread, vectors, plan.threads, unroll=plan.vectors):
        y = gX[None, v].load().to(Float32) * rstd  # (vector)
        gY[None, v].store(y.to(mY.element_type))


@cute.kernel
def cluster_norm_kernel(mX: cute.Tensor, mY: cute.Tensor, plan: cutlass.Constexpr):
    block, _, _ = cute.arch.block_idx()
    thread, _, _ = cute.arch.thread_idx()
    row, rank = block // plan.cluster, cute.arch.block_idx_in_cluster()
    first, step, vectors = rank * plan.threads + thread, plan.cluster * plan.threads, Int32(mX.shape[1]) // VECTOR
    gX, gY = row_vectors(mX[row, None]), row_vectors(mY[row, None])  # (vector, n / vector)
    smem = SmemAllocator()
    sW = smem.allocate_tensor(Float32, cute.make_layout(plan.threads // 32))  # (warps)
    sV = smem.allocate_tensor(Float32, cute.make_layout(1))  # (1)
    rX = cute.make_rmem_tensor((VECTOR, plan.vectors), mX.element_type)  # (vector, vectors)
    rX.fill(0.0)
    for j in cutlass.range_constexpr(plan.vectors):
        if first + j * step < vectors:
            rX[None, j].store(gX[None, first + j * step].load())
    squares = Float32(0.0)
    for j in cutlass.range_constexpr(plan.vectors):
        x = rX[None, j].load().to(Float32)  # (vector)
        squares += total(x * x)
    squares = block_sum(squares, sW)
    if thread == 0:
        sV[0] = squares
    cute.arch.cluster_arrive()
    cute.arch.cluster_wait()
    squares = Float32(0.0)
    for peer in cutlass.range_constexpr(plan.cluster):
        squares += of_peer(sV, 0, peer)
    rstd = cute.math.rsqrt(squares / mX.shape[1] + EPS)
    for j in cutlass.range_constexpr(plan.vectors):
        if first + j * step < vectors:
            y = rX[None, j].load().to(Float32) * rstd  # (vector)
            gY[None, first + j * step].store(y.to(mY.element_type))
    cute.arch.cluster_arrive()
    cute.arch.cluster_wait()


@cute.kernel
def early_arrival_kernel(mX: cute.Tensor, mY: cute.Tensor, plan: cutlass.Constexpr):
    block, _, _ = cute.arch.block_idx()
    thread, _, _ = cute.arch.thread_idx()
    row, rank = block // plan.cluster, cute.arch.block_idx_in_cluster()
    first, step, vectors = rank * plan.threads + thread, plan.cluster * plan.threads, Int32(mX.shape[1]) // VECTOR
    gX, gY = row_vectors(mX[row, None]), row_vectors(mY[row, None])  # (vector, n / vector)
    smem = SmemAllocator()
    sW = smem.allocate_tensor(Float32, cute.make_layout(plan.threads // 32))  # (warps)
    sV = smem.allocate_tensor(Float32, cute.make_layout(1))  # (1)
    rX = cute.make_rmem_tensor((VECTOR, plan.vectors), mX.element_type)  # (vector, vectors)
    rX.fill(0.0)
    for j in cutlass.range_constexpr(plan.vectors):
        if first + j * step < vectors:
            rX[None, j].store(gX[None, first + j * step].load())
    squares = Float32(0.0)
    for j in cutlass.range_constexpr(plan.vectors):
        x = rX[None, j].load().to(Float32)  # (vector)
        squares += total(x * x)
    squares = block_sum(squares, sW)
    if thread == 0:
        sV[0] = squares
    cute.arch.cluster_arrive()
    cute.arch.cluster_wait()
    squares = Float32(0.0)
    for peer in cutlass.range_constexpr(plan.cluster):
        squares += of_peer(sV, 0, peer)
    rstd = cute.math.rsqrt(squares / mX.shape[1] + EPS)
    cute.arch.cluster_arrive()
    for j in cutlass.range_constexpr(plan.vectors):
        if first + j * step < vectors:
            y = rX[None, j].load().to(Float32) * rstd  # (vector)
            gY[None, first + j * step].store(y.to(mY.element_type))
    cute.arch.cluster_wait()


@cute.kernel
def as_loaded_kernel(mX: cute.Tensor, mY: cute.Tensor, plan: cutlass.Constexpr):
    block, _, _ = cute.arch.block_idx()
    thread, _, _ = cute.arch.thread_idx()
    row, rank = block // plan.cluster, cute.arch.block_idx_in_cluster()
    first, step, vectors = rank * plan.threads + thread, plan.cluster * plan.threads, Int32(mX.shape[1]) // VECTOR
    gX, gY = row_vectors(mX[row, None]), row_vectors(mY[row, None])  # (vector, n / vector)
    smem = SmemAllocator()
    sW = smem.allocate_tensor(Float32, cute.make_layout(plan.threads // 32))  # (warps)
    sV = smem.allocate_tensor(Float32, cute.make_layout(1))  # (1)
    rX = cute.make_rmem_tensor((VECTOR, plan.vectors), mX.element_type)  # (vector, vectors)
    rX.fill(0.0)
    for j in cutlass.range_constexpr(plan.vectors):
        if first + j * step < vectors:
            rX[None, j].store(gX[None, first + j * step].load())
    squares = Float32(0.0)
    for j in cutlass.range_constexpr(plan.vectors):
        x = rX[None, j].load().to(Float32)  # (vector)
        squares += total(x * x)
    squares = block_sum(squares, sW)
    if thread == 0:
        sV[0] = squares
    cute.arch.cluster_arrive()
    cute.arch.cluster_wait()
    squares = Float32(0.0)
    for peer in cutlass.range_constexpr(plan.cluster):
        squares += of_peer(sV, 0, peer)
    rstd = cute.math.rsqrt(squares / mX.shape[1] + EPS)
    cute.arch.cluster_arrive()
    as_loaded(rX)
    for j in cutlass.range_constexpr(plan.vectors):
        if first + j * step < vectors:
            y = rX[None, j].load().to(Float32) * rstd  # (vector)
            gY[None, first + j * step].store(y.to(mY.element_type))
    cute.arch.cluster_wait()


@cute.kernel
def met_before_kernel(mX: cute.Tensor, mY: cute.Tensor, plan: cutlass.Constexpr):
    block, _, _ = cute.arch.block_idx()
    thread, _, _ = cute.arch.thread_idx()
    row, rank = block // plan.cluster, cute.arch.block_idx_in_cluster()
    first, step, vectors = rank * plan.threads + thread, plan.cluster * plan.threads, Int32(mX.shape[1]) // VECTOR
    gX, gY = row_vectors(mX[row, None]), row_vectors(mY[row, None])  # (vector, n / vector)
    smem = SmemAllocator()
    sW = smem.allocate_tensor(Float32, cute.make_layout(plan.threads // 32))  # (warps)
    sV = smem.allocate_tensor(Float32, cute.make_layout(1))  # (1)
    cute.arch.cluster_arrive()
    cute.arch.cluster_wait()
    rX = cute.make_rmem_tensor((VECTOR, plan.vectors), mX.element_type)  # (vector, vectors)
    rX.fill(0.0)
    for j in cutlass.range_constexpr(plan.vectors):
        if first + j * step < vectors:
            rX[None, j].store(gX[None, first + j * step].load())
    squares = Float32(0.0)
    for j in cutlass.range_constexpr(plan.vectors):
        x = rX[None, j].load().to(Float32)  # (vector)
        squares += total(x * x)
    squares = block_sum(squares, sW)
    if thread == 0:
        sV[0] = squares
    cute.arch.barrier()
    squares = Float32(0.0)
    for peer in cutlass.range_constexpr(plan.cluster):
        squares += of_peer(sV, 0, peer)
    rstd = cute.math.rsqrt(squares / mX.shape[1] + EPS)
    for j in cutlass.range_constexpr(plan.vectors):
        if first + j * step < vectors:
            y = rX[None, j].load().to(Float32) * rstd  # (vector)
            gY[None, first + j * step].store(y.to(mY.element_type))
    cute.arch.cluster_arrive()
    cute.arch.cluster_wait()


def norm_with(kernel, plan: Plan):
    """A host function that gives a row to a cluster, and runs one of these kernels."""

    @cute.jit
    def norm(mX: cute.Tensor, mY: cute.Tensor, stream):
        grid, block = (mX.shape[0] * plan.cluster, 1, 1), (plan.threads, 1, 1)
        kernel(mX, mY, plan).launch(grid=grid, block=block, cluster=(plan.cluster, 1, 1), stream=stream)

    return norm


def block_norm_with(kernel, plan: Plan):
    """A host function that gives a row to a block."""

    @cute.jit
    def norm(mX: cute.Tensor, mY: cute.Tensor, stream):
        kernel(mX, mY, plan).launch(grid=(mX.shape[0], 1, 1), block=(plan.threads, 1, 1), stream=stream)

    return norm


@cute.kernel
def left_alone_kernel(mY: cute.Tensor, naps: cutlass.Constexpr, stay: cutlass.Constexpr):
    """Block 0 of each pair sleeps, then reads its peer's shared memory; the peer stays, or has left by then."""
    block, _, _ = cute.arch.block_idx()
    thread, _, _ = cute.arch.thread_idx()
    rank = cute.arch.block_idx_in_cluster()
    sV = SmemAllocator().allocate_tensor(Float32, cute.make_layout(1))  # (1)
    if thread == 0:
        sV[0] = Float32(block + 1)
    cute.arch.cluster_arrive()
    cute.arch.cluster_wait()
    if rank == 0:
        for _ in cutlass.range(naps, unroll=1):
            cute.arch.inline_ptx("nanosleep.u32 {$r0};", read_only_args=[Int32(2000)])
        number = of_peer(sV, 0, 1)
        if thread == 0:
            mY[block // 2] = number
    if cutlass.const_expr(stay):
        cute.arch.cluster_arrive()
        cute.arch.cluster_wait()


def left_alone(naps: int, stay: bool):
    """A host function for pairs of blocks, one pair for each element of mY."""

    @cute.jit
    def pairs(mY: cute.Tensor, stream):
        launched = left_alone_kernel(mY, naps, stay)
        launched.launch(grid=(2 * mY.shape[0], 1, 1), block=(32, 1, 1), cluster=(2, 1, 1), stream=stream)

    return pairs


@cute.kernel
def sums_kernel(mX: cute.Tensor, mS: cute.Tensor):
    piece, row, _ = cute.arch.block_idx()
    thread, _, _ = cute.arch.thread_idx()
    vectors = Int32(mX.shape[1]) // VECTOR
    gX = row_vectors(mX[row, None])  # (vector, n / vector)
    sW = SmemAllocator().allocate_tensor(Float32, cute.make_layout(PIECE_THREADS // 32))  # (warps)
    first = piece * PIECE_THREADS * PIECE_VECTORS + thread
    rX = cute.make_rmem_tensor((VECTOR, PIECE_VECTORS), mX.element_type)  # (vector, vectors)
    rX.fill(0.0)
    for j in cutlass.range_constexpr(PIECE_VECTORS):
        if first + j * PIECE_THREADS < vectors:
            rX[None, j].store(gX[None, first + j * PIECE_THREADS].load())
    squares = Float32(0.0)
    for j in cutlass.range_constexpr(PIECE_VECTORS):
        x = rX[None, j].load().to(Float32)  # (vector)
        squares += total(x * x)
    squares = block_sum(squares, sW)
    if thread == 0:
        mS[row, piece] = squares


@cute.kernel
def scale_kernel(mX: cute.Tensor, mS: cute.Tensor, mY: cute.Tensor):
    piece, row, _ = cute.arch.block_idx()
    thread, _, _ = cute.arch.thread_idx()
    vectors, pieces = Int32(mX.shape[1]) // VECTOR, Int32(mS.shape[1])
    gX, gY = row_vectors(mX[row, None]), row_vectors(mY[row, None])  # (vector, n / vector)
    squares = Float32(0.0)
    for k in cutlass.range(thread % 32, pieces, 32):
        squares += mS[row, k]
    rstd = cute.math.rsqrt(butterfly_sum(squares) / mX.shape[1] + EPS)
    first = piece * PIECE_THREADS * PIECE_VECTORS + thread
    for j in cutlass.range_constexpr(PIECE_VECTORS):
        if first + j * PIECE_THREADS < vectors:
            y = gX[None, first + j * PIECE_THREADS].load().to(Float32) * rstd  # (vector)
            gY[None, first + j * PIECE_THREADS].store(y.to(mY.element_type))


@cute.jit
def two_kernels(mX: cute.Tensor, mS: cute.Tensor, mY: cute.Tensor, stream):
    """mS (m, pieces): the sums of the pieces, which the second kernel reads."""
    pieces = cute.ceil_div(mX.shape[1], VECTOR * PIECE_THREADS * PIECE_VECTORS)
    grid, block = (pieces, mX.shape[0], 1), (PIECE_THREADS, 1, 1)
    sums_kernel(mX, mS).launch(grid=grid, block=block, stream=stream)
    scale_kernel(mX, mS, mY).launch(grid=grid, block=block, stream=stream)
