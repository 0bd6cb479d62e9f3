"""Drawings of what a program did on the Model."""

import numpy as np
import pytest
from model_programs import block_sum, run_block_sum, run_cluster_sum, run_column, run_lost_warp, run_two_stages

from quack_lite import draw, simt
from quack_lite.draw.cells import NOBODY
from quack_lite.draw.exchanges import exchange
from quack_lite.draw.reductions import exchanges_of
from quack_lite.draw.timelines import waits
from quack_lite.draw.touched import touched


def events(run, verb):
    return [event for event in run.events if event.verb == verb]


def test_bytes_have_the_lanes_that_touch_them():
    ids, first, last = touched(np.arange(32), 4 * np.arange(32), 4)
    assert ids.tolist() == [0, 1, 2, 3]
    assert np.array_equal(first, last) and np.array_equal(first.ravel(), np.repeat(np.arange(32), 4))


def test_lanes_that_touch_one_byte_are_named_by_the_first_and_the_last():
    _, first, last = touched(np.arange(5, 9), np.zeros(4, dtype=int), 4)
    assert (first[0, :4] == 5).all() and (last[0, :4] == 8).all() and (first[0, 4:] == NOBODY).all()


def test_a_strided_load_has_wasted_bytes_hatched(figures):
    image = draw.access_map(run_column(0).requests(verb="ld.global")[0])
    assert "32 sectors: 128 bytes asked for, 1024 moved" in image.alt
    hatched = [patch for patch in figures[0].axes[0].patches if patch.get_hatch()]
    assert sum(patch.get_width() for patch in hatched) == 1024 - 128


@pytest.mark.parametrize("pad, wavefronts, words", [(0, "32 wavefronts", ["32"]), (1, "1 wavefront", ["1"] * 32)])
def test_words_of_a_bank_are_counted_below_it(figures, pad, wavefronts, words):
    image = draw.access_map(run_column(pad).requests(verb="ld.shared")[0])
    assert f"; {wavefronts} for 128 bytes" in image.alt
    assert [text.get_text() for text in figures[0].axes[1].texts if text.get_text()] == words


def test_a_butterfly_gives_each_lane_the_value_of_its_partner():
    given = exchange(events(run_block_sum(), "shfl.sync.bfly")[0], 0)
    assert given.arrows == [(lane ^ 16, lane) for lane in range(32)]
    assert given.above.values[16] == "16" == given.below.values[0]


def test_warps_leave_their_totals_in_slots():
    run = run_block_sum()
    stored = exchange(events(run, "st.shared")[0], 0)
    assert stored.above.names == ["0", "32", "64", "96"] and stored.below.names == ["0", "1", "2", "3"]
    assert stored.arrows == [(place, place) for place in range(4)]
    assert stored.below.values == [f"{sum(range(w * 32, w * 32 + 32)):.3g}" for w in range(4)]
    loaded = exchange(events(run, "ld.shared")[0], 0)
    assert loaded.above.values == stored.below.values == loaded.below.values


def test_a_cta_gets_a_value_from_each_of_its_cluster():
    sent = exchange(events(run_cluster_sum(), "st.async")[0], warp=2)
    assert sent.above.names == ["0:1", "1:1", "2:1", "3:1"] and sent.below.names == ["0", "1", "2", "3"]


def test_the_steps_of_a_reduction_end_with_the_last_exchange():
    verbs = [event.verb for event, _ in exchanges_of(run_block_sum(), 0)]
    assert verbs == ["shfl.sync.bfly"] * 5 + ["st.shared", "bar.sync", "ld.shared"] + ["shfl.sync.bfly"] * 5
    image = draw.reduction(run_block_sum())
    assert "st.shared: slot 0 gets 496" in image.alt and "bar.sync" in image.alt


def test_fewer_steps_are_drawn_if_asked_for():
    assert draw.reduction(run_block_sum(), steps=2).alt.count("shfl.sync.bfly") == 2


def test_a_warp_that_exchanges_nothing_is_refused():
    with pytest.raises(ValueError, match="exchanges nothing"):
        draw.reduction(run_lost_warp())


def test_each_wait_is_for_the_group_that_it_needs():
    verbs = run_two_stages().events
    pairs = [(verbs[start].verb, verbs[end].verb) for start, end in waits(verbs)]
    assert pairs == [("cp.async", "cp.async.wait_group")] * 3
    copies = [place for place, event in enumerate(verbs) if event.verb == "cp.async"]
    ends = [place for place, event in enumerate(verbs) if event.verb == "cp.async.wait_group"]
    assert waits(verbs) == list(zip(copies, ends, strict=True))


def test_peers_and_the_cluster_are_waited_for():
    verbs = run_cluster_sum().events
    pairs = [(verbs[start].verb, verbs[end].verb) for start, end in waits(verbs)]
    cluster = ("barrier.cluster.arrive", "barrier.cluster.wait")
    assert pairs == [cluster, ("st.async", "mbarrier.try_wait")]


@pytest.mark.parametrize("turn", [(0, 1), (1, 0)])
def test_each_wait_is_for_the_copies_that_its_own_mbarrier_counts(turn):
    def expect_first(b, x, y):
        s, stages = b.shared((2, 32), "float32"), [b.mbarrier(1) for _ in range(2)]
        for m in stages:
            m.expect_tx(128, where=b.tid == 0)
            m.arrive(where=b.tid == 0)
        b.bar_sync()
        for j in turn:
            b.bulk_load(s, x, 32, stages[j], i=(j, 0), j=32 * j, where=b.tid == 0)
        for j, m in enumerate(stages):
            m.wait(0)
            b.st_global(y, 32 * j + b.tid, b.ld_shared(s, (j, b.tid)))

    x = np.arange(64, dtype=np.float32)
    run = simt.run(expect_first, x, simt.empty(64, "float32"), grid=1, block=32)
    assert run.ok and (run.outputs[0] == x).all()
    verbs = [event.verb for event in run.events]
    copies, ends = (np.flatnonzero(np.array(verbs) == verb) for verb in ("cp.async.bulk", "mbarrier.try_wait"))
    assert waits(run.events) == [(copies[turn.index(j)], ends[j]) for j in range(2)]


def test_a_timeline_says_who_waits_for_whom():
    image = draw.timeline(run_cluster_sum(), rank=1)
    assert image.alt.startswith("CTA 1, verbs") and image.alt.count("waits for line") == 2


def test_a_warp_that_does_not_come_to_a_barrier_is_crossed(figures):
    draw.timeline(run_lost_warp())
    crosses = [line for line in figures[0].axes[0].lines if line.get_marker() == "x"]
    assert [list(line.get_ydata()) for line in crosses] == [[1]]


def test_beyond_the_last_verb_there_is_no_timeline():
    with pytest.raises(ValueError, match="CTA 0 of the first cluster has"):
        draw.timeline(run_block_sum(), first=10**6)


def step_through_a_block_sum():
    x = np.arange(128, dtype=np.float32)
    return draw.step_through(block_sum, x, simt.empty(1, "float32"), grid=1, block=128)


def test_each_step_shows_its_line_and_its_picture():
    stepper = step_through_a_block_sum()
    slider, shown = stepper.children
    seen = []
    for place in (0, 1, 7):
        slider.value = place
        (marked,) = [line for line in shown.value.split("<div") if "fff3bf" in line]
        seen.append((marked, stepper.image.alt))
    assert "b.ld_global(x, b.tid)" in seen[0][0] and "4 sectors: 128 bytes" in seen[0][1]
    assert "b.shfl_bfly(v, mask)" in seen[1][0] and "lane 0 gets 16" in seen[1][1]
    assert "b.bar_sync()" in seen[2][0] and seen[2][1].startswith("CTA 0, verbs")


def test_what_the_checks_say_stands_under_its_line():
    def early(b, y):
        s = b.shared(64, "int32")
        b.st_shared(s, b.tid, b.tid)
        b.st_global(y, b.tid, b.ld_shared(s, 63 - b.tid))

    stepper = draw.step_through(early, simt.empty(64, "int32"), grid=1, block=64)
    slider, shown = stepper.children
    said = []
    for place in range(slider.max + 1):
        slider.value = place
        said.append("b.bar_sync() between the lines" in shown.value)
    assert any(said) and not said[0]
