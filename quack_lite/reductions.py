"""One operator, reduced over growing neighbourhoods: thread, warp, block, cluster.

A value is a tuple of float32 numbers. An operator has an identity, which changes nothing it is combined with, and so
stands for an empty thread, warp or block; a row's bits do not depend on who held nothing.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import cutlass
import cutlass.cute as cute
from cutlass import Float32, Int32
from cutlass.memory import SmemAllocator

WARP = 32
LOWEST = -3.4028234663852886e38  # of the finite float32 numbers
LOG2_E = math.log2(math.e)
VALUE_BYTES = 8  # a value travels between blocks as one aligned pair of 32-bit words


class Operator(NamedTuple):
    """combine(a, b) -> value is associative up to rounding and commutative; identity is its neutral element."""

    identity: tuple
    combine: Callable


def exp(x):
    """e**x by the hardware's 2**x, relative error about 2**-22 plus that of the rounded exponent."""
    return cute.math.exp2(x * LOG2_E, fastmath=True)


def finite(maximum):
    """A maximum that can be subtracted: the lowest float32 instead of -inf, since -inf - -inf is NaN."""
    return cute.arch.fmax(maximum, LOWEST)


def combine_sum(a, b):
    return (a[0] + b[0],)


def combine_max(a, b):
    return (cute.arch.fmax(a[0], b[0]),)


def combine_softmax(a, b):
    """Two (maximum, sum of exp(x - maximum)) become one; the sum carries NaN, which fmax drops."""
    maximum = cute.arch.fmax(a[0], b[0])
    shift = finite(maximum)
    return maximum, a[1] * exp(a[0] - shift) + b[1] * exp(b[0] - shift)


SUM = Operator((0.0,), combine_sum)
MAX = Operator((-math.inf,), combine_max)
SOFTMAX = Operator((-math.inf, 0.0), combine_softmax)


def thread_sum(x):
    """The sum of a thread's values."""
    return (x.reduce(cute.ReductionOp.ADD, 0.0, 0),)


def thread_max(x):
    """The maximum of a thread's values."""
    return (x.reduce(cute.ReductionOp.MAX, -Float32.inf, 0),)


def thread_softmax(x):
    """exp(x - maximum) for a thread's values, and their (maximum, sum)."""
    (maximum,) = thread_max(x)
    powers = exp(x - finite(maximum))
    return powers, (maximum, *thread_sum(powers))


def warp_reduce(value, op: Operator, width: int = WARP):
    """Combines over groups of `width` neighbouring lanes by a butterfly: every lane gets the result."""
    for step in range(int(math.log2(width))):
        other = tuple(cute.arch.shuffle_sync_bfly(v, offset=1 << step) for v in value)
        value = op.combine(value, other)
    return value


@cute.jit
def block_reduce(value, op: Operator, warps: cutlass.Constexpr):
    """Combines over a block of `warps` warps through shared memory: every thread gets the result."""
    lane, warp = cute.arch.lane_idx(), cute.arch.warp_idx()
    value = warp_reduce(value, op)
    sV = SmemAllocator().allocate_tensor(Float32, cute.make_layout((len(op.identity), warps)))  # (parts, warps)
    if lane == 0:
        for part in cutlass.range_constexpr(len(op.identity)):
            sV[part, warp] = value[part]
    cute.arch.barrier()
    return reduce_shared(sV, op, warps)


class Mailbox(NamedTuple):
    """Where a block of a cluster gets its peers' values sV (2, ranks); `arrived`, an mbarrier, counts their bytes."""

    sV: cute.Tensor
    arrived: cute.Pointer


def expect_peers(plan) -> Mailbox | None:
    """Prepares this block's mailbox for one value of each block of the cluster, and says so; None without a cluster.

    At the start of a kernel, so that the peers' answer comes while the row is loaded.
    """
    if plan.cluster == 1:
        return None
    smem = SmemAllocator()
    arrived = smem.allocate_array(cutlass.Int64, 1)
    layout = cute.make_layout((2, plan.cluster))
    sV = smem.allocate_tensor(Float32, layout, byte_alignment=VALUE_BYTES)
    expect_bytes(arrived, VALUE_BYTES * plan.cluster)
    cute.arch.cluster_arrive_relaxed()
    return Mailbox(sV, arrived)


@cute.jit
def expect_bytes(arrived, count: cutlass.Constexpr):
    """One thread sets up the mbarrier, which opens when that many bytes have come.

    The block's arrival at the cluster is relaxed, since a release costs a tenth of a long row's time; the two fences
    order what this thread did for the peers and for its own block.
    """
    thread, _, _ = cute.arch.thread_idx()
    if thread == 0:
        cute.arch.mbarrier_init(arrived, 1)
        cute.arch.mbarrier_init_fence()
        cute.arch.mbarrier_arrive_and_expect_tx(arrived, count)
        cute.arch.fence_acq_rel_cta()


def cluster_reduce(value, op: Operator, plan, mailbox: Mailbox):
    """Combines over a cluster: each block sends its value to every peer, and waits until every peer's has come."""
    value = block_reduce(value, op, plan.threads // WARP)
    peers_ready()
    send_to_peers(value, mailbox.sV, mailbox.arrived, plan.cluster)
    cute.arch.mbarrier_wait(mailbox.arrived, 0)
    return reduce_shared(mailbox.sV, op, plan.cluster)


def peers_ready():
    """Waits until every block of the cluster runs and has prepared its mbarrier: before that nothing may be sent."""
    cute.arch.cluster_wait()


@cute.jit
def send_to_peers(value, sV: cute.Tensor, arrived, cluster: cutlass.Constexpr):
    """Lane r of the first warp sends this block's value to block r, itself included, in one st.async."""
    thread, _, _ = cute.arch.thread_idx()
    if thread < cluster:
        rank = cute.arch.block_idx_in_cluster()
        words = tuple(Float32(part).bitcast(Int32) for part in (*value, *value)[:2])
        cute.arch.store_async_dsmem(sV[None, rank].iterator.align(VALUE_BYTES), words, arrived, thread)


@cute.jit
def reduce_shared(sV: cute.Tensor, op: Operator, count: cutlass.Constexpr):
    """Combines the values of sV (parts, count), at most 32, in each warp: every lane gets the result."""
    lane = cute.arch.lane_idx()
    value = tuple(Float32(part) for part in op.identity)
    if lane < count:
        value = tuple(sV[part, lane] for part in range(len(op.identity)))
    return warp_reduce(value, op)


def row_reduce(value, op: Operator, plan, mailbox: Mailbox | None):
    """Combines over all threads that share a row; every one of them gets the result. mailbox: from expect_peers."""
    if plan.cluster > 1:
        return cluster_reduce(value, op, plan, mailbox)
    if plan.threads > WARP:
        return block_reduce(value, op, plan.threads // WARP)
    return warp_reduce(value, op, plan.threads)
