"""What the plans promise, for each row length, dtype and table."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quack_lite import tiling

BITS = [16, 32]
TABLES = {
    "SOFTMAX": tiling.SOFTMAX,
    "LOG_SOFTMAX": tiling.LOG_SOFTMAX,
    "SOFTMAX_BACKWARD": tiling.SOFTMAX_BACKWARD,
    "RMS_NORM": tiling.RMS_NORM,
    "ADD_RMS_NORM": tiling.ADD_RMS_NORM,
    "LAYER_NORM": tiling.LAYER_NORM,
    "RMS_NORM_BACKWARD": tiling.RMS_NORM_BACKWARD,
    "ADD_RMS_NORM_BACKWARD": tiling.ADD_RMS_NORM_BACKWARD,
    "LAYER_NORM_BACKWARD": tiling.LAYER_NORM_BACKWARD,
}
# Tensors of a row that wait in shared memory, and in registers; two if not named.
STAGED = {"SOFTMAX": 0, "LOG_SOFTMAX": 0, "RMS_NORM": 1, "LAYER_NORM": 1}
IN_REGISTERS = {"SOFTMAX": 1, "LOG_SOFTMAX": 1, "SOFTMAX_BACKWARD": 0, "RMS_NORM": 1, "LAYER_NORM": 1}
EVERY_TABLE = pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
EVERY_WIDTH = pytest.mark.parametrize("bits", BITS)
REGISTERS_A_BLOCK, THREADS_A_BLOCK = 65536, 1024
REGISTERS_BESIDE_THE_ROW = 24
SHARED_BYTES = 227 * 1024
WARP = 32


def threads_of(plan, n):
    """Threads of a block on a row of n elements, as grid.row_threads takes them."""
    if plan.rows > 1 or plan.cluster > 1:
        return plan.threads
    return min(plan.threads, max(WARP, -(-n // (plan.vector * plan.vectors * WARP)) * WARP))


def owned(plan, n, head):
    """How often each element of a row is owned whose first boundary comes after `head` elements, as copies.row_tile."""
    head = min(head, n)
    body = (n - head) // plan.vector * plan.vector
    threads = threads_of(plan, n)
    along = np.arange(threads * plan.cluster)
    step = threads * plan.cluster * plan.vector
    starts = (head + along * plan.vector)[:, None] + np.arange(plan.vectors) * step
    inside = starts[starts < head + body]
    edges = np.where(along >= head, along + body, along)
    counts = np.zeros(n + plan.vector, dtype=np.int64)
    np.add.at(counts, (inside[:, None] + np.arange(plan.vector)).ravel(), 1)
    np.add.at(counts, edges[edges < n], 1)
    return counts


def covers_once(plan, n, head):
    counts = owned(plan, n, head)
    return (counts[:n] == 1).all() and not counts[n:].any()


@EVERY_TABLE
@EVERY_WIDTH
def test_each_length_has_the_first_plan_that_holds_it(bits, table):
    plans = tiling.plans(bits, table)
    first = 1
    for plan in plans:
        last = min(plan.capacity, tiling.MAX_N)
        assert first <= last
        for n in {first, (first + last) // 2, last}:
            assert tiling.plan_row(n, plans) is plan
        first = last + 1
    assert first - 1 == tiling.longest(plans)


@EVERY_TABLE
@EVERY_WIDTH
def test_the_shortest_and_the_longest_row_of_a_plan_are_covered_once_from_each_start(bits, table):
    first = 1
    for plan in tiling.plans(bits, table):
        last = min(plan.capacity, tiling.MAX_N)
        for n in {first, first + 1, (first + last) // 2, last - 1, last} & set(range(first, last + 1)):
            for head in range(plan.vector):
                assert covers_once(plan, n, head), (plan, n, head)
        first = last + 1


@given(st.integers(1, tiling.MAX_N), st.sampled_from(BITS), st.sampled_from(list(TABLES)), st.integers(0, 7))
def test_any_row_is_covered_once(n, bits, name, head):
    plans = tiling.plans(bits, TABLES[name])
    plan = tiling.plan_row(min(n, tiling.longest(plans)), plans)
    assert covers_once(plan, min(n, tiling.longest(plans)), head % plan.vector)


def test_too_few_threads_are_caught():
    assert not covers_once(tiling.RowPlan(8, 4, 8, 16, 1), 100, 7)  # fourteen edges may be needed, eight threads
    assert not covers_once(tiling.RowPlan(8, 4, 128, 1, 2), 8200, 0)


@EVERY_TABLE
@EVERY_WIDTH
def test_no_block_of_a_cluster_is_without_a_vector(bits, table):
    first = 1
    for plan in tiling.plans(bits, table):
        assert (plan.cluster - 1) * plan.threads * plan.vector + 2 * plan.vector < first or plan.cluster == 1
        first = plan.capacity + 1


@pytest.mark.parametrize("table", TABLES)
@EVERY_WIDTH
def test_registers_shared_memory_and_launch_limits_hold(bits, table):
    for plan in tiling.plans(bits, TABLES[table]):
        raw = plan.vectors * IN_REGISTERS.get(table, 2) * 4
        registers = min(255, REGISTERS_A_BLOCK // min(plan.block, THREADS_A_BLOCK))
        assert raw + REGISTERS_BESIDE_THE_ROW <= registers
        assert staged_bytes(plan, table) <= SHARED_BYTES
        assert bool(plan.stages) == bool(plan.groups)
        assert plan.block % WARP == 0 and plan.block <= THREADS_A_BLOCK
        assert plan.cluster in (1, 2, 4, 8, 16) and plan.threads >= plan.cluster
        assert plan.rows == 1 or plan.threads in (8, 16, 32)  # a butterfly within a warp needs a power of two
        assert plan.threads >= 2 * plan.vector - 2 or plan.rows > 1


def staged_bytes(plan, name):
    """Shared memory for rows on their way or waiting, and for a backward's sums where registers have no room."""
    wide = "ADD" in name and plan.vector == 8  # a residual of float32
    rows = max(plan.stages, 1) * (STAGED.get(name, 2) + wide) * plan.vectors * 16 * plan.block
    sums = (plan.vector * plan.vectors + 4) * 4 * plan.block if plan.lean and "BACKWARD" in name else 0
    return rows + sums * (2 if name == "LAYER_NORM_BACKWARD" else 1)


@EVERY_TABLE
@EVERY_WIDTH
@pytest.mark.parametrize("n", [-1, 0, tiling.MAX_N + 1])
def test_a_length_outside_the_limits_is_refused_with_what_to_do(bits, table, n):
    with pytest.raises(ValueError, match=f"a row has {n} elements; rows of 1 to [0-9]+ .* split or pad"):
        tiling.plan_row(n, tiling.plans(bits, table))


@EVERY_WIDTH
def test_the_limits_that_are_promised(bits):
    for name, table in TABLES.items():
        backward = 262144 if bits == 16 else 131072
        wanted = backward if "BACKWARD" in name else tiling.MAX_N
        assert tiling.longest(tiling.plans(bits, table)) >= wanted


def test_a_plan_holds_plain_values_and_no_n():
    plans = tiling.plans(16, tiling.SOFTMAX)
    assert all(isinstance(value, int) for value in vars(plans[0]).values())
    assert tiling.plan_row(4096, plans) is tiling.plan_row(4088, plans)


@EVERY_WIDTH
def test_few_long_rows_take_a_cluster_and_short_ones_share_a_block(bits):
    short, block, cluster = tiling.plans_of_streams(bits)
    assert tiling.plan_stream(200, False, bits) == tiling.plan_stream(200, True, bits) == short
    assert tiling.plan_stream(1000, False, bits) == short and tiling.plan_stream(1000, True, bits) == block
    assert tiling.plan_stream(100_000, False, bits) == block
    assert tiling.plan_stream(100_000, True, bits) == cluster
    for plan in (short, block, cluster):
        first, last = tiling.stream_lengths(plan)
        assert plan in {tiling.plan_stream(n, few, bits) for n in (first, last) for few in (False, True)}
