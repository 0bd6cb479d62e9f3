"""Programs on the Model through their gates: what is found, which lane and line are named, which picture is shown."""

import base64

import numpy as np
import pytest

from quack_lite import simt
from quack_lite.grading import judge, origins, spawn, tasks
from quack_lite.grading.feedback import GradeFailed
from quack_lite.grading.program_gates import Trials, at_most, gates, in_flight_at_least, lanes_have_met, requests_of
from quack_lite.grading.task import Task

MEAN = "bytes_in_flight.mean"
MODEL_ONLY = {"model": True, "compiler": False, "gpu": False, "hopper": False}
PNG = b"\x89PNG"


def inputs(n, random):
    return (simt.tensor(random.integers(-99, 99, n).astype(np.float32), "float32"),)


def traffic(trial):
    at_most(trial, "ld.global", "requests", 4, "one load for all")
    at_most(trial, "ld.global", "sectors", trial.size // 8, "go along")
    in_flight_at_least(trial, 4 * trial.size, "loads first")
    return "little"


TWICE = Trials(sizes=(64, 128), inputs=inputs, reference=lambda x: 2 * x, dtype="float32", grid=lambda n: 1, block=128)
TASK = Task("bytes_in_flight.twice", "P", gates(TWICE, traffic), ("a", "b", "c"), trials=TWICE)


def verdict_on(program):
    return judge.judge(TASK, program, MODEL_ONLY)


def failed(program, gate):
    """The sentence and the description of the picture."""
    verdict = verdict_on(program)
    assert (verdict.status, verdict.gate) == ("failed", gate), verdict
    if verdict.picture:
        assert base64.b64decode(verdict.picture["png"]).startswith(PNG)
    return verdict.sentence, verdict.picture.get("alt")


def twice(b, x, y, n):
    b.st_global(y, b.tid, 2 * b.ld_global(x, b.tid, where=b.tid < n), where=b.tid < n)


def test_a_right_program_passes():
    verdict = verdict_on(twice)
    assert verdict.status == "passed" and verdict.picture == {}
    assert [gate for gate, _ in verdict.seen] == ["checks", "values", "traffic"]
    assert dict(verdict.seen)["values"] == "as specified at n = 64, 128, each in 3 orders"


def test_each_size_runs_in_several_orders_on_fresh_data():
    runs = [TWICE.run(twice), TWICE.run(twice)]
    assert [trial.size for trial in runs[0]] == [64] * 3 + [128] * 3
    for trials in runs:
        assert trials[0].order is None and trials[0].name == "n = 64"
        assert trials[1].name == f"n = 64, order={trials[1].order}"
    assert (runs[0][0].tensors[0].values != runs[1][0].tensors[0].values).any()
    assert len({trials[k].order for trials in runs for k in (1, 2)}) > 1


class TestChecks:
    def test_past_the_end(self):
        def program(b, x, y, n):
            b.st_global(y, b.tid, 2 * b.ld_global(x, b.tid + 1, where=b.tid < n), where=b.tid < n)

        sentence, alt = failed(program, "checks")
        assert sentence == (
            "n = 64, at `b.st_global(y, b.tid, 2 * b.ld_global(x, b.tid + 1, where=b.tid < n), where=b.tid < n)`: "
            "CTA 0, warp 1, lane 31 asks for element 64 of x, which has 64: mask lanes past the end with where="
        )
        assert "ld.global of warp 1 of CTA 0" in alt and "124 bytes asked for" in alt

    def test_a_hole_shows_the_store_beside_it(self):
        def program(b, x, y, n):
            value = b.ld_global(x, b.tid, where=b.tid < n)
            b.st_global(y, b.tid, 2 * value, where=(b.tid < n) & (b.tid != 40))

        sentence, alt = failed(program, "checks")
        assert "y has 1 element that nobody wrote, the first at index 40" in sentence
        assert "nearest to it is that of CTA 0, warp 1, lane 7 at `b.st_global(y, b.tid" in sentence
        assert "st.global of warp 1 of CTA 0" in alt

    def test_nothing_is_stored(self):
        sentence, alt = failed(lambda b, x, y, n: b.ld_global(x, b.tid, where=b.tid < n), "checks")
        assert "nobody wrote" in sentence and alt is None

    def test_a_race_names_both_lines_by_their_text(self):
        def program(b, x, y, n):
            s = b.shared(128, "float32")
            b.st_shared(s, b.tid, b.ld_global(x, b.tid, where=b.tid < n, fill=0))
            value = b.ld_shared(s, (b.tid + 32) % 128)
            b.st_global(y, b.tid, value, where=b.tid < n)

        sentence, alt = failed(program, "checks")
        assert "at `value = b.ld_shared(s, (b.tid + 32) % 128)`: CTA 0, warp" in sentence
        assert "in `b.st_shared(s, b.tid, b.ld_global(x, b.tid, where=b.tid < n, fill=0))` with" in sentence
        assert "ld.shared of warp" in alt

    def test_a_barrier_has_no_access_map(self):
        def program(b, x, y, n):
            b.bar_sync(where=b.tid < n)
            twice(b, x, y, n)

        sentence, alt = failed(program, "checks")
        assert "at `b.bar_sync(where=b.tid < n)`: CTA 0, warp 2, lane 0" in sentence and alt is None

    def test_an_mbarrier_that_gets_too_much_is_no_lanes_doing(self):
        def program(b, x, y, n):
            m = b.mbarrier(1)
            m.arrive(where=b.tid < 2)
            twice(b, x, y, n)

        sentence, alt = failed(program, "checks")
        assert "at `m.arrive(where=b.tid < 2)`: " in sentence and alt is None


class TestValues:
    def test_a_wrong_value_has_the_lane_that_stored_it(self):
        def program(b, x, y, n):
            value = b.ld_global(x, b.tid, where=b.tid < n)
            b.st_global(y, b.tid, np.where(b.tid == 37, 1000, 2 * value), where=b.tid < n)

        sentence, alt = failed(program, "values")
        assert "n = 64: element 37 is 1000 and should be" in sentence
        assert "CTA 0, warp 1, lane 5 stored it, at `b.st_global(y, b.tid, np.where" in sentence
        assert "st.global of warp 1" in alt

    def test_nan_in_the_place_of_a_number_says_where_it_comes_from(self):
        def program(b, x, y, n):
            value = b.ld_global(x, b.tid, where=(b.tid < n) & (b.tid % 32 < 31))
            b.st_global(y, b.tid, 2 * value, where=b.tid < n)

        assert "outside where= unless fill=" in failed(program, "values")[0]

    def test_the_last_store_counts(self):
        def program(b, x, y, n):
            twice(b, x, y, n)
            b.bar_sync()
            b.st_global(y, 3, np.float32(1000), where=b.tid == 0)

        def own(b, x, y, n):
            for factor in (2, 3):
                b.st_global(y, b.tid, factor * b.ld_global(x, b.tid, where=b.tid < n), where=b.tid < n)

        assert "element 3 is 1000" in failed(program, "values")[0]
        assert "lane 0 stored it, at `b.st_global(y, 3," in failed(program, "values")[0]
        assert "at `b.st_global(y, b.tid, factor" in failed(own, "values")[0]

    def test_an_input_that_is_written(self):
        def program(b, x, y, n):
            twice(b, x, y, n)
            b.st_global(x, b.tid, np.float32(1000), where=b.tid == 9)

        sentence, alt = failed(program, "values")
        assert "n = 64: element 9 of an input was overwritten" in sentence
        assert "CTA 0, warp 0, lane 9 stored it, at `b.st_global(x, b.tid" in sentence and "st.global" in alt

    def test_nan_is_nan(self):
        trials = Trials(
            sizes=(64,),
            inputs=lambda n, random: (simt.tensor(np.full(n, np.nan), "float32"),),
            reference=lambda x: x,
            dtype="float32",
            grid=lambda n: 1,
            block=128,
        )
        task = Task("bytes_in_flight.same", "P", gates(trials, lambda trial: "any"), ("a", "b", "c"), trials=trials)
        assert judge.judge(task, twice, MODEL_ONLY).status == "passed"


def test_a_program_of_a_cluster_reads_its_peer():
    def program(b, x, y, n):
        s = b.shared(64, "float32")
        b.st_shared(s, b.tid, b.ld_global(x, b.ctaid * 64 + b.tid))
        b.cluster_arrive()
        b.cluster_wait()
        b.st_global(y, b.ctaid * 64 + b.tid, 2 * b.ld_peer(s, b.rank, b.tid))
        b.cluster_arrive()
        b.cluster_wait()

    trials = Trials((128,), inputs, lambda x: 2 * x, "float32", grid=lambda n: 2, block=64, cluster=2)
    assert all(trial.run.ok and trial.run.cluster == 2 for trial in trials.run(program))


class TestTraffic:
    def test_too_many_requests(self):
        def program(b, x, y, n):
            b.ld_global(x, 0)
            twice(b, x, y, n)

        sentence, alt = failed(program, "traffic")
        assert sentence == (
            "n = 64: 6 requests of ld.global, and 4 are enough: see CTA 0, warp 0, lane 0 and its neighbours at "
            "`b.ld_global(x, 0)`: one load for all"
        )
        assert "in line" in alt and "b.ld_global(x, 0)" in alt

    def test_sectors_for_nothing(self):
        def program(b, x, y, n):
            for step in (8, 1):
                b.ld_global(x, step * b.tid, where=b.tid < 8)
            twice(b, x, y, n)

        sentence, alt = failed(program, "traffic")
        assert "17 sectors of ld.global, and 8 are enough: see CTA 0, warp 0, lane 0" in sentence
        assert "at `b.ld_global(x, step * b.tid, where=b.tid < 8)`: go along" in sentence
        assert "8 sectors: 32 bytes asked for, 256 moved" in alt

    def test_a_load_behind_a_store(self):
        def program(b, x, y, n):
            for half in range(2):
                i = half * (n // 2) + b.tid
                b.st_global(y, i, 2 * b.ld_global(x, i, where=b.tid < n // 2), where=b.tid < n // 2)

        sentence, alt = failed(program, "traffic")
        assert sentence.startswith("n = 64: at most 128 bytes of a block are in flight at a time, and 256 can be: ")
        assert "see CTA 0, warp 0, lane 0 at `b.st_global(y, i, 2 *" in sentence and "ld.global of warp 0" in alt


def test_what_numpy_does_over_all_lanes_is_not_what_threads_do():
    def by_numpy(b, x, y, n):
        value = b.ld_global(x, b.tid, where=b.tid < n, fill=0)
        b.st_global(y, b.tid, 2 * value.sum() / value.sum() * value, where=b.tid < n)

    def by_threads(b, x, y, n):
        value = b.ld_global(x, b.tid, where=b.tid < n, fill=0)
        b.st_global(y, b.tid, value + b.shfl_bfly(value, 0), where=b.tid < n)

    lanes_have_met(TWICE.run(by_threads)[0])
    with pytest.raises(GradeFailed, match="no thread has told another one anything"):
        lanes_have_met(TWICE.run(by_numpy)[0])


def test_requests_are_told_apart_by_tensor():
    def two_loads(b, x, y, n):
        first = b.ld_global(x, b.tid, where=b.tid < n)
        b.st_global(y, b.tid, 2 * first, where=b.tid < n)
        b.ld_global(y, b.tid, where=b.tid < 32)

    trial = TWICE.run(two_loads)[0]
    found = [requests_of(trial, verb, tensor) for tensor in (0, 1) for verb in ("ld.global", "st.global")]
    assert [sum(request.bytes_asked for request in requests) for requests in found] == [4 * 64, 0, 4 * 32, 4 * 64]


def test_of_the_loads_behind_a_store_the_largest_is_named():
    def program(b, x, y):
        for lanes in (64, 128, 1):
            b.st_global(y, b.tid, b.ld_global(x, b.tid, where=b.tid < lanes), where=b.tid < lanes)
        b.ld_global(x, b.tid)

    x = simt.tensor(np.ones(128), "float32")
    late = origins.late_load(simt.run(program, x, simt.empty(128, "float32"), grid=1, block=128))
    assert (late.lane, late.line[:30]) == ("CTA 0, warp 0, lane 0", "b.st_global(y, b.tid, b.ld_glo")
    once = simt.run(twice, x, simt.empty(128, "float32"), 128, grid=1, block=128)
    assert origins.late_load(once).line.startswith("b.st_global(y, b.tid, 2 * b.ld_global")


def test_the_picture_comes_back_from_the_graders_process():
    line = "b.st_global(z, b.tid, b.ld_global(x, b.tid), where=b.tid < n)"
    text = f"def mean(b, x, y, z, n):\n    {line}\n\nanswer = mean\n"
    [verdict] = spawn.grade([spawn.Answer(MEAN, text)])
    assert f"at `{line}`" in verdict.sentence
    assert "lane 8 (and 119 more)" in verdict.sentence
    assert base64.b64decode(verdict.picture["png"]).startswith(PNG) and "ld.global" in verdict.picture["alt"]


def test_the_plain_mean_is_right_and_asks_too_often():
    def mean(b, x, y, z, n):
        for k in range(16):
            i = b.ctaid * b.ntid + b.tid + k * b.ntid * b.nctaid
            one, other = (b.ld_global(array, i, where=i < n) for array in (x, y))
            b.st_global(z, i, (one + other) / 2, where=i < n)

    verdict = judge.judge(tasks.find(MEAN), mean, MODEL_ONLY)
    assert (verdict.gate, len(verdict.seen)) == ("traffic", 2)
    assert "requests of ld.global" in verdict.sentence and "vec=8" in verdict.sentence


@pytest.mark.parametrize("n", [1, 8, 15, 2048, 2049, 16384])
def test_the_means_that_are_asked_for_are_exact(n):
    trials = tasks.find(MEAN).trials
    x, y = (tensor.values for tensor in trials.inputs(n, np.random.default_rng(n)))
    mean = trials.reference(x, y)
    assert np.array_equal(simt.rounded(mean, "bfloat16"), mean)
    assert np.array_equal(mean, (x.astype(np.float64) + y) / 2)
