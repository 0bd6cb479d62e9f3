"""The timing protocol, the ceilings, the cases, the peers, the processes, the records and the command."""

import importlib
import json
import textwrap
import time
from unittest.mock import Mock

import pytest
import torch

from quack_lite.bench import cases, check, command, host_time, peers, protocol, records, runs, small_work, worker
from quack_lite.bench.cases import INPUTS, Case, Job
from quack_lite.bench.peers import COMPILED, LIGER, OURS, QUACK, TORCH, TUNED, Peer, kept_graph
from quack_lite.bench.protocol import Timing

pytestmark = pytest.mark.compile

BOTH_WAYS = [Job(name, backward, "bf16") for name in INPUTS for backward in (False, True) if name != "copy"]


@pytest.fixture
def no_gpu(monkeypatch):
    """The CPU in place of the GPU, and no lock."""
    monkeypatch.setattr(cases, "DEVICE", "cpu")
    monkeypatch.setattr(protocol, "HELD", ["exclusive"])
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    monkeypatch.setattr(worker, "faulthandler", Mock())


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder for records."""
    monkeypatch.setattr(records, "RECORDS", tmp_path / "records")
    return tmp_path / "records"


def called(job, case, name=TORCH):
    """(tensors, outputs, gradients, what is timed) of a peer."""
    given = cases.tensors(job, case)
    with torch.set_grad_enabled(job.backward):
        return given, *worker.call(job, name, given)


# records


def test_versions_name_what_ran():
    assert torch.__version__.startswith(records.versions()["torch"].split("+")[0])
    assert "nvidia-cutlass-dsl" in records.versions()


def test_a_record_is_read_as_it_was_written(folder):
    path = records.write("bench_a_b", {"rows": [1.5]})
    assert path.name == "bench_a_b.json" and records.read("bench_a_b") == {"rows": [1.5]}
    assert [path] == list(folder.iterdir())


def test_a_record_holds_while_the_files_that_it_depends_on_are_the_same(folder, monkeypatch):
    assert not records.holds("a")
    records.write("a", {"source": records.source()})
    assert records.holds("a")
    monkeypatch.setattr(records, "MEASURED", records.MEASURED + ("machine.py",))
    assert not records.holds("a")


@pytest.mark.parametrize("pattern", records.MEASURED)
def test_each_file_that_a_record_depends_on_is_there(pattern):
    assert list(records.PACKAGE.glob(pattern))


@pytest.mark.parametrize("path", sorted(records.RECORDS.glob("bench_*.json")), ids=lambda path: path.stem)
def test_committed_records_say_what_they_hold_for(path):
    content = json.loads(path.read_text())
    assert "H200" in content["device"] or "H100" in content["device"]
    assert content["driver"] and content["date"] and content["versions"]["torch"]
    assert content["ceilings"]["copy"] > 0 and content["rows"]
    ours = [row["gbps"]["quack_lite"] for row in content["rows"]]
    assert all(isinstance(gbps, float) for gbps in ours), "a length at which ours was refused or wrong"


# cases


def test_the_benchmark_is_every_operator_both_ways_and_float32_forward():
    jobs = cases.all_jobs()
    assert len(jobs) == 8 + 7 + 7 == len({job.name for job in jobs})
    assert all(cases.job(job.name) == job for job in jobs)


def test_the_odd_vocabulary_is_measured_where_there_are_classes():
    with_it = {name for name in INPUTS if any(case.n == 50257 for case in cases.cases(Job(name, False, "bf16")))}
    assert with_it == {"softmax", "log_softmax", "cross_entropy"}


def test_narrow_weights_are_measured_beside_wide_ones_and_forward_only():
    assert {case.weights for case in cases.cases(Job("rms_norm", False, "bf16"))} == {"fp32", "bf16"}
    assert {case.weights for case in cases.cases(Job("rms_norm", True, "bf16"))} == {"fp32"}
    assert {case.weights for case in cases.cases(Job("softmax", False, "bf16"))} == {"fp32"}


@pytest.mark.parametrize("m", [1, 3, 40, 1000])
def test_sampled_rows_are_the_first_the_middle_and_the_last(no_gpu, m):
    rows = cases.sampled_rows(m).tolist()
    assert {0, m // 2, m - 1} <= set(rows) <= set(range(m)) and len(rows) == len(set(rows))


def test_the_gradient_is_zero_outside_the_sampled_rows_only_where_rows_are_added(no_gpu):
    given = cases.tensors(Job("rms_norm", True, "bf16"), Case(200, 8))
    rest = torch.ones(200, dtype=torch.bool)
    rest[given.rows] = False
    assert given.checked[0][rest].eq(0).all() and given.gradients[0][rest].ne(0).any()
    given = cases.tensors(Job("softmax", True, "bf16"), Case(200, 8))
    assert given.checked is given.gradients


def test_useful_bytes_count_the_dtype_of_the_weights():
    job = Job("rms_norm", False, "bf16")
    assert cases.bytes_moved(job, Case(10, 4)) == 2 * 10 * 4 * 2 + 4 * 4
    assert cases.bytes_moved(job, Case(10, 4, "bf16")) == 2 * 10 * 4 * 2 + 4 * 2


# check


@pytest.mark.parametrize("job", BOTH_WAYS, ids=lambda job: job.name)
def test_torch_is_right_within_what_a_peer_may_be_off(no_gpu, job):
    given, outputs, gradients, _ = called(job, Case(100, 65))
    assert check.peer_error(job, given, outputs, gradients) < 0.5


@pytest.mark.parametrize("job", BOTH_WAYS, ids=lambda job: job.name)
def test_float32_arithmetic_is_right_by_the_rule_for_ours(no_gpu, job):
    job = job._replace(dtype="fp32")
    given, outputs, gradients, _ = called(job, Case(100, 65))
    assert check.our_error(job, given, outputs, gradients) <= 1


@pytest.mark.parametrize("job", BOTH_WAYS, ids=lambda job: job.name)
def test_a_wrong_last_result_is_found_by_both_rules(no_gpu, job):
    given, outputs, gradients, _ = called(job, Case(100, 65))
    results = list(gradients if job.backward else outputs)
    results[-1] = results[-1].detach() * 1.5 + 1
    outputs, gradients = (outputs, tuple(results)) if job.backward else (tuple(results), ())
    assert check.peer_error(job, given, outputs, gradients) > 1
    assert check.our_error(job, given, outputs, gradients) > 1


def test_nan_in_place_of_a_number_is_wrong(no_gpu):
    job = Job("softmax", False, "bf16")
    given, outputs, *_ = called(job, Case(100, 65))
    outputs[0][-1, 3] = float("nan")
    assert check.peer_error(job, given, outputs, ()) == float("inf")


# peers


def names(operator, n, backward=False, dtype="bf16"):
    return peers.names(Job(operator, backward, dtype), Case(1, n))


def test_who_is_measured_where(monkeypatch):
    monkeypatch.setattr(peers.machine, "has_module", lambda name: True)
    assert names("softmax", 4096) == [OURS, TORCH, COMPILED, TUNED, QUACK, LIGER]
    assert names("softmax", 1024) == names("softmax", 4096, dtype="fp32") == [OURS, TORCH, COMPILED, QUACK, LIGER]
    assert names("log_softmax", 4096) == names("log_softmax", 32768) == [OURS, TORCH, COMPILED, TUNED]
    assert names("swiglu", 65536) == [OURS, TORCH, COMPILED, LIGER]
    assert names("cross_entropy", 1024, backward=True) == [OURS, TORCH, COMPILED, QUACK]
    assert names("copy", 4096) == [OURS, TORCH]


def test_a_library_that_is_not_installed_is_left_out(monkeypatch):
    monkeypatch.setattr(peers.machine, "has_module", lambda name: name == "quack")
    assert names("softmax", 1024) == [OURS, TORCH, COMPILED, QUACK]


@pytest.mark.parametrize("library", peers.LIBRARIES.values(), ids=lambda library: library.package)
def test_a_library_has_the_operators_that_are_asked_of_it(library):
    pytest.importorskip(library.package)
    assert set(library.forward) | set(library.backward) <= set(importlib.import_module(library.module).PEERS)


def test_a_kept_graph_gives_the_gradients_each_time():
    x, dy = torch.randn(3, 4), torch.randn(3, 4)
    outputs, backward = kept_graph(lambda x: x * x, x)
    assert torch.equal(backward(dy)[0], 2 * x * dy) and torch.equal(backward(dy)[0], 2 * x * dy)
    assert torch.equal(outputs[0], x * x) and not x.requires_grad


def test_labels_get_no_gradient():
    outputs, backward = kept_graph(peers.torch_cross_entropy, torch.randn(3, 4), torch.tensor([0, 1, 3]))
    assert len(backward(torch.ones(3))) == 1


@pytest.mark.parametrize("norm", [peers.torch_rms_norm, peers.torch_layer_norm])
@pytest.mark.parametrize("weights", [torch.float32, torch.bfloat16])
def test_torchs_norms_give_the_dtype_of_the_input(norm, weights):
    x, w = torch.randn(3, 8).bfloat16(), torch.ones(8, dtype=weights)
    arguments = (x, w) if norm is peers.torch_rms_norm else (x, w, w)
    assert norm(*arguments).dtype == torch.bfloat16


# one job


def made_up(monkeypatch, **forwards):
    """Peers by name, timed at 2 microseconds."""
    found = {name: peers.peer(fn) if callable(fn) else fn for name, fn in forwards.items()}
    monkeypatch.setattr(peers, "names", lambda job, case: list(found))
    monkeypatch.setattr(peers, "find", lambda name, operator: found[name])
    monkeypatch.setattr(worker, "measure", lambda fn, bytes_moved, **_: Timing(2e-6, 0.01, 10, bytes_moved))


def softmax(x):
    return torch.softmax(x, -1)


def slow_softmax(x):
    time.sleep(0.6)
    return softmax(x)


def refuses(x):
    raise RuntimeError("no rows of 64\nand more")


def test_a_row_has_speeds_where_values_are_right_and_sentences_elsewhere(no_gpu, monkeypatch):
    monkeypatch.setattr(worker, "TOO_SLOW_SECONDS", 0.5)
    made_up(
        monkeypatch,
        quack_lite=softmax,
        nan=lambda x: x * float("nan"),
        off=lambda x: 2 * softmax(x),
        slow=slow_softmax,
        refuses=refuses,
        lost=softmax,
        good=softmax,
    )
    row = worker.measure_case(Job("softmax", False, "bf16"), Case(100, 64), ["lost@64"])
    right = 2 * 100 * 64 * 2 / 2e-6 / 1e9
    assert row["gbps"]["quack_lite"] == row["gbps"]["good"] == pytest.approx(right, abs=0.1)
    assert row["gbps"]["nan"] == "wrong: NaN" and row["gbps"]["off"].endswith("times the tolerance")
    assert row["gbps"]["slow"] == "too slow: more than 0.5 s a call"
    assert row["gbps"]["refuses"] == "refused: RuntimeError: no rows of 64"
    assert row["gbps"]["lost"] == "lost: it ended its process"
    assert row["ours_over"] == {"good": 1.0} and set(row["error"]) == set(row["spread"]) == {"quack_lite", "good"}


def test_a_backward_is_timed_with_whole_gradients_and_checked_with_those_of_the_sampled_rows(no_gpu, monkeypatch):
    got = []

    def backward(x, w):
        outputs, gradients = kept_graph(peers.torch_rms_norm, x, w)
        return outputs, lambda dy: got.append(dy) or gradients(dy)

    made_up(monkeypatch, quack_lite=Peer(peers.torch_rms_norm, backward))
    monkeypatch.setattr(worker, "measure", lambda fn, bytes_moved, **_: fn() and Timing(1e-6, 0.0, 1, bytes_moved))
    row = worker.measure_case(Job("rms_norm", True, "fp32"), Case(100, 64), [])
    assert isinstance(row["gbps"]["quack_lite"], float) and row["weights"] == "fp32"
    checked, *_, timed = got
    assert checked.eq(0).all(-1).sum() == 100 - 48 and not timed.eq(0).all(-1).any()


def test_ours_is_held_to_the_stricter_rule(no_gpu, monkeypatch):
    def twice_rounded(x):
        return (softmax(x).float() * (1 + 2**-6)).bfloat16()

    made_up(monkeypatch, quack_lite=twice_rounded, peer=twice_rounded)
    gbps = worker.measure_case(Job("softmax", False, "bf16"), Case(100, 64), [])["gbps"]
    assert gbps["quack_lite"].startswith("wrong") and isinstance(gbps["peer"], float)


def test_memory_that_others_hold_is_waited_for(monkeypatch):
    monkeypatch.setattr(worker, "PAUSE_SECONDS", 0.0)
    answers = [torch.OutOfMemoryError(), torch.OutOfMemoryError(), 5]

    def fn():
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    assert worker.patiently(fn) == 5


def test_each_helper_gets_its_share_and_nothing_twice(monkeypatch):
    monkeypatch.setattr(peers.machine, "has_module", lambda name: True)
    tasks = worker.tasks(Job("softmax", False, "bf16"))
    parts = worker.deal(tasks, 3)
    shared = [task for task in tasks if task[1] not in (OURS, TORCH)]
    assert sorted(task for part in parts for task in part) == sorted(shared)
    costs = [sum(worker.COSTS[name] for _, name in part) for part in parts]
    assert max(costs) - min(costs) <= worker.COSTS[TUNED]


def test_first_calls_say_who_runs_and_go_on_behind_who_refuses(no_gpu, monkeypatch, capsys):
    ran = []
    made_up(monkeypatch, refuses=refuses, good=lambda x: ran.append(x.shape) or softmax(x), lost=softmax)
    part = [(Case(4, n), name) for n in (8, 16) for name in ("refuses", "good", "lost")]
    worker.first_calls(Job("softmax", False, "bf16"), part, ["lost@8", "lost@16"])
    assert ran == [(4, 8), (4, 16)]
    marks = capsys.readouterr().out
    assert marks.splitlines() == [f"@first {name}@{n}" for n in (8, 16) for name in ("refuses", "good")]
    assert worker.last_mark(marks) == "good@16" and worker.last_mark("nothing") is None


def test_a_helper_that_died_takes_what_it_was_at_out_of_the_run(no_gpu, monkeypatch):
    made_up(monkeypatch, quack_lite=softmax)

    class Helper:
        returncode = -11

        def communicate(self):
            return "@first a@8\n@first b@8\n", None

    monkeypatch.setattr(cases, "cases", lambda job: [])
    monkeypatch.setattr(worker, "cases", lambda job: [])
    assert worker.compile_all(Job("softmax", False, "bf16"), [[], []], [Helper()], []) == ["b@8"]


def test_choosing_a_kernel_waits_for_its_turn_unless_the_gpu_is_held(monkeypatch):
    taken = []

    class Lock:
        def __init__(self, exclusive):
            taken.append(exclusive)

        def __enter__(self):
            pass

        def __exit__(self, *_):
            pass

    monkeypatch.setattr(worker, "gpu_lock", Lock)
    timed = worker.in_turn(lambda x: x + 1)
    monkeypatch.setattr(protocol, "HELD", [])
    assert timed(1) == 2 and taken == [True]
    monkeypatch.setattr(protocol, "HELD", ["shared"])
    assert timed(1) == 2 and taken == [True]


def test_a_ratio_stands_only_beside_right_values():
    assert worker.ours_over({"quack_lite": 3.0, "torch": 2.0, "other": "wrong: NaN"}) == {"torch": 1.5}
    assert worker.ours_over({"quack_lite": "wrong: NaN", "torch": 2.0}) == {}


# processes


@pytest.fixture
def module(tmp_path, monkeypatch):
    """A module to run, made of source text."""
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    def write(source):
        (tmp_path / "made_up_module.py").write_text(textwrap.dedent(source))
        return runs.Task("a", "made_up_module", renewed=True)

    return write


def soon(seconds=30.0):
    return time.monotonic() + seconds


def test_a_peer_that_ends_the_process_is_left_out_in_the_next_attempt(module):
    task = module("""
        import os, sys
        if "--lost=bad peer@8" not in sys.argv:
            print("@first good@8", "@first bad peer@8", sep="\\n", flush=True)
            os._exit(9)
    """)
    assert runs.attempts(task, soon()) == runs.Ended("a")


def test_a_process_that_ends_without_a_peer_is_a_problem(module):
    ended = runs.attempts(module("raise SystemExit('no such thing')"), soon())
    assert ended.problem == "ended with code 1 at its start: no such thing" and not ended.unfinished


def test_a_process_that_ends_again_and_again_is_given_up(module):
    task = module("import sys; print(f'@first p@{len(sys.argv)}', flush=True); raise SystemExit('again')")
    assert runs.attempts(task, soon()).problem.endswith(f"at p@{runs.MOST_LOST + 1}: again")


def test_the_deadline_ends_a_process_and_its_helpers_and_starts_no_other(module, tmp_path):
    task = module(f"""
        import subprocess, sys, time
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(4); open({str(tmp_path / "late")!r}, 'w')"])
        time.sleep(60)
    """)
    heard = []
    started = time.monotonic()
    ended = runs.run([task, task], 1, soon(1.5), heard.append)
    assert ended == heard == [runs.Ended("a", unfinished=True)] * 2 and time.monotonic() - started < 4
    time.sleep(max(0.0, started + 6.5 - time.monotonic()))
    assert not (tmp_path / "late").exists()


def test_helpers_of_a_process_that_ended_end_with_it(module, tmp_path):
    task = module(f"""
        import subprocess, sys
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3); open({str(tmp_path / "late")!r}, 'w')"])
        raise SystemExit("over")
    """)
    assert runs.attempts(task, soon()).problem.endswith("over")
    time.sleep(5)
    assert not (tmp_path / "late").exists()


@pytest.mark.parametrize(
    "jobs, cores, expected", [(22, 16, (5, 2)), (1, 16, (1, 11)), (2, 16, (2, 7)), (22, 2, (1, 1)), (1, 1, (1, 0))]
)
def test_the_cores_are_shared_among_jobs(jobs, cores, expected):
    assert runs.shares(jobs, cores) == expected


# the command


@pytest.mark.parametrize("start", [lambda: command.run("softmax", "bf16"), command.run_all])
def test_the_command_without_a_gpu_says_so(capsys, monkeypatch, start):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert start() == 1
    assert "bench needs an NVIDIA GPU" in capsys.readouterr().out


@pytest.mark.parametrize(
    "words, sentence",
    [
        (("gelu", "bf16"), "operator 'gelu' was given; there are copy, softmax"),
        (("softmax", "bfloat16"), "dtype 'bfloat16' was given; there are bf16, fp16, fp32"),
        (("copy", "bf16", True), "copy has no backward"),
    ],
)
def test_what_there_is_not_is_refused_with_what_there_is(words, sentence):
    with pytest.raises(ValueError, match=sentence):
        command.run(*words)


RECORD = {
    "operator": "rms_norm",
    "direction": "forward",
    "dtype": "bf16",
    "ceilings": {"copy": 4000.0, "read": 4400.0, "write": 4600.0},
    "rows": [
        {"m": 8, "n": 1024, "weights": "fp32", "gbps": {"quack_lite": 3900.0, "torch": 2000.0}},
        {"m": 8, "n": 1024, "weights": "bf16", "gbps": {"quack_lite": 3900.0, "torch": "refused: E: some words"}},
    ],
}


def test_the_whole_benchmark_leaves_out_what_a_record_holds_for(folder, monkeypatch):
    for name in ("bench_copy_bf16", "small_work"):
        records.write(name, {"source": records.source()})
    started = []
    monkeypatch.setattr(command, "measure", lambda tasks, seconds, _: started.append((tasks, seconds)) or 0)
    assert command.run_all(60) == 0
    [(tasks, seconds)] = started
    assert seconds == 60 and [task.name for task in tasks][:2] == ["bench_softmax_bf16", "bench_log_softmax_bf16"]
    assert len(tasks) == 22 - 1 + 1 and tasks[-1].name == "host_time"


@pytest.fixture
def a_run(folder, monkeypatch):
    """Four tasks, of which one is not finished and one fails; and what runs them without a GPU."""
    records.write("bench_rms_norm_bf16", RECORD)
    records.write("host_time", {})
    tasks = [command.task(Job(name, False, "bf16"), 2) for name in ("rms_norm", "softmax", "swiglu")]
    tasks.append(runs.Task("host_time", "m"))
    outcomes = {"bench_softmax_bf16": {"unfinished": True}, "bench_swiglu_bf16": {"problem": "ended with code 1"}}

    def run(tasks, at_once, deadline, listener):
        ended = [runs.Ended(task.name, **outcomes.get(task.name, {})) for task in tasks]
        for each in ended:
            listener(each)
        return ended

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(runs, "run", run)
    return tasks


def test_what_is_left_is_said_and_what_ended_is_shown(a_run, capsys):
    assert command.measure(a_run, 60) == 1
    said = capsys.readouterr().out
    assert "rms_norm forward bf16" in said and "3900 (0.97)" in said and "8 x 1024, bf16 weights" in said
    assert "refused: E" in said and "some words" not in said
    assert "bench_swiglu_bf16: ended with code 1" in said
    assert "2 records written; left, run again and it goes on from here: bench_softmax_bf16" in said


def test_as_json_only_what_was_written_stands_on_stdout(a_run, capsys):
    assert command.measure(a_run, 60, json=True) == 1
    said = capsys.readouterr()
    assert json.loads(said.out) == [RECORD, {}]
    assert "bench_swiglu_bf16: ended with code 1" in said.err


def test_without_a_gpu_nothing_stands_on_stdout_as_json(capsys, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert command.run("softmax", "bf16", json=True) == 1
    said = capsys.readouterr()
    assert said.out == "" and "bench needs an NVIDIA GPU" in said.err


# small work and the host


def test_small_work_is_a_time_or_a_sentence(no_gpu, monkeypatch):
    forwards = {OURS: softmax, QUACK: lambda x: x}
    made_up(monkeypatch, **forwards)
    monkeypatch.setattr(small_work, "measure", lambda *_, **__: Timing(2e-6, 0.0, 1, 0))
    row = small_work.measure_case(Job("softmax", False, "bf16"), Case(8, 64))
    assert row["us"][OURS] == 2.0 and row["us"][QUACK].startswith("wrong") and row["ours_over"] == {}
    made_up(monkeypatch, **{OURS: softmax, QUACK: softmax})
    assert small_work.measure_case(Job("softmax", False, "bf16"), Case(8, 64))["ours_over"] == {QUACK: 1.0}


@pytest.mark.parametrize("operator", ["rms_norm", "cross_entropy", "add_rms_norm", "copy"])
def test_the_hosts_time_is_taken_of_ours_and_torchs_without_and_with_grad(no_gpu, monkeypatch, operator):
    monkeypatch.setattr(host_time, "CALLS", 2)
    monkeypatch.setattr(peers, "find", lambda name, operator: peers.peer(peers.TORCH_FORWARD[operator]))
    rows = host_time.measure_operator(operator)
    calls = ["no grad", "forward with grad", "forward and backward"]
    assert [row["call"] for row in rows] == calls * (2 if "w" in INPUTS[operator] else 1)
    assert all(row["us"][OURS] > 0 and row["us"][TORCH] > 0 for row in rows)


def test_a_compilation_is_counted(monkeypatch):
    monkeypatch.setattr(host_time.launch, "compile_host", lambda host, *_, **__: "built")
    with host_time.counted() as compilations:
        assert host_time.launch.compile_host(test_a_compilation_is_counted, name="x") == "built"
    host_time.launch.compile_host(test_a_compilation_is_counted)
    assert compilations == ["test_a_compilation_is_counted"]


# the protocol


def test_the_gpu_is_taken_once_in_a_process(monkeypatch):
    monkeypatch.setattr(protocol, "HELD", ["exclusive"])
    with protocol.gpu_lock(exclusive=False), protocol.gpu_lock(exclusive=True):
        assert protocol.holds() == "exclusive"
    monkeypatch.setattr(protocol, "HELD", ["shared"])
    with protocol.gpu_lock(exclusive=False):
        assert protocol.holds() == "shared"
    with pytest.raises(RuntimeError, match="held to check and is wanted to time"), protocol.gpu_lock(exclusive=True):
        pass


@pytest.mark.gpu
class TestOnAGpu:
    def copy(self, megabytes=256):
        x = torch.randn(megabytes * 2**18, device="cuda")
        return x, torch.empty_like(x)

    def test_a_copy_is_timed_alike_twice_and_below_the_ceiling(self):
        from quack_lite import bench

        x, y = self.copy()
        first, second = (bench.measure(y.copy_, x, bytes_moved=2 * x.nbytes) for _ in range(2))
        assert abs(first.seconds / second.seconds - 1) < 0.05
        assert first.gbps < 1.1 * bench.ceilings().copy

    def test_a_small_copy_does_not_come_from_the_cache(self):
        from quack_lite import bench

        x, y = self.copy(megabytes=16)
        assert bench.measure(y.copy_, x, bytes_moved=2 * x.nbytes).gbps < 1.1 * bench.ceilings().copy

    def test_a_result_that_turns_wrong_while_it_is_timed_is_found(self):
        from quack_lite import bench

        x, y = self.copy(megabytes=16)

        def check():
            assert torch.equal(x, y), "not a copy any more"

        with pytest.raises(AssertionError, match="not a copy any more"):
            bench.measure(lambda: y.copy_(x).add_(1), bytes_moved=2 * x.nbytes, check=check)

    def test_the_ceilings_are_in_order(self):
        from quack_lite import bench

        limits = bench.ceilings()
        assert limits.copy < limits.read and 100 < limits.latency < 2000
        assert limits is bench.ceilings()

    def test_timing_keeps_everybody_else_out(self):
        import fcntl
        import os
        import tempfile

        from quack_lite import bench

        uuid = torch.cuda.get_device_properties().uuid
        path = os.path.join(tempfile.gettempdir(), f"quack_lite-{os.getuid()}-{uuid}.lock")
        with bench.gpu_lock(exclusive=True), open(path) as other, pytest.raises(BlockingIOError):
            fcntl.flock(other, fcntl.LOCK_SH | fcntl.LOCK_NB)
