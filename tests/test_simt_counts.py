"""What the Model counts, against numbers worked out by hand."""

import numpy as np
import pytest

from quack_lite import simt


def loaded(index, dtype="float32", vec=1, where=lambda b: None):
    """The counts of one warp's load from global memory."""

    def program(b, x):
        b.ld_global(x, index(b), vec=vec, where=where(b))

    return simt.run(program, simt.tensor(np.zeros(4096, np.int8), dtype), grid=1, block=32).total("ld.global")


@pytest.mark.parametrize(
    "index, dtype, vec, sectors, asked",
    [
        (lambda b: b.tid, "float32", 1, 4, 128),
        (lambda b: b.tid, "bfloat16", 1, 2, 64),
        (lambda b: b.tid, "int64", 1, 8, 256),
        (lambda b: b.tid + 1, "float32", 1, 5, 128),
        (lambda b: b.tid * 2, "float32", 1, 8, 128),
        (lambda b: b.tid * 4, "float32", 1, 16, 128),
        (lambda b: b.tid * 32, "float32", 1, 32, 128),
        (lambda b: b.tid * 3, "float32", 1, 12, 128),
        (lambda b: b.tid * 2, "float32", 2, 8, 256),
        (lambda b: b.tid * 4, "float32", 4, 16, 512),
        (lambda b: b.tid * 8, "bfloat16", 8, 16, 512),
        (lambda b: 0, "float32", 1, 1, 128),
        (lambda b: b.tid ^ 5, "float32", 1, 4, 128),
    ],
    ids=[
        "coalesced",
        "bf16",
        "int64",
        "misaligned",
        "stride_2",
        "stride_4",
        "stride_32",
        "structs_of_3",
        "64_bit",
        "128_bit",
        "128_bit_bf16",
        "one",
        "permuted",
    ],
)
def test_sectors_of_a_warp(index, dtype, vec, sectors, asked):
    counts = loaded(index, dtype, vec)
    assert (counts.requests, counts.sectors, counts.bytes_asked) == (1, sectors, asked)
    assert counts.bytes_moved == 32 * sectors


def test_lanes_left_out_ask_for_nothing():
    assert loaded(lambda b: b.tid, where=lambda b: b.tid < 9) == simt.Counts(1, 2, 36, 64, in_flight=36)
    assert loaded(lambda b: b.tid, where=lambda b: b.tid < 0) == simt.Counts()


@pytest.mark.parametrize(
    "index, dtype, vec, wavefronts, conflicts",
    [
        (lambda b: b.tid, "float32", 1, 1, 0),
        (lambda b: b.tid * 32, "float32", 1, 32, 31),
        (lambda b: b.tid * 33, "float32", 1, 1, 0),
        (lambda b: b.tid * 32 + (b.tid ^ 5), "float32", 1, 1, 0),
        (lambda b: b.tid * 2, "float32", 1, 2, 1),
        (lambda b: 0, "float32", 1, 1, 0),
        (lambda b: b.tid // 16 * 32, "float32", 1, 2, 1),
        (lambda b: b.tid, "float16", 1, 1, 0),
        (lambda b: b.tid * 64, "float16", 1, 32, 31),
        (lambda b: b.tid * 2, "float32", 2, 2, 0),
        (lambda b: b.tid * 4, "float32", 2, 4, 2),
        (lambda b: b.tid * 4, "float32", 4, 4, 0),
        (lambda b: b.tid * 8, "float32", 4, 8, 4),
        (lambda b: b.tid // 2 * 2, "float32", 2, 1, 0),
        (lambda b: 0, "float32", 2, 1, 0),
        (lambda b: b.tid % 16 * 2, "float32", 2, 2, 0),
        (lambda b: b.tid // 2 * 4, "float32", 2, 2, 1),
        (lambda b: (b.tid + 1) // 2 * 2, "float32", 2, 2, 0),
        (lambda b: np.where(b.tid < 31, b.tid // 2, 16) * 2, "float32", 2, 2, 0),
        (lambda b: b.tid // 2 * 4, "float32", 4, 2, 0),
        (lambda b: 0, "float32", 4, 2, 0),
        (lambda b: b.tid % 8 * 4, "float32", 4, 4, 0),
        (lambda b: np.where(b.tid < 16, b.tid // 2, b.tid) * 4, "float32", 4, 3, 0),
        (lambda b: b.tid // 2 * 4, "float16", 4, 1, 0),
    ],
    ids=[
        "row",
        "column",
        "padded",
        "swizzled",
        "stride_2",
        "broadcast",
        "two_words",
        "half_words",
        "half_column",
        "64",
        "64_stride_2",
        "128",
        "128_stride_2",
        "64_pairs_share",
        "64_broadcast",
        "64_halves_share",
        "64_pairs_share_stride_2",
        "64_other_pairs_share",
        "64_all_pairs_but_one_share",
        "128_pairs_share",
        "128_broadcast",
        "128_quarters_share",
        "128_pairs_of_half_a_warp_share",
        "64_pairs_share_half_words",
    ],
)
def test_wavefronts_of_a_warp(index, dtype, vec, wavefronts, conflicts):
    def program(b):
        s = b.shared(4096, dtype)
        for i in range(0, 4096, 32):
            b.st_shared(s, i + b.tid, 0)
        b.bar_sync()
        b.ld_shared(s, index(b), vec=vec)

    counts = simt.run(program, grid=1, block=32).total("ld.shared")
    assert (counts.requests, counts.wavefronts, counts.conflicts) == (1, wavefronts, conflicts)
    assert counts.sectors == counts.bytes_moved == 0


def test_a_warp_that_asks_for_half_takes_half():
    def program(b):
        s = b.shared(128, "float32")
        b.st_shared(s, b.tid * 4, np.zeros((32, 4), np.float32), where=b.tid < 10)

    counts = simt.run(program, grid=1, block=32).total("st.shared")
    assert (counts.wavefronts, counts.conflicts, counts.bytes_asked) == (2, 0, 160)


@pytest.mark.parametrize("vec, wavefronts", [(2, 2), (4, 4)])
def test_stores_to_one_vector_go_through_in_all_parts(vec, wavefronts):
    def program(b):
        s = b.shared(128, "float32")
        b.st_shared(s, 0, np.zeros((32, vec), np.float32))

    counts = simt.run(program, grid=1, block=32).total("st.shared")
    assert (counts.wavefronts, counts.conflicts) == (wavefronts, 0)


def test_a_lane_that_reads_nothing_does_not_share_with_its_neighbour():
    def program(b):
        s = b.shared(128, "float32")
        b.st_shared(s, b.tid * 4, np.zeros((32, 4), np.float32))
        b.bar_sync()
        b.ld_shared(s, b.tid // 2 * 2, vec=2, where=b.tid < 31)
        b.ld_shared(s, b.tid // 2 * 2, vec=2, where=b.tid < 30)

    one_alone, pairs = simt.run(program, grid=1, block=32).requests(verb="ld.shared")
    assert (one_alone.wavefronts, pairs.wavefronts) == (2, 1)


def test_each_warp_of_a_block_has_its_own_parts():
    def program(b):
        s = b.shared(256, "float32")
        b.st_shared(s, b.tid * 4, np.zeros((64, 4), np.float32))
        b.bar_sync()
        b.ld_shared(s, np.where(b.warpid == 0, b.laneid // 2, b.laneid) * 2, vec=2)

    did = simt.run(program, grid=1, block=64)
    assert [did.requests(verb="ld.shared", warp=warp)[0].wavefronts for warp in (0, 1)] == [1, 2]
    assert (did.total("ld.shared").wavefronts, did.total("ld.shared").conflicts) == (3, 0)


def test_shuffles_count_words_and_barriers_count_warps():
    def program(b):
        b.shfl_bfly(b.tid, 1)
        b.shfl_idx(np.zeros((64, 3), np.float32), 0)
        b.bar_sync()
        b.bar_warp_sync()

    did = simt.run(program, grid=3, block=64)
    assert did.total("shfl.sync.bfly").shuffles == 3 * 2 * 2
    assert did.total("shfl.sync.idx").shuffles == 3 * 2 * 3
    assert did.total("bar.sync").barriers == did.total("bar.warp.sync").barriers == 6


def test_only_what_leaves_the_cta_is_distributed_shared_memory():
    def program(b, y):
        s, m = b.shared(b.ranks, "int64"), b.mbarrier(1)
        m.expect_tx(8 * b.ranks, where=b.tid == 0)
        m.arrive(where=b.tid == 0)
        b.cluster_arrive()
        b.cluster_wait()
        b.st_async(s, b.tid, b.rank, b.ctaid, m, where=b.tid < b.ranks)
        m.wait(0)
        b.cluster_arrive()
        b.cluster_wait()
        v = b.ld_peer(s, (b.rank + 1) % b.ranks, b.tid, where=b.tid < b.ranks)
        b.cluster_arrive()
        b.cluster_wait()
        b.st_global(y, b.rank * b.ranks + b.tid, v, where=b.tid < b.ranks)

    did = simt.run(program, simt.empty((4, 4), "int64"), grid=4, block=32, cluster=4)
    assert did.ok and (did.outputs[0] == np.arange(4)).all()
    assert did.total("st.async").dsmem_bytes == 4 * 3 * 8
    assert did.total("ld.shared::cluster").dsmem_bytes == 4 * 4 * 8


def test_loads_overlap_until_the_next_verb_that_is_none():
    def one_by_one(b, x, y):
        for k in range(4):
            v = b.ld_global(x, 64 * k + b.tid)
            b.st_global(y, 64 * k + b.tid, v)

    def loads_first(b, x, y):
        values = [b.ld_global(x, 64 * k + b.tid) for k in range(4)]
        for k in range(4):
            b.st_global(y, 64 * k + b.tid, values[k])

    found = [
        simt.run(program, np.zeros(256, np.float32), simt.empty(256, "float32"), grid=1, block=64)
        for program in (one_by_one, loads_first)
    ]
    assert [did.total().in_flight for did in found] == [256, 1024]
    assert [did.total("st.global").in_flight for did in found] == [0, 0]
    assert found[0].total("ld.global").sectors == found[1].total("ld.global").sectors == 32


def test_copies_are_in_flight_until_their_wait():
    def groups(b, x):
        s = b.shared((3, 32), "float32")
        for k in range(3):
            b.cp_async(s, (k, b.tid), x, 32 * k + b.tid)
            b.commit_group()
        b.wait_group(1)
        b.bar_sync()

    def bulk(b, x):
        s, m = b.shared(96, "float32"), b.mbarrier(1)
        m.expect_tx(384, where=b.tid == 0)
        m.arrive(where=b.tid == 0)
        b.bulk_load(s, x, 96, m, where=b.tid == 0)
        b.bar_sync()
        m.wait(0)

    did = simt.run(groups, np.zeros(96, np.float32), grid=1, block=32)
    assert did.ok and did.total("cp.async").in_flight == 384 and did.total("bar.sync").in_flight == 128
    did = simt.run(bulk, np.zeros(96, np.float32), grid=1, block=32)
    assert did.ok and did.total("cp.async.bulk") == simt.Counts(1, 12, 384, 384, in_flight=384)
    assert did.total("bar.sync").in_flight == 384 and did.total("mbarrier.try_wait").in_flight == 0


def test_counts_stand_by_line_and_verb():
    def program(b, x, y):
        b.st_global(y, b.tid, b.ld_global(x, b.tid))
        b.st_global(y, b.tid, 1.0)

    did = simt.run(program, np.zeros(32, np.float32), simt.empty(32, "float32"), grid=1, block=32)
    first = program.__code__.co_firstlineno
    found = [(line.number - first, verb) for line, verb in did.counts]
    assert found == [(1, "ld.global"), (1, "st.global"), (2, "st.global")]
    assert [(line.number - first, counts.sectors) for line, counts in did.by_line().items()] == [(1, 8), (2, 4)]
    assert did.total() == simt.Counts(3, 12, 384, 384, in_flight=128)
    shown = f"{first + 1:4}  b.st_global(y, b.tid, b.ld_global(x, b.tid))\n      requests 2, sectors 8"
    assert repr(did).startswith(shown)


def test_an_event_names_the_mbarrier_that_it_uses_or_that_counts_it():
    def program(b, x):
        s = b.shared((2, 32), "float32")
        first, second = b.mbarrier(1), b.mbarrier(1)
        for m in (first, second):
            m.expect_tx(128, where=b.tid == 0)
            m.arrive(where=b.tid == 0)
        b.cluster_arrive()
        b.cluster_wait()
        b.bulk_load(s, x, 32, second, where=b.tid == 0)
        b.st_async(s, b.rank, (1, b.tid), 1.0, first)
        first.wait(0)
        second.wait(0)

    did = simt.run(program, np.zeros(32, np.float32), grid=2, block=32, cluster=2)
    assert did.ok
    assert [(event.verb, event.array, event.mbarrier) for event in did.events] == [
        ("mbarrier.expect_tx", "first", 0),
        ("mbarrier.arrive", "first", 0),
        ("mbarrier.expect_tx", "second", 1),
        ("mbarrier.arrive", "second", 1),
        ("barrier.cluster.arrive", "", -1),
        ("barrier.cluster.wait", "", -1),
        ("cp.async.bulk", "x", 1),
        ("st.async", "s", 0),
        ("mbarrier.try_wait", "first", 0),
        ("mbarrier.try_wait", "second", 1),
    ]


def test_a_request_shows_which_lane_touches_what():
    def program(b, x, y):
        s = b.shared((64, 33), "float32")
        v = b.ld_global(x, b.ctaid * 64 + 2 * b.tid, vec=2, where=b.laneid < 20)
        b.st_shared(s, (b.tid, 1), v[:, 0], where=b.laneid < 20)
        b.st_global(y, 0, 1.0)

    did = simt.run(program, np.arange(256, dtype=np.float32), simt.empty(1, "float32"), grid=2, block=64, cluster=2)
    load, store, last = did.requests(cta=1, warp=1)
    assert (load.verb, load.space, load.array, load.cta, load.warp) == ("ld.global", "global", "x", 1, 3)
    assert load.lanes.tolist() == list(range(20)) and load.width == 8
    assert load.address.tolist() == [4 * (64 + 2 * (32 + lane)) for lane in range(20)]
    assert load.sector_ids.tolist() == [16, 17, 18, 19, 20] and load.sectors == 5 and load.bytes_moved == 160
    assert load.values.shape == (20, 2) and load.values[0].tolist() == [128, 129]
    assert store.array == "s" and store.banks[:3].tolist() == [[1], [2], [3]] and store.wavefronts == 1
    assert last.array == "y" and did.requests(verb="ld.global", cta=0, warp=1)[0].address[0] == 256
    assert [found.verb for found in did.requests(line=store.line.number)] == ["st.shared"]
