"""Lesson 18: a cluster's sum by st.async, rows in turn, and the softmax whose empty warps say NaN."""

import math

import cutlass
import cutlass.cute as cute
from cutlass import Float32, Int32
from cutlass.memory import SmemAllocator

from quack_lite import lesson

before = lesson.steps(17)
Plan, norm_with, row_vectors, as_loaded = before.Plan, before.norm_with, before.row_vectors, before.as_loaded
total, butterfly_sum, block_sum, of_peer = before.total, before.butterfly_sum, before.block_sum, before.of_peer
VECTOR = 8  # of bfloat16: 128 bits
EPS = 1e-6
LOWEST = -3.4028234663852886e38  # of the finite float32 numbers
LOG2_E = math.log2(math.e)


@cute.jit
def expect(arrived, count: cutlass.Constexpr, turns: cutlass.Constexpr = 1):
    """One thread makes the mbarriers, each of which waits for so many bytes, and tells the cluster that they are."""
    thread, _, _ = cute.arch.thread_idx()
    if thread == 0:
        for turn in cutlass.range_constexpr(turns):
            cute.arch.mbarrier_init(arrived + turn, 1)
        cute.arch.mbarrier_init_fence()
        for turn in cutlass.range_constexpr(turns):
            cute.arch.mbarrier_arrive_and_expect_tx(arrived + turn, count)
    cute.arch.cluster_arrive()


@cute.jit
def expect_quietly(arrived, count: cutlass.Constexpr, turns: cutlass.Constexpr = 1):
    """One thread makes the mbarriers, each of which waits for so many bytes, and tells the cluster that they are."""
    thread, _, _ = cute.arch.thread_idx()
    if thread == 0:
        for turn in cutlass.range_constexpr(turns):
            cute.arch.mbarrier_init(arrived + turn, 1)
        cute.arch.mbarrier_init_fence()
        for turn in cutlass.range_constexpr(turns):
            cute.arch.mbarrier_arrive_and_expect_tx(arrived + turn, count)
        cute.arch.fence_acq_rel_cta()
    cute.arch.cluster_arrive_relaxed()


@cute.jit
def cluster_sum(value, sV: cute.Tensor, arrived, phase, cluster: cutlass.Constexpr):
    """The sum of the cluster's values, in every thread: sV (ranks) takes what the peers send."""
    thread, _, _ = cute.arch.thread_idx()
    rank = cute.arch.block_idx_in_cluster()
    if thread < cluster:
        word = Float32(value).bitcast(Int32)
        cute.arch.store_async_dsmem(sV.iterator + rank, word, arrived, thread)
    cute.arch.mbarrier_wait(arrived, phase)
    lane, value = cute.arch.lane_idx(), Float32(0.0)
    if lane < cluster:
        value = sV[lane]
    return butterfly_sum(value)


@cute.kernel
def sent_norm_kernel(mX: cute.Tensor, mY: cute.Tensor, plan: cutlass.Constexpr):
    block, _, _ = cute.arch.block_idx()
    thread, _, _ = cute.arch.thread_idx()
    row, rank = block // plan.cluster, cute.arch.block_idx_in_cluster()
    first, step, vectors = rank * plan.threads + thread, plan.cluster * plan.threads, Int32(mX.shape[1]) // VECTOR
    gX, gY = row_vectors(mX[row, None]), row_vectors(mY[row, None])  # (vector, n / vector)
    smem = SmemAllocator()
    sW = smem.allocate_tensor(Float32, cute.make_layout(plan.threads // 32))  # (warps)
    sV = smem.allocate_tensor(Float32, cute.make_layout(plan.cluster))  # (ranks)
    arrived = smem.allocate_array(cutlass.Int64, 1)
    expect(arrived, 4 * plan.cluster)
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
    cute.arch.cluster_wait()
    squares = cluster_sum(squares, sV, arrived, 0, plan.cluster)
    rstd = cute.math.rsqrt(squares / mX.shape[1] + EPS)
    as_loaded(rX)
    for j in cutlass.range_constexpr(plan.vectors):
        if first + j * step < vectors:
            y = rX[None, j].load().to(Float32) * rstd  # (vector)
            gY[None, first + j * step].store(y.to(mY.element_type))


@cute.kernel
def too_many_bytes_kernel(mX: cute.Tensor, mY: cute.Tensor, plan: cutlass.Constexpr):
    block, _, _ = cute.arch.block_idx()
    thread, _, _ = cute.arch.thread_idx()
    row, rank = block // plan.cluster, cute.arch.block_idx_in_cluster()
    first, step, vectors = rank * plan.threads + thread, plan.cluster * plan.threads, Int32(mX.shape[1]) // VECTOR
    gX, gY = row_vectors(mX[row, None]), row_vectors(mY[row, None])  # (vector, n / vector)
    smem = SmemAllocator()
    sW = smem.allocate_tensor(Float32, cute.make_layout(plan.threads // 32))  # (warps)
    sV = smem.allocate_tensor(Float32, cute.make_layout(plan.cluster))  # (ranks)
    arrived = smem.allocate_array(cutlass.Int64, 1)
    expect(arrived, 8 * plan.cluster)
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
    cute.arch.cluster_wait()
    squares = cluster_sum(squares, sV, arrived, 0, plan.cluster)
    rstd = cute.math.rsqrt(squares / mX.shape[1] + EPS)
    as_loaded(rX)
    for j in cutlass.range_constexpr(plan.vectors):
        if first + j * step < vectors:
            y = rX[None, j].load().to(Float32) * rstd  # (vector)
            gY[None, first + j * step].store(y.to(mY.element_type))


@cute.kernel
def quiet_norm_kernel(mX: cute.Tensor, mY: cute.Tensor, plan: cutlass.Constexpr):
    block, _, _ = cute.arch.block_idx()
    thread, _, _ = cute.arch.thread_idx()
    row, rank = block // plan.cluster, cute.arch.block_idx_in_cluster()
    first, step, vectors = rank * plan.threads + thread, plan.cluster * plan.threads, Int32(mX.shape[1]) // VECTOR
    gX, gY = row_vectors(mX[row, None]), row_vectors(mY[row, None])  # (vector, n / vector)
    smem = SmemAllocator()
    sW = smem.allocate_tensor(Float32, cute.make_layout(plan.threads // 32))  # (warps)
    sV = smem.allocate_tensor(Float32, cute.make_layout(plan.cluster))  # (ranks)
    arrived = smem.allocate_array(cutlass.Int64, 1)
    expect_quietly(arrived, 4 * plan.cluster)
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
    cute.arch.cluster_wait()
    squares = cluster_sum(squares, sV, arrived, 0, plan.cluster)
    rstd = cute.math.rsqrt(squares / mX.shape[1] + EPS)
    as_loaded(rX)
    for j in cutlass.range_constexpr(plan.vectors):
        if first + j * step < vectors:
            y = rX[None, j].load().to(Float32) * rstd  # (vector)
            gY[None, first + j * step].store(y.to(mY.element_type))


@cute.kernel
def turns_kernel(mX: cute.Tensor, mY: cute.Tensor, plan: cutlass.Constexpr, turns: cutlass.Constexpr):
    block, _, _ = cute.arch.block_idx()
    blocks, _, _ = cute.arch.grid_dim()
    thread, _, _ = cute.arch.thread_idx()
    group, rank = block // plan.cluster, cute.arch.block_idx_in_cluster()
    first, step, vectors = rank * plan.threads + thread, plan.cluster * plan.threads, Int32(mX.shape[1]) // VECTOR
    smem = SmemAllocator()
    sW = smem.allocate_tensor(Float32, cute.make_layout((plan.threads // 32, turns)))  # (warps, turns)
    sV = smem.allocate_tensor(Float32, cute.make_layout((plan.cluster, turns)))  # (ranks, turns)
    arrived = smem.allocate_array(cutlass.Int64, turns)
    expect_quietly(arrived, 4 * plan.cluster, turns)
    cute.arch.cluster_wait()
    turn = Int32(0)
    for row in cutlass.range(group, Int32(mX.shape[0]), blocks // plan.cluster, unroll=1):
        gX, gY = row_vectors(mX[row, None]), row_vectors(mY[row, None])  # (vector, n / vector)
        rX = cute.make_rmem_tensor((VECTOR, plan.vectors), mX.element_type)  # (vector, vectors)
        rX.fill(0.0)
        for j in cutlass.range_constexpr(plan.vectors):
            if first + j * step < vectors:
                rX[None, j].store(gX[None, first + j * step].load())
        squares = Float32(0.0)
        for j in cutlass.range_constexpr(plan.vectors):
            x = rX[None, j].load().to(Float32)  # (vector)
            squares += total(x * x)
        place, phase = turn % turns, turn // turns % 2
        squares = block_sum(squares, sW[None, place])
        squares = cluster_sum(squares, sV[None, place], arrived + place, phase, plan.cluster)
        if thread == 0:
            cute.arch.mbarrier_arrive_and_expect_tx(arrived + place, 4 * plan.cluster)
        rstd = cute.math.rsqrt(squares / mX.shape[1] + EPS)
        as_loaded(rX)
        for j in cutlass.range_constexpr(plan.vectors):
            if first + j * step < vectors:
                y = rX[None, j].load().to(Float32) * rstd  # (vector)
                gY[None, first + j * step].store(y.to(mY.element_type))
        turn += 1


def turns_with(plan: Plan, groups: int, turns: int = 2):
    """A host function in which `groups` clusters take the rows in turn."""

    @cute.jit
    def norm(mX: cute.Tensor, mY: cute.Tensor, stream):
        grid, block = (groups * plan.cluster, 1, 1), (plan.threads, 1, 1)
        launched = turns_kernel(mX, mY, plan, turns)
        launched.launch(grid=grid, block=block, cluster=(plan.cluster, 1, 1), stream=stream)

    return norm


def exp(x):
    """e**x by the hardware's 2**x."""
    return cute.math.exp2(x * LOG2_E, fastmath=True)


def shift(maximum):
    """What is subtracted before exp: the maximum itself."""
    return maximum


def finite(maximum):
    """What is subtracted before exp: the maximum, or a number where it is -inf."""
    return cute.arch.fmax(maximum, LOWEST)


def butterfly_max(value):
    """The maximum of a warp, in every lane."""
    for step in range(5):
        value = cute.arch.fmax(value, cute.arch.shuffle_sync_bfly(value, offset=1 << step))
    return value


@cute.jit
def slice_softmax(mX: cute.Tensor, mY: cute.Tensor, plan: cutlass.Constexpr, shifted: cutlass.Constexpr):
    """Softmax of a row by a cluster, each block with a slice of neighbouring vectors.

    Every warp sends its pair (max, sum) to every block, and every warp combines all of them.
    """
    block, _, _ = cute.arch.block_idx()
    thread, _, _ = cute.arch.thread_idx()
    warp, lane, warps = thread // 32, thread % 32, plan.threads // 32
    row, rank = block // plan.cluster, cute.arch.block_idx_in_cluster()
    first, vectors = rank * plan.threads * plan.vectors + thread, Int32(mX.shape[1]) // VECTOR
    gX, gY = row_vectors(mX[row, None]), row_vectors(mY[row, None])  # (vector, n / vector)
    smem = SmemAllocator()
    sV = smem.allocate_tensor(Float32, cute.make_layout((2, warps * plan.cluster)), byte_alignment=8)  # (2, pairs)
    arrived = smem.allocate_array(cutlass.Int64, 1)
    expect_quietly(arrived, 8 * warps * plan.cluster)
    rX = cute.make_rmem_tensor((VECTOR, plan.vectors), mX.element_type)  # (vector, vectors)
    rX.fill(mX.element_type(-math.inf))
    for j in cutlass.range_constexpr(plan.vectors):
        if first + j * plan.threads < vectors:
            rX[None, j].store(gX[None, first + j * plan.threads].load())
    highest = rX.load().to(Float32).reduce(cute.ReductionOp.MAX, Float32(-math.inf), 0)
    highest = butterfly_max(highest)
    rP, own = cute.make_rmem_tensor((VECTOR, plan.vectors), Float32), Float32(0.0)  # (vector, vectors)
    for j in cutlass.range_constexpr(plan.vectors):
        powers = exp(rX[None, j].load().to(Float32) - shifted(highest))  # (vector)
        rP[None, j].store(powers)
        own += total(powers)
    own = butterfly_sum(own)
    cute.arch.cluster_wait()
    if lane < plan.cluster:
        words = (Float32(highest).bitcast(Int32), Float32(own).bitcast(Int32))
        cute.arch.store_async_dsmem(sV[None, rank * warps + warp].iterator, words, arrived, lane)
    cute.arch.mbarrier_wait(arrived, 0)
    row_max, row_sum = Float32(-math.inf), Float32(0.0)
    for k in cutlass.range(lane, warps * plan.cluster, 32):
        row_max = cute.arch.fmax(row_max, sV[0, k])
    row_max = butterfly_max(row_max)
    for k in cutlass.range(lane, warps * plan.cluster, 32):
        row_sum += sV[1, k] * exp(sV[0, k] - shifted(row_max))
    row_sum = butterfly_sum(row_sum)
    share = exp(highest - shifted(row_max)) / row_sum
    for j in cutlass.range_constexpr(plan.vectors):
        if first + j * plan.threads < vectors:
            y = rP[None, j].load() * share  # (vector)
            gY[None, first + j * plan.threads].store(y.to(mY.element_type))


@cute.kernel
def unguarded_kernel(mX: cute.Tensor, mY: cute.Tensor, plan: cutlass.Constexpr):
    slice_softmax(mX, mY, plan, shift)


@cute.kernel
def guarded_kernel(mX: cute.Tensor, mY: cute.Tensor, plan: cutlass.Constexpr):
    slice_softmax(mX, mY, plan, finite)


def softmax_with(kernel, plan: Plan, blocks: int):
    """As norm_with, with the promise that so many blocks share an SM: the compiler takes no more registers than that.

    Given how an SM is to be parted into L1 and shared memory, the DSL need not ask a GPU about it.
    """

    @cute.jit
    def softmax(mX: cute.Tensor, mY: cute.Tensor, stream):
        grid, block = (mX.shape[0] * plan.cluster, 1, 1), (plan.threads, 1, 1)
        promised = {"min_blocks_per_mp": blocks, "preferred_smem_carveout": 25}
        kernel(mX, mY, plan).launch(grid=grid, block=block, cluster=(plan.cluster, 1, 1), stream=stream, **promised)

    return softmax


TIMES = 512
LEVELS = ("thread", "warp", "block", "cluster, barriers", "cluster, st.async")


@cute.kernel
def cost_kernel(mT: cute.Tensor, level: cutlass.Constexpr, cluster: cutlass.Constexpr):
    """Cycles for TIMES sums, each of which needs the one before; mT (2): cycles, and the last sum."""
    block, _, _ = cute.arch.block_idx()
    thread, _, _ = cute.arch.thread_idx()
    smem = SmemAllocator()
    sW = smem.allocate_tensor(Float32, cute.make_layout((8, 2)))  # (warps, turns)
    sV = smem.allocate_tensor(Float32, cute.make_layout((cluster, 2)))  # (ranks, turns)
    arrived = smem.allocate_array(cutlass.Int64, 2)
    expect(arrived, 4 * cluster, 2)
    cute.arch.cluster_wait()
    value = Float32(thread)
    begin = cute.arch.clock64()
    for turn in cutlass.range(Int32(TIMES), unroll=1):
        place = turn % 2
        if cutlass.const_expr(level == "thread"):
            value = value * 0.5 + 1.0
        if cutlass.const_expr(level == "warp"):
            value = butterfly_sum(value * 0.03)
        if cutlass.const_expr(level == "block"):
            value = block_sum(value * 0.003, sW[None, place])
        if cutlass.const_expr(level == "cluster, barriers"):
            value = block_sum(value * 0.0003, sW[None, place])
            if thread == 0:
                sV[0, place] = value
            cute.arch.cluster_arrive()
            cute.arch.cluster_wait()
            value = Float32(0.0)
            for peer in cutlass.range_constexpr(cluster):
                value += of_peer(sV, place * cluster, peer)
        if cutlass.const_expr(level == "cluster, st.async"):
            value = block_sum(value * 0.0003, sW[None, place])
            value = cluster_sum(value, sV[None, place], arrived + place, turn // 2 % 2, cluster)
            if thread == 0:
                cute.arch.mbarrier_arrive_and_expect_tx(arrived + place, 4 * cluster)
    end = cute.arch.clock64()
    if thread == 0 and block == 0:
        mT[0] = Float32(end - begin)
        mT[1] = value
    cute.arch.cluster_arrive()
    cute.arch.cluster_wait()


def cost_of(level: str, cluster: int):
    """A host function for one cluster of blocks of 256 threads."""

    @cute.jit
    def cost(mT: cute.Tensor, stream):
        launched = cost_kernel(mT, level, cluster)
        launched.launch(grid=(cluster, 1, 1), block=(256, 1, 1), cluster=(cluster, 1, 1), stream=stream)

    return cost
