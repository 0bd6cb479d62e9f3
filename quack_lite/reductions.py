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
LN_2 = math.log(2)
VALUE_BYTES = 8  # a value travels between blocks as one aligned pair of 32-bit words


class Operator(NamedTuple):
    """combine(a, b) -> value is associative up to rounding and commutative; identity is its neutral element."""

    identity: tuple
    combine: Callable


def exp(x):
    """e**x by the hardware's 2**x, relative error about 2**-22 plus that of the rounded exponent."""
    return cute.math.exp2(x * LOG2_E, fastmath=True)


def log(x):
    """The natural logarithm by the hardware's binary one, absolute error about 2**-22."""
    return cute.math.log2(x, fastmath=True) * LN_2


def finite(maximum):
    """A maximum that can be subtracted: the lowest float32 instead of -inf, since -inf - -inf is NaN."""
    return cute.arch.fmax(maximum, LOWEST)


def combine_sum(a, b):
    """Two sums become one."""
    return (a[0] + b[0],)


def combine_pair(a, b):
    """Two pairs of sums become one: two reductions for the waiting of one."""
    return a[0] + b[0], a[1] + b[1]


def combine_max(a, b):
    """The greater; NaN is dropped."""
    return (cute.arch.fmax(a[0], b[0]),)


def combine_softmax(a, b):
    """Two (maximum, sum of exp(x - maximum)) become one; the sum carries NaN, which fmax drops."""
    maximum = cute.arch.fmax(a[0], b[0])
    shift = finite(maximum)
    return maximum, a[1] * exp(a[0] - shift) + b[1] * exp(b[0] - shift)


SUM = Operator((0.0,), combine_sum)
PAIR = Operator((0.0, 0.0), combine_pair)
MAX = Operator((-math.inf,), combine_max)
SOFTMAX = Operator((-math.inf, 0.0), combine_softmax)


def thread_sum(x):
    """The sum of a thread's values."""
    return (sum_of(x),)


def sum_of(x):
    """The sum of a thread's values, as a number."""
    return tree(x, lambda a, b: a + b)


def thread_max(x):
    """The maximum of a thread's values."""
    return (tree(x, cute.arch.fmax),)


def tree(x, combine):
    """Combines a thread's values in pairs, then the pairs: short chains, which are fast and round little."""
    values = numbers(x)
    while len(values) > 1:
        pairs = zip(values[::2], values[1::2], strict=False)
        values = [combine(a, b) for a, b in pairs] + values[len(values) // 2 * 2 :]
    return values[0]


def numbers(x) -> list:
    """A thread's values, one by one."""
    rX = cute.make_rmem_tensor(cute.size(x.shape), Float32)
    rX.store(x.reshape((cute.size(x.shape),)))
    return [rX[i] for i in range(cute.size(x.shape))]


def thread_softmax(x):
    """exp(x - maximum) for a thread's values, and their (maximum, sum)."""
    (maximum,) = thread_max(x)
    powers = exp(x - finite(maximum))
    return powers, (maximum, *thread_sum(powers))


def thread_softmax_value(x):
    """The (maximum, sum) of a thread's values, without the powers: each is added as soon as it is there."""
    (maximum,) = thread_max(x)
    shift = finite(maximum)

    def total(values):
        if len(values) == 1:
            return exp(values[0] - shift)
        middle = len(values) // 2
        return total(values[:middle]) + total(values[middle:])

    return maximum, total(numbers(x))


def add_softmax(value, x):
    """The (maximum, sum) of a value and of a thread's further values, one exponential each."""
    (highest,) = thread_max(x)
    maximum = cute.arch.fmax(value[0], highest)
    shift = finite(maximum)
    (more,) = thread_sum(exp(x - shift))
    return maximum, value[1] * exp(value[0] - shift) + more


def softmax_value(x):
    """The (maximum, sum) of one number; of -inf, as of nothing, the identity."""
    return x, exp(x - finite(x))


def warp_reduce(value, op: Operator, width: int = WARP):
    """Combines over groups of `width` neighbouring lanes by a butterfly: every lane gets the result."""
    for step in range(int(math.log2(width))):
        other = tuple(cute.arch.shuffle_sync_bfly(v, offset=1 << step) for v in value)
        value = op.combine(value, other)
    return value


class Mailbox(NamedTuple):
    """Shared memory for reductions in turn; each takes the next of `turns` places, so that nobody waits for readers.

    sW: the values of a block's warps (parts, warps, turns).  sV: those of the cluster's blocks (2, ranks, turns), and
    `arrived`, an mbarrier a turn, counts their bytes.  None where the plan needs none.
    """

    sW: cute.Tensor | None
    sV: cute.Tensor | None
    arrived: cute.Pointer | None
    turns: int


def expect_peers(plan, parts: int, turns: int = 1) -> Mailbox:
    """Prepares this block's mailbox for values of `parts` numbers from its warps and from its cluster's blocks.

    At the start of a kernel, so that the peers' answer comes while the row is loaded.
    """
    if plan.threads <= WARP:
        return Mailbox(None, None, None, turns)
    smem = SmemAllocator()
    sW = smem.allocate_tensor(Float32, cute.make_layout((parts, plan.threads // WARP, turns)))
    if plan.cluster == 1:
        return Mailbox(sW, None, None, turns)
    arrived = smem.allocate_array(cutlass.Int64, turns)
    layout = cute.make_layout((2, plan.cluster, turns))
    sV = smem.allocate_tensor(Float32, layout, byte_alignment=VALUE_BYTES)
    expect_bytes(arrived, VALUE_BYTES * plan.cluster, turns)
    cute.arch.cluster_arrive_relaxed()
    return Mailbox(sW, sV, arrived, turns)


@cute.jit
def expect_bytes(arrived, count: cutlass.Constexpr, turns: cutlass.Constexpr):
    """One thread sets up the mbarriers, each of which opens when that many bytes have come.

    The block's arrival at the cluster is relaxed: a release would keep each thread until the whole GPU sees what it has
    stored before. The two fences order what this thread did for the peers and for its own block.
    """
    thread, _, _ = cute.arch.thread_idx()
    if thread == 0:
        for turn in cutlass.range_constexpr(turns):
            cute.arch.mbarrier_init(arrived + turn, 1)
        cute.arch.mbarrier_init_fence()
        for turn in cutlass.range_constexpr(turns):
            cute.arch.mbarrier_arrive_and_expect_tx(arrived + turn, count)
        cute.arch.fence_acq_rel_cta()


def peers_ready(plan):
    """Waits until every block of the cluster runs and has prepared its mbarriers: before that nothing may be sent."""
    if plan.cluster > 1:
        cute.arch.cluster_wait()


def room(sW: cute.Tensor) -> int:
    """Threads that sW (parts, warps) has room for: all of a block's."""
    return sW.shape[1] * WARP


def started(sW: cute.Tensor):
    """Threads of this block where a launch may start fewer than there is room for.

    Not where a launch says 1024 as a constant: DSL 4.8.1 takes a block_dim of 1024 for impossible, and drops what
    depends on it.
    """
    threads, _, _ = cute.arch.block_dim()
    return threads


@cute.jit
def block_reduce(value, op: Operator, sW: cute.Tensor, threads_of: Callable = room):
    """Combines over a block through shared memory sW (parts, warps): every thread gets the result."""
    lane, warp = cute.arch.lane_idx(), cute.arch.warp_idx()
    threads = threads_of(sW)
    value = warp_reduce(value, op)
    if lane == 0:
        for part in cutlass.range_constexpr(len(op.identity)):
            sW[part, warp] = value[part]
    cute.arch.barrier()
    return reduce_shared(sW, op, threads // WARP)


@cute.jit
def cluster_reduce(value, op: Operator, plan, mailbox: Mailbox, turn):
    """Combines over a cluster: each block sends its value to every peer, and waits until every peer's has come."""
    place = turn % mailbox.turns
    arrived = mailbox.arrived + place
    sV = mailbox.sV[None, None, place]
    value = block_reduce(value, op, mailbox.sW[None, None, place], started)
    send_to_peers(value, sV, arrived, plan.cluster)
    cute.arch.mbarrier_wait(arrived, turn // mailbox.turns % 2)
    if cutlass.const_expr(mailbox.turns > 1):
        expect_again(arrived, plan)
    return reduce_shared(sV, op, plan.cluster)


@cute.jit
def expect_again(arrived, plan):
    """Prepares the mbarrier for its next turn."""
    thread, _, _ = cute.arch.thread_idx()
    if thread == 0:
        cute.arch.mbarrier_arrive_and_expect_tx(arrived, VALUE_BYTES * plan.cluster)


@cute.jit
def send_to_peers(value, sV: cute.Tensor, arrived, cluster: cutlass.Constexpr):
    """Lane r of the first warp sends this block's value to block r, itself included, in one st.async."""
    thread, _, _ = cute.arch.thread_idx()
    if thread < cluster:
        rank = cute.arch.block_idx_in_cluster()
        words = tuple(Float32(part).bitcast(Int32) for part in (*value, *value)[:2])
        cute.arch.store_async_dsmem(sV[None, rank].iterator.align(VALUE_BYTES), words, arrived, thread)


@cute.jit
def reduce_shared(sV: cute.Tensor, op: Operator, count):
    """Combines the values of sV (parts, count), at most 32, in each warp: every lane gets the result."""
    lane = cute.arch.lane_idx()
    value = tuple(Float32(part) for part in op.identity)
    if lane < count:
        value = tuple(sV[part, lane] for part in range(len(op.identity)))
    return warp_reduce(value, op)


def row_reduce(value, op: Operator, plan, mailbox: Mailbox, turn=0):
    """Combines over all threads that share a row; each of them gets the result. turn: counts a kernel's reductions.

    mailbox: from expect_peers; a kernel with several turns gives it two places at least.
    """
    if plan.cluster > 1:
        return cluster_reduce(value, op, plan, mailbox, turn)
    if plan.threads > WARP:
        return block_reduce(value, op, mailbox.sW[None, None, turn % mailbox.turns], started)
    return warp_reduce(value, op, plan.threads)
