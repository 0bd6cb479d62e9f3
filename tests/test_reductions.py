"""Each operator at each of the four levels, with threads, warps and blocks that hold nothing."""

import math

import pytest

from quack_lite import tiling

# One plan a level: part of a warp, a warp, a block, a cluster. Rows of 33 vectors leave most threads of each empty.
PLANS = {
    "8 lanes": tiling.RowPlan(4, 8, 8, 16, 1),
    "warp": tiling.RowPlan(4, 8, 32, 4, 1),
    "block": tiling.RowPlan(4, 8, 256, 1, 1),
    "cluster of 4": tiling.RowPlan(4, 8, 128, 1, 4),
    "cluster of 16": tiling.RowPlan(4, 8, 64, 1, 16),
}
WIDTHS = [4, 132, 135]


def reducing(operator, plan):
    """A host function (mX (m, n), mY (m, threads of a row in one block)): each thread writes what it got."""
    import cutlass.cute as cute

    from quack_lite import copies, grid, reductions

    op = getattr(reductions, operator)
    of_thread = {"SUM": reductions.thread_sum, "MAX": reductions.thread_max}

    @cute.kernel
    def reduce_kernel(mX: cute.Tensor, mY: cute.Tensor):
        place = grid.row_place(plan)
        tile = copies.row_tile(mX, place, plan)
        mailbox = reductions.expect_peers(plan, parts=1)
        x = copies.load(mX, tile, plan, fill=op.identity[0])
        reductions.peers_ready(plan)
        value = reductions.row_reduce(of_thread[operator](x), op, plan, mailbox)
        if tile.n > 0:
            mY[place.row, place.rank * place.threads + place.thread] = value[0]

    @cute.jit
    def reduce(mX: cute.Tensor, mY: cute.Tensor, stream):
        reduce_kernel(mX, mY).launch(**grid.a_group_a_row(mX, plan), stream=stream)

    return reduce


@pytest.fixture(scope="module")
def built():
    import torch

    from quack_lite import launch

    def compiled(operator, plan):
        import cutlass
        import cutlass.cute as cute

        x = launch.matrix_tensor(cutlass.Float32, (cute.sym_int32(), cute.sym_int32()))
        y = launch.stand_in(torch.empty(1, 1), 4)
        return launch.compile_host(reducing(operator, plan), [x, y])

    return compiled


@pytest.mark.compile
@pytest.mark.parametrize("level, shuffles", [("8 lanes", 3), ("warp", 5), ("block", 10), ("cluster of 16", 15)])
def test_a_level_more_is_a_butterfly_more(built, level, shuffles):
    facts = built("SUM", PLANS[level]).facts
    assert facts.shfl_bfly == shuffles
    assert (facts.barriers, facts.st_async) == (int(shuffles > 5), int(shuffles > 10))


def block_sum(threads):
    """A host function (mX (threads), mY (threads)) of one block: each thread writes the sum of all."""
    import cutlass
    import cutlass.cute as cute
    from cutlass.memory import SmemAllocator

    from quack_lite import reductions

    @cute.kernel
    def sum_kernel(mX: cute.Tensor, mY: cute.Tensor):
        thread, _, _ = cute.arch.thread_idx()
        sW = SmemAllocator().allocate_tensor(cutlass.Float32, cute.make_layout((1, threads // 32)))
        mY[thread] = reductions.block_reduce((mX[thread],), reductions.SUM, sW)[0]

    @cute.jit
    def sums(mX: cute.Tensor, mY: cute.Tensor, stream):
        sum_kernel(mX, mY).launch(grid=(1, 1, 1), block=(threads, 1, 1), stream=stream)

    return sums


@pytest.mark.compile
@pytest.mark.parametrize("threads", [64, 1024])
def test_the_largest_block_reads_what_its_warps_left(threads):
    """The DSL drops what depends on block_dim where a launch says 1024 as a constant."""
    import torch

    from quack_lite import launch

    assert "ld.shared" in launch.build(block_sum(threads), torch.empty(4), torch.empty(4)).ptx


@pytest.mark.hopper
@pytest.mark.parametrize("threads", [64, 1024])
def test_a_block_sums_itself(threads):
    import torch

    from quack_lite import launch

    x, y = torch.randn(threads, device="cuda"), torch.full((threads,), math.nan, device="cuda")
    launch.build(block_sum(threads), x, y)(x, y)
    assert torch.allclose(y.double(), x.double().sum().expand_as(y), rtol=1e-5, atol=1e-5)


@pytest.mark.hopper
@pytest.mark.parametrize("operator", ["SUM", "MAX"])
@pytest.mark.parametrize("level", PLANS)
@pytest.mark.parametrize("n", WIDTHS)
def test_every_thread_gets_the_rows_result(built, operator, level, n):
    import torch

    plan = PLANS[level]
    x = torch.randn(plan.rows + 1, n, device="cuda")
    x[0] = -math.inf if operator == "MAX" else 0.0
    threads = plan.threads if plan.rows > 1 or plan.cluster > 1 else -(-n // (4 * 8 * 32)) * 32
    y = torch.full((len(x), threads * plan.cluster), math.nan, device="cuda")
    built(operator, plan)(x, y)
    wanted = (x.double().sum(1) if operator == "SUM" else x.amax(1).double())[:, None].expand_as(y)
    assert torch.allclose(y.double(), wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.hopper
def test_a_sum_has_the_same_bits_each_time(built):
    import torch

    plan = PLANS["cluster of 16"]
    reduce = built("SUM", plan)
    x = torch.randn(40, 8192, device="cuda")
    results = [torch.empty(40, plan.threads * plan.cluster, device="cuda") for _ in range(50)]
    for y in results:
        reduce(x, y)
    assert all(torch.equal(y, results[0]) for y in results)
