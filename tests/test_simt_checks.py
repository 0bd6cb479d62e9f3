"""Each check of the Model, by a program that is wrong in that one way, and the same without the fault.

`right` is False in the wrong one: the line that it switches is the fault. What the right one returns does not depend
on the order of warps and CTAs.
"""

import inspect
from typing import NamedTuple

import numpy as np
import pytest

from quack_lite import simt

N = 128


def numbers():
    return np.arange(1, N + 1, dtype=np.float32)


def past_the_end(b, right, x, y):
    i = b.ctaid * b.ntid + b.tid
    inside = i < (N if right else N + 1)
    b.st_global(y, i, b.ld_global(x, i, where=inside), where=inside)


def odd_start(b, right, x, y):
    i = b.tid * 4 + (0 if right else 1)
    total = b.ld_global(x, i, vec=4, where=b.tid < 31, fill=0)
    b.st_global(y, b.tid * 4, total, where=b.tid < 31)
    b.st_global(y, 124 + b.tid, b.ld_global(x, 124 + b.tid, where=b.tid < 4), where=b.tid < 4)


def half_filled(b, right, x, y):
    s = b.shared(N, "float32")
    b.st_shared(s, b.tid, b.ld_global(x, b.tid), where=b.tid < (N if right else 64))
    b.bar_sync()
    b.st_global(y, b.tid, b.ld_shared(s, b.tid))


def reversed_by_block(b, right, x, y):
    s = b.shared(N, "float32")
    b.st_shared(s, b.tid, b.ld_global(x, b.tid))
    if right:
        b.bar_sync()
    b.st_global(y, b.tid, b.ld_shared(s, N - 1 - b.tid))


def neighbours_of_a_warp(b, right, x, y):
    s = b.shared(N, "float32")
    b.st_shared(s, b.tid, b.ld_global(x, b.tid))
    if right:
        b.bar_warp_sync()
    b.st_global(y, b.tid, b.ld_shared(s, b.tid ^ 1))


def buffer_taken_again(b, right, x, y):
    s = b.shared(N, "float32")
    b.st_shared(s, b.tid, b.ld_global(x, b.tid))
    b.bar_sync()
    first = b.ld_shared(s, N - 1 - b.tid)
    if right:
        b.bar_sync()
    b.st_shared(s, b.tid, -first)
    b.bar_sync()
    b.st_global(y, b.tid, b.ld_shared(s, b.tid))


def two_writers_of_shared(b, right, x, y):
    s = b.shared(N, "float32")
    v = b.ld_global(x, b.tid)
    b.st_shared(s, b.tid if right else b.tid // 2 * 2, v)
    b.bar_sync()
    b.st_global(y, b.tid, b.ld_shared(s, b.tid if right else b.tid // 2 * 2))


def through_global(b, right, x, y):
    i = b.ctaid * b.ntid + b.tid
    b.st_global(y, i, b.ld_global(x, i))
    b.st_global(y, i, b.ld_global(y, i if right else b.tid))


def in_place(b, right, x, y):
    i = b.ctaid * b.ntid + b.tid
    source = i if right else N - 1 - i
    v = b.ld_global(x, source)
    b.st_global(x, i, v)
    b.st_global(y, i, v)


def some_reach(b, right, x, y):
    b.bar_sync(where=None if right else b.tid < 96)
    b.st_global(y, b.tid, b.ld_global(x, b.tid))


def bulk(b, right, x, y):
    s, m = b.shared(N, "float32"), b.mbarrier(1)
    b.bar_sync()
    m.expect_tx(4 * N if right else 4 * N + 16, where=b.tid == 0)
    m.arrive(where=b.tid == 0)
    b.bulk_load(s, x, N, m, where=b.tid == 0)
    m.wait(0)
    b.st_global(y, b.tid, b.ld_shared(s, b.tid))


def bulk_of_too_few(b, right, x, y):
    s, m = b.shared(N, "float32"), b.mbarrier(1)
    b.bar_sync()
    m.expect_tx(4 * N if right else 4 * N - 16, where=b.tid == 0)
    m.arrive(where=b.tid == 0)
    b.bulk_load(s, x, N, m, where=b.tid == 0)
    m.wait(0)
    b.st_global(y, b.tid, b.ld_shared(s, b.tid))


def nobody_arrives(b, right, x, y):
    s, m = b.shared(N, "float32"), b.mbarrier(1 if right else 2)
    b.bar_sync()
    m.expect_tx(4 * N, where=b.tid == 0)
    m.arrive(where=b.tid == 0)
    b.bulk_load(s, x, N, m, where=b.tid == 0)
    m.wait(0)
    b.st_global(y, b.tid, b.ld_shared(s, b.tid))


def too_many_arrive(b, right, x, y):
    m = b.mbarrier(1)
    b.bar_sync()
    m.arrive(where=b.tid == 0 if right else b.tid < 2)
    m.wait(0)
    b.st_global(y, b.tid, b.ld_global(x, b.tid))


def bulk_not_waited(b, right, x, y):
    s, m = b.shared(N, "float32"), b.mbarrier(1)
    b.bar_sync()
    m.expect_tx(4 * N, where=b.tid == 0)
    m.arrive(where=b.tid == 0)
    b.bulk_load(s, x, N, m, where=b.tid == 0)
    m.wait(0 if right else 1)
    v = b.ld_shared(s, b.tid)
    m.wait(0)
    b.st_global(y, b.tid, v)


def mbarrier_too_early(b, right, x, y):
    m = b.mbarrier(N)
    if right:
        b.bar_sync()
    m.arrive()
    m.wait(0)
    b.st_global(y, b.tid, b.ld_global(x, b.tid))


def copy_group(b, right, x, y):
    s = b.shared(N, "float32")
    b.cp_async(s, b.tid, x, b.tid)
    b.commit_group()
    b.wait_group(0 if right else 1)
    b.st_global(y, b.tid, b.ld_shared(s, b.tid))


def copy_group_of_others(b, right, x, y):
    s = b.shared(N, "float32")
    b.cp_async(s, b.tid, x, b.tid)
    b.commit_group()
    b.wait_group(0)
    if right:
        b.bar_sync()
    b.st_global(y, b.tid, b.ld_shared(s, N - 1 - b.tid))


def left_early(b, right, x, y):
    s, m = b.shared(64, "float32"), b.mbarrier(1)
    m.expect_tx(4 * 64, where=b.tid == 0)
    m.arrive(where=b.tid == 0)
    b.cluster_arrive()
    v = b.ld_global(x, b.ctaid * 64 + b.tid)
    b.cluster_wait()
    b.st_async(s, 1 - b.rank, b.tid, v, m)
    if right:
        m.wait(0)
    b.st_global(y, b.ctaid * 64 + b.tid, v)


def read_of_one_who_left(b, right, x, y):
    s = b.shared(64, "float32")
    b.st_shared(s, b.tid, b.ld_global(x, b.ctaid * 64 + b.tid))
    b.cluster_arrive()
    b.cluster_wait()
    b.st_global(y, b.ctaid * 64 + b.tid, b.ld_peer(s, 1 - b.rank, b.tid))
    if right:
        b.cluster_arrive()
        b.cluster_wait()


def sent_too_early(b, right, x, y):
    s, m = b.shared(64, "float32"), b.mbarrier(1)
    m.expect_tx(4 * 64, where=b.tid == 0)
    m.arrive(where=b.tid == 0)
    if right:
        b.cluster_arrive()
        b.cluster_wait()
    else:
        b.bar_sync()
    b.st_async(s, 1 - b.rank, b.tid, b.ld_global(x, b.ctaid * 64 + b.tid), m)
    m.wait(0)
    b.st_global(y, b.ctaid * 64 + b.tid, b.ld_shared(s, b.tid))


def nobody_arrived_at_the_cluster(b, right, x, y):
    if right:
        b.cluster_arrive()
    b.cluster_wait()
    b.st_global(y, b.ctaid * b.ntid + b.tid, b.ld_global(x, b.ctaid * b.ntid + b.tid))


def two_owners(b, right, x, y):
    i = b.ctaid * b.ntid + b.tid
    v = b.ld_global(x, i)
    b.st_global(y, i, v)
    b.st_global(y, i if right else N - 1 - i, v)


def a_lane_left_out(b, right, x, y):
    v = b.ld_global(x, b.tid)
    swapped = b.shfl_bfly(v, 1, where=None if right else b.laneid != 3)
    b.st_global(y, b.tid, swapped)


def never_written(b, right, x, y):
    b.st_global(y, b.tid, b.ld_global(x, b.tid), where=b.tid < (N if right else N - 1))


class Case(NamedTuple):
    """says: words of the sentence.  result: of numbers(), from the right program."""

    program: object
    kind: str
    says: str
    result: object
    ctas: int = 1
    cluster: int = 1


def same(x):
    return x


def backwards(x):
    return x[::-1]


def pairs(x):
    return x.reshape(-1, 2)[:, ::-1].reshape(-1)


def halves(x):
    return np.roll(x, 64)


CASES = [
    Case(past_the_end, "out of bounds", "CTA 2, warp 0, lane 0 asks for element 128 of x, which has 128", same, ctas=3),
    Case(odd_start, "misaligned", "16 bytes of x at byte 4, and 16 does not divide it", same),
    Case(half_filled, "read before written", "CTA 0, warp 2, lane 0 (and 63 more) reads s[64]", same),
    Case(reversed_by_block, "race", "reads s[127], and CTA 0, warp 3, lane 31 wrote it", backwards),
    Case(neighbours_of_a_warp, "race", "b.bar_warp_sync() between the lines", pairs),
    Case(buffer_taken_again, "race", "overwrites s[0], and CTA 0, warp 3, lane 31 read it", lambda x: -x[::-1]),
    Case(two_writers_of_shared, "race", "overwrites s[0], and CTA 0, warp 0, lane 1 wrote it", same),
    Case(through_global, "race between CTAs", "nothing orders CTAs of different clusters", same, ctas=2),
    Case(in_place, "race between CTAs", "reads x[63], and CTA 0, warp 1, lane 31 wrote it", same, ctas=2),
    Case(some_reach, "barrier not reached", "CTA 0, warp 3, lane 0 (and 31 more) never reaches bar_sync", same),
    Case(bulk, "mbarrier waits", "it expects 528 bytes and 512 came", same),
    Case(bulk_of_too_few, "mbarrier overfull", "m of CTA 0 expects 496 bytes in a phase and gets 512", same),
    Case(nobody_arrives, "mbarrier waits", "1 of 2 arrivals came", same),
    Case(too_many_arrive, "mbarrier overfull", "gets 2 arrivals and waits for 1", same),
    Case(bulk_not_waited, "not waited", "reads s[0], which cp.async.bulk of line", same),
    Case(mbarrier_too_early, "race", "uses m, and CTA 0, warp 0, lane 0 initialised it", same),
    Case(copy_group, "not waited", "reads s[0], which cp.async of line", same),
    Case(copy_group_of_others, "race", "b.bar_sync() between the lines", backwards),
    Case(left_early, "peer ended", "lane 0 (and 63 more) writes to a CTA that may have ended", same, 2, 2),
    Case(read_of_one_who_left, "peer ended", "reads from a CTA that may have ended", halves, 2, 2),
    Case(sent_too_early, "peer not started", "writes to s of rank 1, a CTA that may not have started", halves, 2, 2),
    Case(nobody_arrived_at_the_cluster, "barrier not reached", "never reaches cluster_arrive", same, 2, 2),
    Case(two_owners, "written twice", "wrote another value there", same, 2),
    Case(a_lane_left_out, "lane not taking part", "lane 2 (and 3 more) takes a value from lane 3", pairs),
    Case(never_written, "never written", "y has 1 element that nobody wrote, the first at index 127", same),
]
EVERY_CASE = pytest.mark.parametrize("case", CASES, ids=lambda case: case.program.__name__)


def run(case, right, order=None):
    block = N // (case.ctas if case.ctas != 3 else 2)
    return simt.run(
        case.program,
        right,
        numbers(),
        simt.empty(N, "float32"),
        grid=case.ctas,
        block=block,
        cluster=case.cluster,
        order=order,
    )


@EVERY_CASE
@pytest.mark.parametrize("order", [None, 0, 1])
def test_the_right_program_is_clean_and_right_in_any_order(case, order):
    did = run(case, True, order)
    assert did.reports == [] and not did.hung
    np.testing.assert_array_equal(did.outputs[0], case.result(numbers()))


@EVERY_CASE
def test_the_wrong_program_is_wrong_in_that_one_way(case):
    did = run(case, False)
    assert {report.kind for report in did.reports} == {case.kind}
    report = did.reports[0]
    assert case.says in report.sentence
    if report.line:
        lines, first = inspect.getsourcelines(case.program)
        assert report.line.file == __file__ and report.line.text == lines[report.line.number - first].strip()


def test_every_check_has_a_case():
    assert {case.kind for case in CASES} == set(simt.KINDS)


HANGS = {some_reach, bulk, bulk_of_too_few, nobody_arrives, nobody_arrived_at_the_cluster}
HARMLESS_HERE = {past_the_end, too_many_arrive, left_early, read_of_one_who_left, mbarrier_too_early}


@EVERY_CASE
def test_the_wrong_program_returns_something_else_or_hangs(case):
    did = run(case, False)
    assert did.hung == (case.program in HANGS)
    if case.program not in HANGS | HARMLESS_HERE:
        assert not np.array_equal(did.outputs[0], case.result(numbers()))


@pytest.mark.parametrize("program", [reversed_by_block, two_writers_of_shared, buffer_taken_again])
def test_the_order_decides_what_a_racing_program_returns(program):
    (case,) = [case for case in CASES if case.program is program]
    assert len({run(case, False, order).outputs[0].tobytes() for order in range(8)}) > 1
    assert {run(case, False, 3).outputs[0].tobytes() for _ in range(3)} == {run(case, False, 3).outputs[0].tobytes()}


def test_in_an_order_a_racing_read_gets_the_old_or_the_new_value():
    def program(b, y):
        s = b.shared(64, "float32")
        b.st_shared(s, b.tid, 1.0)
        b.bar_sync()
        b.st_shared(s, b.tid, 2.0)
        b.st_global(y, b.tid, b.ld_shared(s, 63 - b.tid))

    out = simt.empty(64, "float32")
    seen = [simt.run(program, out, grid=1, block=64, order=order).outputs[0] for order in range(8)]
    assert {tuple(sorted(set(y[:32]))) for y in seen} == {(1.0,), (2.0,)}
    assert all((y[:32] + y[32:][::-1] == 3).all() for y in seen)


def test_reads_need_an_order_before_the_next_copy_into_their_place():
    def program(b, right, x, y):
        s, full, empty = b.shared(64, "float32"), b.mbarrier(1), b.mbarrier(64)
        b.bar_sync()
        for turn in range(2):
            full.expect_tx(256, where=b.tid == 0)
            full.arrive(where=b.tid == 0)
            b.bulk_load(s, x, 64, full, j=64 * turn, where=b.tid == 0)
            full.wait(turn)
            b.st_global(y, 64 * turn + b.tid, b.ld_shared(s, b.tid))
            empty.arrive()
            if right:
                empty.wait(turn, where=b.tid == 0)

    def did(right):
        return simt.run(program, right, numbers(), simt.empty(N, "float32"), grid=1, block=64)

    assert did(True).ok and (did(True).outputs[0] == numbers()).all()
    assert np.isnan(did(False).outputs[0][65:]).all()
    (report,) = did(False).reports
    assert report.kind == "race" and "overwrites s[32], and CTA 0, warp 1, lane 0 read it" in report.sentence


def test_all_readers_count_not_only_the_last():
    """Both warps read s[0], then the first warp once more; a barrier of warps does not cover the second."""

    def program(b, right, x, y):
        s = b.shared(1, "float32")
        b.st_shared(s, 0, 5.0, where=b.tid == 0)
        b.bar_sync()
        v = b.ld_shared(s, 0)
        b.ld_shared(s, 0, where=b.tid < 32)
        if right:
            b.bar_sync()
        else:
            b.bar_warp_sync()
        b.st_shared(s, 0, 6.0, where=b.tid == 0)
        b.st_global(y, b.tid, v)

    out = simt.empty(64, "float32")
    assert simt.run(program, True, numbers(), out, grid=1, block=64).ok
    (report,) = simt.run(program, False, numbers(), out, grid=1, block=64).reports
    assert "CTA 0, warp 0, lane 0 overwrites s[0], and CTA 0, warp 1, lane 31 read it" in report.sentence


def test_a_place_that_a_copy_is_on_its_way_to_is_neither_read_nor_written():
    def program(b, right, x, y):
        s = b.shared(64, "float32")
        b.st_shared(s, b.tid, 5.0)
        b.cp_async(s, b.tid, x, b.tid)
        b.commit_group()
        if right:
            b.wait_group(0)
        v = b.ld_shared(s, b.tid)
        b.st_shared(s, b.tid, v)
        b.st_global(y, b.tid, v)

    did = simt.run(program, True, numbers(), simt.empty(64, "float32"), grid=1, block=64)
    assert did.ok and (did.outputs[0] == numbers()[:64]).all()
    did = simt.run(program, False, numbers(), simt.empty(64, "float32"), grid=1, block=64)
    assert [report.kind for report in did.reports] == ["not waited"] * 2 and np.isnan(did.outputs[0]).all()
    assert " reads s[0]" in did.reports[0].sentence and " overwrites s[0]" in did.reports[1].sentence


def test_an_mbarrier_that_expects_no_bytes_does_not_wait_for_them():
    def program(b, x, y):
        s, m = b.shared(32, "float32"), b.mbarrier(1)
        m.arrive(where=b.tid == 0)
        b.bulk_load(s, x, 32, m, where=b.tid == 0)
        b.bar_sync()
        m.wait(0)
        b.st_global(y, b.tid, b.ld_shared(s, b.tid))

    did = simt.run(program, numbers(), simt.empty(32, "float32"), grid=1, block=32)
    kinds = [report.kind for report in did.reports]
    assert kinds == ["not waited", "not waited", "mbarrier overfull"] and np.isnan(did.outputs[0]).all()
    assert "ends and leaves s[0]" in did.reports[1].sentence
    assert did.reports[2].sentence.startswith("m of CTA 0 expects 0 bytes in a phase and gets 128")


def test_what_one_thread_learns_from_an_mbarrier_a_barrier_passes_on():
    def program(b, right, x, y):
        s, m = b.shared(N, "float32"), b.mbarrier(1)
        b.bar_sync()
        m.expect_tx(4 * N, where=b.tid == 0)
        m.arrive(where=b.tid == 0)
        b.bulk_load(s, x, N, m, where=b.tid == 0)
        m.wait(0, where=b.tid == 0)
        if right:
            b.bar_sync()
        b.st_global(y, b.tid, b.ld_shared(s, b.tid))

    def did(right):
        return simt.run(program, right, numbers(), simt.empty(N, "float32"), grid=1, block=N)

    assert did(True).ok and (did(True).outputs[0] == numbers()).all()
    (report,) = did(False).reports
    assert report.kind == "race" and "an asynchronous copy to CTA 0" in report.sentence


def test_one_lane_of_a_warp_arrives_for_all():
    """The lanes of a warp meet, then one arrives at the mbarrier: what the others wrote is passed on too."""

    def program(b, right, x, y):
        s, m = b.shared(N, "float32"), b.mbarrier(4)
        b.bar_sync()
        b.st_shared(s, b.tid, b.ld_global(x, b.tid))
        if right:
            b.bar_warp_sync()
        m.arrive(where=b.laneid == 0)
        m.wait(0)
        b.st_global(y, b.tid, b.ld_shared(s, N - 1 - b.tid))

    def did(right):
        return simt.run(program, right, numbers(), simt.empty(N, "float32"), grid=1, block=N)

    assert did(True).ok and (did(True).outputs[0] == numbers()[::-1]).all()
    assert [report.kind for report in did(False).reports] == ["race"]


def test_equal_values_may_be_written_twice():
    def program(b, y):
        b.st_global(y, 0, 7.0)

    did = simt.run(program, simt.empty(1, "float32"), grid=2, block=64)
    assert did.ok and did.outputs[0] == [7]


def test_a_report_stands_as_one_sentence_with_its_line():
    (report,) = run(CASES[3], False).reports
    number = reversed_by_block.__code__.co_firstlineno + 5
    assert str(report) == (
        f"line {number}: CTA 0, warp 0, lane 0 (and 127 more) reads s[127], and CTA 0, warp 3, lane 31 wrote it in "
        f"line {number - 3} with nothing between that orders the two: b.bar_sync() between the lines"
    )
    assert str(run(CASES[3], False)).endswith(str(report))


@pytest.mark.parametrize(
    "launch, says",
    [
        ({"grid": 1, "block": 48}, "a multiple of 32"),
        ({"grid": 1, "block": 2048}, "at most 1024"),
        ({"grid": 3, "block": 32, "cluster": 2}, "divide the grid"),
        ({"grid": 17, "block": 32, "cluster": 17}, "1 to 16"),
    ],
)
def test_a_launch_that_cuda_refuses(launch, says):
    with pytest.raises(ValueError, match=says):
        simt.run(lambda b: None, **launch)


@pytest.mark.parametrize(
    "wrong, says",
    [
        (lambda b, x: b.ld_global(x, b.tid, vec=3), "float32 are 12 bytes a lane: it takes 1, 2, 4, 8, 16"),
        (lambda b, x: b.ld_global(x, b.tid * 0.5), "an index of dtype float64"),
        (lambda b, x: b.ld_global(x, (0, b.tid)), "x has 1 dimensions, and the index has 2"),
        (lambda b, x: b.ld_global(x, b.tid, where=b.tid), "it takes a comparison"),
        (lambda b, x: b.st_global(x, b.tid, b.tid * 0.5), "use .astype"),
        (lambda b, x: b.shared(60000, "float32"), "240000 bytes of shared memory: a CTA has 232448"),
        (lambda b, x: b.shared(1, "float64"), "the model has float32, float16"),
        (lambda b, x: b.mbarrier(1).wait(2), "takes 0 or 1"),
        (lambda b, x: b.bulk_load(b.shared(3, "float32"), x, 3, b.mbarrier(1)), "a multiple of 16"),
        (lambda b, x: [b.mbarrier(1) for _ in range(33)], "32 mbarriers at most"),
    ],
)
def test_what_has_no_instruction_is_refused(wrong, says):
    with pytest.raises(ValueError, match=says.replace(".", r"\.")):
        simt.run(wrong, numbers(), grid=1, block=32)


def test_a_report_has_its_words_and_where_its_first_lane_is():
    def late(b, x):
        s = b.shared(64, "float32")
        b.st_shared(s, b.tid, b.ld_global(x, b.tid))
        b.ld_shared(s, 63 - b.tid)

    (report,) = simt.run(late, np.ones(64, np.float32), grid=1, block=64).reports
    assert (report.kind, report.words["array"], report.words["index"]) == ("race", "s", 63)
    assert (report.cta, report.warp) == (0, 0) and report.sentence.startswith("CTA 0, warp 0, lane 0")
