"""plan_row's promises, for each row length, dtype and alignment."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quack_lite import tiling

ALIGNMENTS = [(bits, alignment) for bits in (16, 32) for alignment in (1, 128 // bits)]
REGISTERS_A_BLOCK = 65536
REGISTERS_BESIDE_THE_ROW = 40
SHARED_BYTES = 48 * 1024
WARP = 32


def lengths_by_plan(bits, alignment):
    """{plan: all row lengths of this alignment that get it}."""
    found = {}
    for n in range(alignment, tiling.MAX_N + 1, alignment):
        found.setdefault(tiling.plan_row(n, bits, alignment), []).append(n)
    return found


def owners(plan, n):
    """How often each element of a row of n elements is owned, and how many vectors each block owns."""
    (threads, ranks), ((vector, _), vectors) = plan.shape
    (thread_stride, rank_stride), ((_, _), vector_stride) = plan.stride
    first = (
        np.arange(threads)[:, None, None] * thread_stride
        + np.arange(ranks)[None, :, None] * rank_stride
        + np.arange(vectors)[None, None, :] * vector_stride
    )
    inside = first < n
    owned = np.zeros(max(n, first.max() + 1) + vector, dtype=np.int64)
    np.add.at(owned, (first[inside][:, None] + np.arange(vector)).ravel(), 1)
    return owned, inside.sum(axis=(0, 2))


def covers_once_and_no_block_is_empty(plan, n):
    owned, by_block = owners(plan, n)
    return (owned[:n] == 1).all() and not owned[n:].any() and by_block.min() > 0


@pytest.mark.parametrize("bits, alignment", ALIGNMENTS)
def test_each_length_has_a_plan_that_holds_it_without_an_empty_block(bits, alignment):
    for plan, lengths in lengths_by_plan(bits, alignment).items():
        assert lengths == list(range(lengths[0], lengths[-1] + 1, alignment))
        assert lengths[-1] <= plan.capacity
        assert (plan.cluster - 1) * plan.threads * plan.vector < lengths[0]


@pytest.mark.parametrize("bits, alignment", ALIGNMENTS)
def test_tiles_cover_the_shortest_and_the_longest_row_of_a_plan_once(bits, alignment):
    # What holds for the full tile holds for each row in it: a length only leaves out the vectors past its end.
    for plan, lengths in lengths_by_plan(bits, alignment).items():
        for n in (lengths[0], lengths[len(lengths) // 2], lengths[-1]):
            assert covers_once_and_no_block_is_empty(plan, n), (plan, n)


@given(st.integers(1, tiling.MAX_N), st.sampled_from([16, 32]))
def test_tiles_cover_any_row_once(n, bits):
    widest = 128 // bits
    plan = tiling.plan_row(n, bits, widest if n % widest == 0 else 1)
    assert n % plan.vector == 0
    assert covers_once_and_no_block_is_empty(plan, n)


def test_a_plan_with_a_gap_is_caught():
    class Gap(tiling.RowPlan):
        @property
        def stride(self):
            return ((self.vector + 1, self.threads * self.vector), super().stride[1])

    assert not covers_once_and_no_block_is_empty(Gap(8, 8, 128, 1, 1), 8192)


def test_a_plan_that_leaves_a_block_empty_is_caught():
    assert not covers_once_and_no_block_is_empty(tiling.RowPlan(8, 8, 256, 1, 16), 8 * 256 * 15)


@pytest.mark.parametrize("vector", [1, 4, 8])
def test_registers_shared_memory_and_launch_limits_hold(vector):
    for plan in tiling.plans(vector):
        values = plan.vector * plan.vectors
        assert (values + REGISTERS_BESIDE_THE_ROW) * plan.block <= REGISTERS_A_BLOCK
        assert 8 * (plan.threads // WARP + plan.cluster + 1) <= SHARED_BYTES
        assert plan.block % WARP == 0 and plan.block <= 1024
        assert plan.threads in (8, 16, 32, 64, 128, 256, 512, 1024)  # a butterfly needs powers of two
        assert plan.cluster in (1, 2, 4, 8, 16)
        assert plan.rows == 1 or plan.threads <= WARP


@pytest.mark.parametrize("n", [-1, 0, tiling.MAX_N + 1])
def test_a_length_outside_the_limits_is_refused_with_what_to_do(n):
    with pytest.raises(ValueError, match=f"a row has {n} elements; rows of 1 to 300000 .* split or pad"):
        tiling.plan_row(n, 16, 8)


def test_a_plan_holds_plain_values_and_no_n():
    plan = tiling.plan_row(4096, 16, 8)
    assert all(isinstance(value, int) for value in vars(plan).values())
    assert tiling.plan_row(4088, 16, 8) is plan


@pytest.mark.parametrize(
    "bits, alignment, vector", [(16, 8, 8), (16, 4, 1), (16, 1, 1), (32, 4, 4), (32, 2, 1), (32, 8, 4)]
)
def test_a_vector_is_as_wide_as_the_alignment_allows(bits, alignment, vector):
    assert tiling.plan_row(4096, bits, alignment).vector == vector
    assert tiling.plan_copy(bits, alignment).vector == vector
