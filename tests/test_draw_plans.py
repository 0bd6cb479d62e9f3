"""How a plan cuts a row: what is drawn as held, and what as empty."""

import numpy as np
import pytest

from quack_lite import draw, tiling
from quack_lite.draw.plans import cut, summary
from quack_lite.tiling import RowPlan

CLUSTER = RowPlan(vector=8, vectors=5, threads=512, rows=1, cluster=8)
BLOCK = RowPlan(vector=8, vectors=6, threads=192, rows=1, cluster=1)
SHARED = RowPlan(vector=8, vectors=2, threads=16, rows=16, cluster=1)


def test_the_parts_of_a_row_of_151936():
    parts = cut(151936, CLUSTER)
    assert (parts.ctas, parts.threads, parts.edges) == (8, 512, 0)
    assert parts.held == [4096, 4096, 4096, 4096, 151936 // 8 - 4 * 4096]
    assert [parts.idle(group, 4) for group in (512, 32, 1)] == [2, 46, 1488]
    assert summary(parts).startswith("vector 4: 2 of 8 CTAs and 46 warps hold nothing there; no vector at all: 0 ")


@pytest.mark.parametrize(
    "n, row_plan", [(151936, CLUSTER), (163840, CLUSTER), (1001, BLOCK), (7, SHARED), (250, SHARED)]
)
@pytest.mark.parametrize("head", [0, 3])
def test_a_thread_holds_what_the_kernels_tile_gives_it(n, row_plan, head):
    parts = cut(n, row_plan, head)
    along = np.arange(parts.ctas * parts.threads)
    end = head + (n - head) // row_plan.vector * row_plan.vector
    for j, held in enumerate(parts.held):
        first = head + (along + j * len(along)) * row_plan.vector
        assert np.array_equal(first < end, along < held)
    assert parts.edges == n - (end - head)


def test_a_block_with_a_row_to_itself_has_as_many_warps_as_it_has_work_for():
    assert [cut(n, BLOCK).threads for n in (1, 1536, 1537, 9216)] == [32, 32, 64, 192]
    assert cut(1, SHARED).threads == 16


def test_a_plan_that_is_too_short_is_refused():
    with pytest.raises(ValueError, match="holds rows of 1 to 256"):
        draw.plan(257, SHARED)


def test_without_a_plan_it_is_softmaxs():
    chosen = tiling.plan_row(5000, tiling.plans(16, tiling.SOFTMAX))
    assert draw.plan(5000).alt == draw.plan(5000, chosen).alt


def test_the_picture_says_what_is_empty():
    image = draw.plan(151936, CLUSTER)
    assert image.data.startswith(b"\x89PNG")
    assert "8 x 512 threads x 5 vectors of 8" in image.alt and "46 warps hold nothing" in image.alt


def test_the_hatched_share_is_the_empty_share(figures):
    draw.plan(151936, CLUSTER)
    row = figures[0].axes[0]
    hatched = sum(patch.get_width() for patch in row.patches if patch.get_hatch())
    full = sum(patch.get_width() for patch in row.patches if not patch.get_hatch())
    assert np.isclose(full, 151936 / 8) and np.isclose(hatched, 5 * 4096 - 151936 / 8)
