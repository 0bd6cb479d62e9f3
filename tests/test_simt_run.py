"""Programs on the Model: row sums at each level, dtypes, speed, and that neither torch nor the DSL is needed."""

import inspect
import struct
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from quack_lite import simt

ROOT = Path(__file__).parents[1]


def thread_sum(b, x, y, n):
    row = b.ctaid * b.ntid + b.tid
    total = np.float32(0)
    for j in range(n):
        total = total + b.ld_global(x, (row, j))
    b.st_global(y, row, total)


def warp_sum(b, x, y, n):
    total = np.float32(0)
    for j in range(0, n, 32):
        total = total + b.ld_global(x, (b.ctaid, j + b.laneid), where=j + b.laneid < n, fill=0)
    for mask in (16, 8, 4, 2, 1):
        total = total + b.shfl_bfly(total, mask)
    b.st_global(y, b.ctaid, total, where=b.laneid == 0)


def block_sum(b, x, y, n):
    s = b.shared(32, "float32")
    total = b.ld_global(x, (b.ctaid, b.tid), where=b.tid < n, fill=0)
    for mask in (16, 8, 4, 2, 1):
        total = total + b.shfl_bfly(total, mask)
    b.st_shared(s, b.warpid, total, where=b.laneid == 0)
    b.bar_sync()
    total = b.ld_shared(s, b.laneid, where=b.laneid < b.ntid // 32, fill=0)
    for mask in (16, 8, 4, 2, 1):
        total = total + b.shfl_bfly(total, mask)
    b.st_global(y, b.ctaid, total, where=b.tid == 0)


def cluster_sum(b, x, y, n):
    s, m = b.shared(b.ranks, "float32"), b.mbarrier(1)
    m.expect_tx(4 * b.ranks, where=b.tid == 0)
    m.arrive(where=b.tid == 0)
    b.cluster_arrive()
    total = b.ld_global(x, b.ctaid * n + b.tid, where=b.tid < n, fill=0)
    for mask in (16, 8, 4, 2, 1):
        total = total + b.shfl_bfly(total, mask)
    b.cluster_wait()
    b.st_async(s, b.tid, b.rank, total, m, where=b.tid < b.ranks)
    m.wait(0)
    b.st_global(y, b.ctaid, sum(b.ld_shared(s, k) for k in range(b.ranks)), where=b.tid == 0)


@pytest.mark.parametrize(
    "program, n, launch",
    [
        (thread_sum, 37, {"grid": 2, "block": 32}),
        (warp_sum, 100, {"grid": 64, "block": 32}),
        (block_sum, 100, {"grid": 64, "block": 128}),
        (cluster_sum, 25, {"grid": 256, "block": 32, "cluster": 4}),
    ],
    ids=["thread", "warp", "block", "cluster"],
)
@pytest.mark.parametrize("order", [None, 5])
def test_a_row_sum_at_each_level_is_right_and_short(program, n, launch, order):
    ranks = launch.get("cluster", 1)
    x = np.random.default_rng(0).integers(-9, 10, (64, n * ranks)).astype(np.float32)
    did = simt.run(program, x, simt.empty(64 * ranks, "float32"), n, order=order, **launch)
    assert did.ok, did.reports
    assert (did.outputs[0] == x.sum(1).repeat(ranks)).all()
    assert len(inspect.getsource(program).splitlines()) - 1 <= 12


def warp_reduce(b, v, combine):
    for mask in (16, 8, 4, 2, 1):
        v = combine(v, b.shfl_bfly(v, mask))
    return v


def block_reduce(b, v, combine, identity):
    s = b.shared(32, "float32")
    b.st_shared(s, b.warpid, warp_reduce(b, v, combine), where=b.laneid == 0)
    b.bar_sync()
    return warp_reduce(b, b.ld_shared(s, b.laneid, where=b.laneid < b.ntid // 32, fill=identity), combine)


def softmax(b, x, y, n):
    step = 4 * b.ntid
    tiles = [b.ld_global(x, (b.ctaid, j + 4 * b.tid), vec=4) for j in range(0, n, step)]
    highest = block_reduce(b, np.max([tile.max(1) for tile in tiles], axis=0), np.maximum, -np.inf)
    powers = [np.exp(tile - highest[:, None]) for tile in tiles]
    total = block_reduce(b, sum(power.sum(1) for power in powers), np.add, 0)
    for j, power in zip(range(0, n, step), powers, strict=True):
        b.st_global(y, (b.ctaid, j + 4 * b.tid), power / total[:, None])


def best_of_three(work):
    times = []
    for _ in range(3):
        start = time.perf_counter()
        did = work()
        times.append(time.perf_counter() - start)
    return did, min(times)


def test_a_softmax_of_8_rows_of_4096_takes_less_than_a_fifth_of_a_second():
    x = np.random.default_rng(0).standard_normal((8, 4096), dtype=np.float32)
    did, seconds = best_of_three(lambda: simt.run(softmax, x, simt.empty(x.shape, "float32"), 4096, grid=8, block=256))
    powers = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    assert did.ok and np.abs(did.outputs[0] - powers / powers.sum(1, keepdims=True)).max() < 1e-8
    assert did.total().bytes_moved == 2 * x.nbytes
    assert seconds < 0.2


def test_a_sum_of_65536_over_16_ctas_takes_less_than_a_second():
    def program(b, x, y):
        s, m = b.shared(b.ranks, "float32"), b.mbarrier(1)
        m.expect_tx(4 * b.ranks, where=b.tid == 0)
        m.arrive(where=b.tid == 0)
        b.cluster_arrive()
        first = (b.ctaid * b.ntid + b.tid) * 16
        total = block_reduce(b, sum(b.ld_global(x, first + j, vec=4).sum(1) for j in (0, 4, 8, 12)), np.add, 0)
        b.cluster_wait()
        b.st_async(s, b.tid, b.rank, total, m, where=b.tid < b.ranks)
        m.wait(0)
        total = warp_reduce(b, b.ld_shared(s, b.laneid, where=b.laneid < b.ranks, fill=0), np.add)
        b.st_global(y, 0, total, where=(b.tid == 0) & (b.rank == 0))

    x = np.random.default_rng(0).integers(-9, 10, 65536).astype(np.float32)
    did, seconds = best_of_three(lambda: simt.run(program, x, simt.empty(1, "float32"), grid=16, block=256, cluster=16))
    assert did.ok and did.outputs[0] == [x.sum()]
    assert seconds < 1


def test_float16_is_rounded_as_struct_packs_it():
    bits = np.random.default_rng(0).integers(0, 2**32, 20000, dtype=np.uint32)
    values = np.concatenate([bits.view(np.float32), np.random.default_rng(1).normal(0, 1, 20000).astype(np.float32)])
    values = values[np.abs(values) < 65504]
    expected = [struct.unpack("e", struct.pack("e", value))[0] for value in values.tolist()]
    np.testing.assert_array_equal(simt.rounded(values, "float16"), expected)
    assert simt.rounded(np.float32(65520), "float16") == np.inf


def test_bfloat16_is_rounded_as_torch_rounds_it():
    torch = pytest.importorskip("torch")
    high = np.arange(2**16, dtype=np.uint32) << 16
    bits = np.concatenate([high | low for low in (0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF)])
    values = bits.astype(np.uint32).view(np.float32)
    expected = torch.from_numpy(values).bfloat16().float().numpy()
    np.testing.assert_array_equal(simt.rounded(values, "bfloat16"), expected)
    assert simt.rounded(1 + 2**-8, "bfloat16") == 1 and simt.rounded(1 + 3 * 2**-8, "bfloat16") == 1 + 2**-6


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int32", "int64"])
def test_every_dtype_is_loaded_exactly_and_rounded_when_stored(dtype):
    def program(b, x, y):
        v = b.ld_global(x, b.tid)
        b.st_global(y, b.tid, v + v // 3 if v.dtype.kind == "i" else v / np.float32(3))

    x = np.arange(32) * (10**12 if dtype == "int64" else 7)
    did = simt.run(program, simt.tensor(x, dtype), simt.empty(32, dtype), grid=1, block=32)
    given = did.arrays[0]
    held = given + given // 3 if given.dtype.kind == "i" else given.astype(np.float32) / np.float32(3)
    np.testing.assert_array_equal(did.outputs[0], simt.rounded(held, dtype))
    assert did.outputs[0].dtype == ("float32" if dtype == "bfloat16" else dtype)


def test_arrays_are_copied_and_what_a_program_made_of_them_is_given_back():
    def program(b, x):
        b.st_global(x, b.tid, 2 * b.ld_global(x, b.tid))

    x = np.arange(32, dtype=np.int32)
    did = simt.run(program, x, grid=1, block=32)
    assert did.outputs == () and (did.arrays[0] == 2 * np.arange(32)).all() and (x == np.arange(32)).all()
    with pytest.raises(ValueError, match="x is float64: the model has float32"):
        simt.run(program, x.astype(np.float64), grid=1, block=32)


def test_shuffles_give_what_ptx_says():
    def program(b, y):
        b.st_global(y, b.tid, b.shfl_bfly(b.tid, 5))
        b.st_global(y, 64 + b.tid, b.shfl_down(b.tid, 8))
        b.st_global(y, 128 + b.tid, b.shfl_idx(b.tid, b.laneid // 2 + 32))

    did = simt.run(program, simt.empty((3, 64), "int64"), grid=1, block=64)
    lane, warp = np.arange(64) % 32, np.arange(64) // 32 * 32
    assert (did.outputs[0][0] == warp + (lane ^ 5)).all()
    assert (did.outputs[0][1] == warp + np.where(lane < 24, lane + 8, lane)).all()
    assert (did.outputs[0][2] == warp + lane // 2).all()


def test_a_butterfly_ends_at_the_warp():
    def program(b, y):
        b.st_global(y, b.tid, b.shfl_bfly(b.tid, 32))

    with pytest.raises(ValueError, match="mask 32: a shuffle ends at the warp"):
        simt.run(program, simt.empty(64, "int64"), grid=1, block=64)


def test_a_lane_outside_where_gets_the_fill_or_poison():
    def program(b, x, y):
        b.st_global(y, b.tid, b.ld_global(x, b.tid, where=b.tid < 8, fill=-1))
        b.st_global(y, 32 + b.tid, b.ld_global(x, b.tid, where=b.tid < 8))

    did = simt.run(program, np.arange(32, dtype=np.int32), simt.empty((2, 32), "int32"), grid=1, block=32)
    assert did.ok and did.outputs[0][0].tolist() == [*range(8), *[-1] * 24]
    assert did.outputs[0][1].tolist() == [*range(8), *[simt.POISON_INT] * 24]


def test_shared_arrays_lie_apart_and_each_cta_has_its_own():
    def program(b, y):
        s, t = b.shared(33, "float32"), b.shared((2, 32), "int32")
        b.st_shared(s, b.tid, 1.0)
        b.st_shared(t, (b.rank, b.tid), b.ctaid)
        b.st_global(y, (b.ctaid, b.tid), b.ld_shared(t, (b.rank, b.tid)))

    did = simt.run(program, simt.empty((4, 32), "int64"), grid=4, block=32, cluster=2)
    assert did.ok and (did.outputs[0] == np.arange(4)[:, None]).all()
    first, second = (event for event in did.events[:2])
    assert (first.array, second.array) == ("s", "t")
    assert first.address[0] == 0 and second.address[0] == 256 and second.address[32] == 256 + 128


def test_there_are_at_most_25_verbs_and_all_are_on_the_card():
    machine = [name for name, what in vars(simt.Block).items() if hasattr(what, "__wrapped__")]
    objects = [name for name, what in vars(simt.MBarrier).items() if hasattr(what, "__wrapped__")]
    names = [verb.name for verb in simt.CARD]
    assert sorted(machine + objects) == sorted(names) and len(names) <= 25
    assert all(f"{verb.name} " in simt.card() and verb.ptx in simt.card() for verb in simt.CARD)


def test_the_card_names_what_the_dsl_has():
    arch = pytest.importorskip("cutlass.cute").arch
    from cutlass.cute.nvgpu import cpasync

    for verb in simt.CARD:
        if "[" not in verb.cute and "Smem" not in verb.cute:
            assert hasattr(arch, verb.cute) or hasattr(cpasync, verb.cute), verb


KERNEL = """@cute.kernel
def block_sum_kernel(mX: cute.Tensor, mY: cute.Tensor):
    row, _, _ = cute.arch.block_idx()
    thread, _, _ = cute.arch.thread_idx()
    lane, warp = cute.arch.lane_idx(), cute.arch.warp_idx()
    sW = SmemAllocator().allocate_tensor(Float32, cute.make_layout(32))
    total = Float32(0)
    if thread < mX.shape[1]:
        total = mX[row, thread]
    for mask in (16, 8, 4, 2, 1):
        total += cute.arch.shuffle_sync_bfly(total, mask)
    if lane == 0:
        sW[warp] = total
    cute.arch.barrier()
    total = Float32(0)
    if lane < 4:
        total = sW[lane]
    for mask in (16, 8, 4, 2, 1):
        total += cute.arch.shuffle_sync_bfly(total, mask)
    if thread == 0:
        mY[row] = total
"""


def test_a_program_stands_beside_its_kernel_verb_by_verb():
    sides = simt.side_by_side(block_sum, KERNEL)
    left = [line for line, _ in sides.pairs if line]
    right = [line for _, line in sides.pairs if line]
    assert left == inspect.getsource(block_sum).splitlines() and right == KERNEL.splitlines()
    beside = {(one.split("(")[0].split(".")[-1], other.strip()) for one, other in sides.pairs if one and other}
    assert {
        ("shared", "sW = SmemAllocator().allocate_tensor(Float32, cute.make_layout(32))"),
        ("ld_global", "total = mX[row, thread]"),
        ("shfl_bfly", "total += cute.arch.shuffle_sync_bfly(total, mask)"),
        ("st_shared", "sW[warp] = total"),
        ("bar_sync", "cute.arch.barrier()"),
        ("ld_shared", "total = sW[lane]"),
        ("st_global", "mY[row] = total"),
    } <= beside
    assert "| " in repr(sides) and repr(sides).count("\n") == len(sides.pairs) - 1
    assert sides._repr_html_().count("<tr>") == len(sides.pairs)
    assert "&lt;" in sides._repr_html_() and "mX[row, thread]" in sides._repr_html_()


def test_neither_torch_nor_the_dsl_is_needed():
    script = (
        "import sys\n"
        "sys.modules |= dict.fromkeys(['torch', 'cutlass', 'matplotlib', 'IPython'])\n"
        "import numpy as np\n"
        "from quack_lite import simt\n"
        "def copy(b, x, y):\n"
        "    b.st_global(y, b.tid, b.ld_global(x, b.tid))\n"
        "did = simt.run(copy, np.ones(32, np.float32), simt.empty(32, 'float32'), grid=1, block=32)\n"
        "assert did.ok and did.outputs[0].sum() == 32\n"
        "import quack_lite.simt.card, quack_lite.simt.patterns\n"
    )
    subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=True)
