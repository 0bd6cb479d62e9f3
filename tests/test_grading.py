"""Cells, guards, gates, the grader's process, the report and the results."""

import fcntl
import functools
import json
import math
import threading
import time
from pathlib import Path
from xml.etree import ElementTree

import pytest

from quack_lite.grading import (
    cells,
    derive,
    family,
    grader,
    guards,
    kernel_gates,
    proofs,
    report,
    results,
    spawn,
    speed_gate,
    tasks,
)
from quack_lite.grading.feedback import GradeFailed, Verdict
from quack_lite.grading.judge import judge
from quack_lite.grading.progress import Progress
from quack_lite.grading.task import Gate, Task
from quack_lite.grading.tasks import bytes_in_flight

NEEDED = "bytes_in_flight.needed"
MODEL_ONLY = {"model": True, "compiler": False, "gpu": False, "hopper": False}
RIGHT = """import math
def bytes_needed(copy, latency, sms):
    return copy / 2 * latency / sms
def loads_needed(copy, latency, sms, threads):
    return math.ceil(bytes_needed(copy, latency, sms) / (16 * threads))
def naive_is_enough(copy, latency, sms, threads, element_bytes):
    return threads * element_bytes >= bytes_needed(copy, latency, sms)
answer = (bytes_needed, loads_needed, naive_is_enough)
"""


def run(text):
    """The namespace after the text."""
    space = {}
    exec(text, space)
    return space


class TestCells:
    def test_takes_the_latest_definition_and_what_it_needs(self):
        sources = ["import math", "def f():\n    return g() + k", "unused = 9", "def g():\n    return 2", "k = 5"]
        text = cells.select(sources, "f()")
        assert run(text)["answer"] == 7
        assert "unused" not in text and "math" not in text

    def test_a_cell_that_changes_a_name_brings_the_cell_that_made_it(self):
        for change in ("x[0] = 5", "x += [5]", "x = x + [5]", "x.append(5)", "y = x\nx[0] = 5"):
            answer = run(cells.select(["x = [0]", change], "x"))["answer"]
            assert 5 in answer, change

    def test_leaves_out_what_only_shows_or_grades(self):
        text = cells.select(["def f():\n    return 1\nf()\nprint(f())\ncheck('a.b', f)\nlesson.hint('a.b')"], "f")
        assert "print" not in text and "check" not in text and "hint" not in text

    def test_keeps_decorators_and_imports(self):
        sources = ["import functools", "@functools.lru_cache(\n    4\n)\ndef f():\n    return 3"]
        text = cells.select(sources, "f()")
        assert run(text)["answer"] == 3 and "4\n)\ndef f" in text

    def test_a_star_import_comes_along(self):
        assert run(cells.select(["from math import *"], "floor(2.5)"))["answer"] == 2

    def test_a_cell_that_does_not_parse_is_no_obstacle(self):
        assert run(cells.select(["%matplotlib inline", "x = 1"], "x"))["answer"] == 1

    def test_comprehension_names_define_nothing(self):
        assert cells.select(["i = 1", "y = [i for i in range(9)]"], "i") == "i = 1\n\nanswer = i\n"

    def test_reads_the_answer_out_of_the_check_cell(self):
        assert cells.answer_expression("z = 1\ncheck('a.b', (f, g))", "a.b") == "(f, g)"
        assert cells.answer_expression("lesson.check('a.b', 'cast')", "a.b") == "cast"
        assert cells.answer_expression("check('a.c', f)", "a.b") is None
        assert cells.checked_tasks("check('a.b', f); check('a.c', g)") == ["a.b", "a.c"]


class TestNumbers:
    @pytest.mark.parametrize(
        ("right", "wrong", "told"),
        [
            ("copy / 2 * latency / sms", "copy * latency / sms", "only the reads"),
            ("copy / 2 * latency / sms", "copy / 2 * latency", "whole GPU needs"),
            ("copy / 2 * latency / sms", "copy * latency", "reads and writes"),
            ("copy / 2 * latency / sms", "copy / 2 * latency / sms * 8", "in bits"),
            ("copy / 2 * latency / sms", "copy / 2 * latency / sms / 8", "divided by 8"),
            ("copy / 2 * latency / sms", "copy / 2 * latency / sms * 1e-9", "10^9 too little"),
            ("copy / 2 * latency / sms", "copy + latency", "Little's law is"),
            ("copy / 2 * latency / sms", "None", "has to return a number"),
            ("copy / 2 * latency / sms", "float('nan')", "finite"),
            ("math.ceil", "float", "round up"),
            ("math.ceil", "math.floor", "round up, not down"),
            ("(16 * threads)", "16", "all threads"),
            ("(16 * threads)", "(128 * threads)", "128 bits"),
            ("(16 * threads)", "(4 * threads)", "16 bytes"),
            (">=", "<", "said"),
            ("threads * element_bytes >=", "element_bytes >=", "one element each"),
            ("threads * element_bytes >= bytes_needed(copy, latency, sms)", "1", "True or False"),
            ("(bytes_needed, loads_needed, naive_is_enough)", "bytes_needed", "three functions"),
        ],
    )
    def test_each_slip_gets_its_sentence(self, right, wrong, told):
        assert right in RIGHT
        verdict = judge(tasks.find(NEEDED), run(RIGHT.replace(right, wrong))["answer"], MODEL_ONLY)
        assert (verdict.status, verdict.gate) == ("failed", "numbers")
        assert told in verdict.sentence and "\n" not in verdict.sentence

    def test_the_right_answer_passes(self):
        assert judge(tasks.find(NEEDED), run(RIGHT)["answer"], MODEL_ONLY).status == "passed"

    def test_no_machine_stands_on_an_edge(self):
        for machine in bytes_in_flight.MACHINES:
            needed = bytes_in_flight.bytes_needed(machine)
            loads = needed / (16 * machine.threads)
            assert abs(loads - round(loads)) > 0.02
            assert all(abs(needed / (machine.threads * size) - 1) > 0.02 for size in (1, 2, 4, 8))


class TestGuards:
    torch = pytest.importorskip("torch")

    @pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
    def test_poison_is_nan_and_is_found(self, dtype):
        guard = guards.guarded((5, 3), dtype, "cpu")
        assert guard.inside.isnan().all() and guard.inside.data_ptr() % 16 == 0
        guard.inside[1:] = 0
        assert guards.holes(guard.inside) == (3, 0)
        guard.inside[0] = math.nan
        assert guards.holes(guard.inside)[0] == 0

    def test_whole_numbers_are_guarded_too(self):
        for dtype in (self.torch.int32, self.torch.int64):
            guard = guards.guarded((7,), dtype, "cpu")
            guard.inside.copy_(self.torch.arange(7))
            assert guards.same_bits(guard.inside, self.torch.arange(7, dtype=dtype)) and guards.touched(guard) == (
                0,
                0,
                0,
            )

    def test_a_byte_beside_the_tensor_is_seen(self):
        guard = guards.guarded((7,), self.torch.bfloat16, "cpu")
        assert guards.touched(guard) == (0, 0, 0)
        guard.buffer[guards.GUARD_BYTES + 14] = 0
        assert guards.touched(guard) == (0, 1, 0)
        guard.buffer[guards.GUARD_BYTES - 1] = 0
        assert guards.touched(guard) == (1, 1, 0)

    def test_a_byte_between_rows_is_seen_and_one_inside_is_not(self):
        tensor = self.torch.empty(60, dtype=self.torch.bfloat16)[3:].as_strided((2, 5), (9, 1), 3)
        guard = guards.guarded_like(tensor)
        assert guard.inside.data_ptr() % 16 == 6 and guard.inside.stride() == (9, 1)
        guard.inside.zero_()
        assert guards.touched(guard) == (0, 0, 0)
        guard.inside.as_strided((1,), (1,), guard.inside.storage_offset() + 5).zero_()
        assert guards.touched(guard) == (0, 0, 2)

    def test_differences_are_of_bits_but_nan_is_nan(self):
        one = self.torch.tensor([0.0, 1.0, math.nan, math.inf])
        other = self.torch.tensor([-0.0, 1.0, -math.nan, math.inf])
        assert guards.differences(one, other) == (1, 0)
        assert guards.same_bits(one, one.clone()) and not guards.same_bits(one, other)

    def test_differences_beyond_what_is_allowed(self):
        one, other = self.torch.tensor([1.0, 2.0, math.nan]), self.torch.tensor([1.5, 2.0, 0.0])
        assert guards.differences(one, other, self.torch.tensor([0.5, 0.0, 9.0])) == (1, 2)
        assert guards.differences(one, other, self.torch.tensor([0.4, 0.0, 9.0])) == (2, 0)


class TestValues:
    torch = pytest.importorskip("torch")

    def test_a_copy_that_runs_over_its_end_is_caught(self):
        def one_more(x, y):
            long_x, long_y = (tensor.as_strided((len(tensor) + 1,), (1,)) for tensor in (x, y))
            long_y.copy_(long_x)

        inputs = bytes_in_flight.cast_inputs
        cases = kernel_gates.Cases(sizes=(7,), inputs=inputs, reference=lambda x: x.clone())
        with pytest.raises(GradeFailed, match="4 bytes behind the output"):
            kernel_gates.try_values(one_more, cases, "the tail", "cpu")

    def told(self, kernel):
        with pytest.raises(GradeFailed) as caught:
            kernel_gates.try_values(kernel, bytes_in_flight.CAST_CASES, "the tail", "cpu")
        return caught.value.sentence

    def test_a_right_kernel_passes(self):
        words = kernel_gates.try_values(lambda x, y: y.copy_(x), bytes_in_flight.CAST_CASES, "the tail", "cpu")
        assert "1000003" in words

    def test_a_store_past_the_end(self):
        def kernel(x, y):
            whole = -(-len(x) // 8) * 8
            y.as_strided((whole,), (1,), y.storage_offset())[: len(x)] = x.to(y.dtype)
            y.as_strided((whole,), (1,), y.storage_offset())[len(x) :] = 0

        assert self.told(kernel) == "n = 1: it overwrote 14 bytes behind the output: the tail"

    def test_a_store_before_the_start(self):
        def kernel(x, y):
            y.copy_(x)
            y.as_strided((1,), (1,), y.storage_offset() - 1)[0] = 0

        assert "2 bytes in front of the output" in self.told(kernel)

    def test_a_hole(self):
        told = self.told(lambda x, y: y[: len(x) // 8 * 8].copy_(x[: len(x) // 8 * 8]))
        assert told == "n = 1: it left 1 element unwritten, the first is 0: the tail"

    def test_a_wrong_value(self):
        assert "where torch gives" in self.told(lambda x, y: y.copy_(x.half()))

    def test_truncation_is_not_rounding(self):
        def kernel(x, y):
            y.view(self.torch.int16).copy_(x.view(self.torch.int32) >> 16)

        assert "elements differ" in self.told(kernel)

    def test_another_second_call(self):
        calls = []

        def kernel(x, y):
            y.copy_(x)
            calls.append(1)
            if len(calls) % 2 == 0:
                y[0] = 1.5

        assert "second call" in self.told(kernel)

    def test_a_changed_input(self):
        def kernel(x, y):
            y.copy_(x)
            x[0] = 9

        assert "wrote to its input" in self.told(kernel)

    def test_a_failed_launch(self):
        def kernel(x, y):
            raise RuntimeError("CUDA error: invalid configuration\nmore")

        assert "the launch failed (CUDA error: invalid configuration)" in self.told(kernel)
        assert "mbarrier" not in self.told(kernel)

    def test_a_launch_that_failed_without_a_reason_as_a_wrong_phase_does(self):
        def kernel(x, y):
            raise RuntimeError("CUDA error: unspecified launch failure\nmore")

        assert "phase of an mbarrier" in self.told(kernel)


class TestSpeed:
    def test_enough(self):
        assert "90% of this run's copy ceiling" in speed_gate.judge_speed(3600, 4000, 4800, 0.85, False)

    def test_faster_than_the_ceiling_is_fine_and_faster_than_the_peak_is_not(self):
        assert speed_gate.judge_speed(4700, 4000, 4800, 0.85, False)
        with pytest.raises(GradeFailed, match="did not move all the bytes"):
            speed_gate.judge_speed(4900, 4000, 4800, 0.85, False)
        assert speed_gate.judge_speed(4900, 4000, None, 0.85, False)

    def test_too_slow_is_judged_only_on_a_gpu_of_our_own(self):
        with pytest.raises(GradeFailed, match="in flight"):
            speed_gate.judge_speed(2000, 4000, 4800, 0.85, False)
        assert "measured, not judged" in speed_gate.judge_speed(2000, 4000, 4800, 0.85, True)

    def test_peak(self):
        assert speed_gate.peak_of(3_201_000, 6144) == pytest.approx(4917, abs=1)  # an H200's clock (kHz) and bus (bits)

    @pytest.mark.parametrize(("pids", "busy", "shared"), [(2, "40 %", True), (2, "0 %", False), (1, "90 %", False)])
    def test_an_idle_neighbour_does_not_count(self, pids, busy, shared, monkeypatch):
        monkeypatch.setattr(speed_gate, "IDLE_SECONDS", 0)
        answers = {"--query-compute-apps=pid": ["1"] * pids, "--query-gpu=utilization.gpu": [busy]}
        assert speed_gate.gpu_is_shared(answers.get) is shared


class TestJudge:
    def task(self, *gates):
        return Task("bytes_in_flight.x", "K", gates, ("a", "b", "c"))

    def test_stops_at_the_first_gate_that_the_machine_lacks(self):
        task = self.task(Gate("one", "model", lambda _: "seen"), Gate("two", "gpu", lambda _: 1 / 0))
        verdict = judge(task, None, MODEL_ONLY)
        assert (verdict.status, verdict.gate, verdict.seen) == ("parked", "two", (("one", "seen"),))

    def test_an_error_of_the_answer_is_one_sentence(self):
        verdict = judge(self.task(Gate("one", "model", lambda _: 1 / 0)), None, MODEL_ONLY)
        assert verdict.sentence == "your code raised ZeroDivisionError: division by zero"

    def test_compiler_messages_are_one_line(self):
        raw = (
            "\n\x1b[91merror:\x1b[0m NameError in `f`: name 'foo' is not defined\n  --> a.py:28\n   |\n"
            "28 |     mY[thread] = foo\n   |     ^\n  = note: Caused exception\n"
        )
        told = kernel_gates.compiler_message(RuntimeError(raw))
        assert told == "NameError in `f`: name 'foo' is not defined, at `mY[thread] = foo`"
        assert kernel_gates.compiler_message(ValueError("Type mismatch")) == "Type mismatch"

    @pytest.mark.parametrize(
        "message, advice",
        [
            ("unsupported operand type(s) for *: '_Tensor' and 'Float32'", ": a tensor is no number; "),
            ("unsupported operand type(s) for +: 'Float32' and '_Tensor'", ": a tensor is no number; "),
            ("Type mismatch", ": convert with .to(dtype)"),
            ("'arith.ori' op operand #0 must be signless-integer-like, but got 'f32'", ": & and | bind closer than >"),
            ("Cannot use a Runtime value where a Python value boolean is required", ": a plain function cannot branch"),
            ("another", ""),
        ],
    )
    def test_a_common_compiler_message_says_what_to_do(self, message, advice):
        assert kernel_gates.sentence_on(TypeError(message), lambda: 0).startswith(message + advice)


class TestSpawn:
    def grade(self, *texts):
        return spawn.grade([spawn.Answer(NEEDED, text) for text in texts])

    def test_one_death_costs_one_answer(self, monkeypatch):
        monkeypatch.setattr(spawn, "ANSWER_SECONDS", 2.0)
        monkeypatch.setattr(spawn, "MEMORY_BYTES", 2**28)
        begin = time.monotonic()
        told = self.grade(
            RIGHT,
            "while True: pass",
            "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)",
            "import os; os._exit(0)",
            "held = bytearray(b'x') * 2**30",
            "answer = nothing",
            RIGHT,
        )
        assert [verdict.status for verdict in told] == ["passed", *["failed"] * 5, "passed"]
        parts = ["without end", "SIGSEGV", "exit code 0", "0.25 GiB of memory", "NameError, at `answer = nothing`"]
        for part, verdict in zip(parts, told[1:], strict=False):
            assert part in verdict.sentence
        assert time.monotonic() - begin < 15

    @pytest.mark.parametrize(("queue", "status"), [(60.0, "passed"), (0.0, "failed")])
    def test_the_time_in_which_a_neighbour_has_the_gpu_is_not_its_own(self, queue, status, monkeypatch, tmp_path):
        if not family.LOCKS.exists():
            pytest.skip(f"{family.LOCKS} tells who waits, and is not here")
        monkeypatch.setattr(spawn, "ANSWER_SECONDS", 1.0)
        monkeypatch.setattr(spawn, "QUEUE_SECONDS", queue)
        waits = f"import fcntl\nfcntl.flock(open({str(tmp_path / 'gpu.lock')!r}, 'w'), fcntl.LOCK_EX)\n{RIGHT}"

        def free_later():
            while "-> FLOCK  ADVISORY  WRITE" not in family.LOCKS.read_text():
                time.sleep(0.05)
            time.sleep(2.5)
            fcntl.flock(file, fcntl.LOCK_UN)

        with open(tmp_path / "gpu.lock", "w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            neighbour = threading.Thread(target=free_later)
            neighbour.start()
            [verdict] = self.grade(waits)
            neighbour.join()
        assert verdict.status == status

    def test_a_grader_that_cannot_start(self, monkeypatch):
        monkeypatch.setattr(spawn.sys, "executable", "/bin/false")
        [verdict] = self.grade(RIGHT)
        assert "did not start (exit code 1)" in verdict.sentence

    def test_what_the_answer_prints_or_raises_at_the_end_does_not_matter(self):
        text = RIGHT + "print('x' * 10**6)\nimport atexit; atexit.register(lambda: 1 / 0)\n"
        assert self.grade(text)[0].status == "passed"

    def test_an_unknown_task(self):
        with pytest.raises(ValueError, match="bytes_in_flight has"):
            tasks.find("bytes_in_flight.nothing")
        with pytest.raises(ValueError, match="there are"):
            tasks.find("nothing.at_all")

    def test_a_kernel_task_without_its_definition_is_parked_where_nothing_compiles(self):
        verdict = grader._grade(tasks.find("bytes_in_flight.cast"), Path("no such file"), MODEL_ONLY)
        assert (verdict.status, verdict.gate) == ("parked", "compiles")


class TestReport:
    @pytest.fixture
    def desk(self, tmp_path, monkeypatch):
        monkeypatch.setattr(report, "ROOT", tmp_path)
        monkeypatch.setattr(report, "Progress", functools.partial(Progress, tmp_path / "work" / "progress.json"))
        (tmp_path / "work").mkdir()
        return tmp_path / "work"

    def write(self, path, *sources):
        import nbformat

        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
        nbformat.write(notebook, path)

    def test_an_empty_desk(self, desk, capsys):
        assert report.grade() == 1
        assert "quack-lite start NN" in capsys.readouterr().out
        assert report.grade(parked=True) == 0

    ANSWER = "check('bytes_in_flight.needed', (bytes_needed, loads_needed, naive_is_enough))"

    @pytest.mark.parametrize("targets", [[], ["05"], ["5"], ["bytes_in_flight"], [NEEDED], ["05", NEEDED]])
    def test_finds_the_answer_and_keeps_the_verdict(self, desk, targets, capsys):
        self.write(desk / "05_bytes_in_flight.ipynb", RIGHT, self.ANSWER)
        assert report.grade(targets) == 0
        assert "passed" in capsys.readouterr().out
        assert Progress(desk / "progress.json").read()["tasks"][NEEDED]["status"] == "passed"

    def test_a_wrong_answer_is_exit_code_one(self, desk, capsys):
        self.write(desk / "05_bytes_in_flight.ipynb", "check('bytes_in_flight.needed', 3)")
        assert report.grade() == 1
        assert "three functions" in " ".join(capsys.readouterr().out.split())

    def test_a_notebook_elsewhere_is_graded_and_counts_for_nobody(self, desk, capsys):
        self.write(desk.parent / "05_theirs.ipynb", RIGHT, self.ANSWER)
        assert report.grade([str(desk.parent / "05_theirs.ipynb")]) == 0
        assert Progress(desk / "progress.json").read()["tasks"] == {}

    def test_only_what_is_parked(self, desk, capsys):
        self.write(desk / "05_bytes_in_flight.ipynb", RIGHT, self.ANSWER, "check('bytes_in_flight.mean', None)")
        Progress(desk / "progress.json").record(Verdict(NEEDED, "parked", "numbers"))
        assert report.grade(parked=True) == 0
        tasks_now = Progress(desk / "progress.json").read()["tasks"]
        assert {task: entry["status"] for task, entry in tasks_now.items()} == {NEEDED: "passed"}

    def test_of_a_task_that_is_checked_twice_the_last_counts(self, desk, capsys):
        self.write(desk / "05_bytes_in_flight.ipynb", f"check('{NEEDED}', 3)", RIGHT, self.ANSWER)
        assert report.grade(json=True) == 0
        assert len(json.loads(capsys.readouterr().out)["answers"]) == 1

    def test_json_is_all_that_is_printed(self, desk, capsys):
        self.write(desk / "05_bytes_in_flight.ipynb", RIGHT, self.ANSWER, "check('bytes_in_flight.mean', 3)")
        (desk / "06_torn.ipynb").write_text("{half")
        assert report.grade(json=True) == 1
        told = capsys.readouterr()
        found = json.loads(told.out)
        assert [(one["notebook"], one["status"]) for one in found["answers"]] == [
            ("work/05_bytes_in_flight.ipynb", "passed"),
            ("work/05_bytes_in_flight.ipynb", "failed"),
        ]
        assert found["answers"][0]["seen"][0][0] == "numbers" and found["answers"][1]["sentence"]
        assert (found["passed"], found["parked"], found["failed"]) == (1, 0, 1)
        assert found["unread"][0]["notebook"] == "work/06_torn.ipynb"
        assert "06_torn.ipynb is no notebook that can be read" in told.err and "reset" in told.err

    def test_a_torn_notebook_stops_no_other(self, desk, capsys):
        self.write(desk / "05_bytes_in_flight.ipynb", RIGHT, self.ANSWER)
        for number, text in enumerate(["", "{}", "[1]", '{"cells": [{}], "nbformat": 4}'], start=11):
            (desk / f"{number}_torn.ipynb").write_text(text)
        assert report.grade() == 1
        assert Progress(desk / "progress.json").passed(NEEDED)
        assert capsys.readouterr().err.count("restores an exercise") == 4

    def test_proofs_come_as_a_table(self):
        with pytest.raises(ValueError, match="leave --json and --junit out"):
            report.grade(proofs=True, json=True)

    def test_a_target_that_there_is_not(self, desk):
        self.write(desk / "05_bytes_in_flight.ipynb", "1")
        with pytest.raises(ValueError, match="'softmax' .it has 05_bytes_in_flight"):
            report.grade(["05", "softmax"])
        with pytest.raises(ValueError, match=r"no file nowhere.ipynb"):
            report.grade(["nowhere.ipynb"])
        with pytest.raises(ValueError, match="bytes_in_flight has"):
            report.grade(["bytes_in_flight.nothing"])


class TestResults:
    FOUND = results.Results(
        [
            ("work/05_a.ipynb", Verdict("a.one", "passed", seen=(("values", "n = 1, 2"),))),
            ("work/05_a.ipynb", Verdict("a.two", "failed", "values", 'it said "\x1b[1m<no>\x00"')),
            ("work/05_a.ipynb", Verdict("a.three", "parked", "speed", "it waits for a GPU")),
        ],
        {"work/06_b.ipynb": "it is torn"},
    )

    def test_junit(self, tmp_path):
        results.write_junit(self.FOUND, tmp_path / "out.xml")
        suite = ElementTree.parse(tmp_path / "out.xml").getroot()
        assert [suite.get(name) for name in ("tests", "failures", "skipped", "errors")] == ["4", "1", "1", "1"]
        assert [(case.get("classname"), case.get("name"), case[0].tag) for case in suite] == [
            ("work/05_a.ipynb", "a.one", "system-out"),
            ("work/05_a.ipynb", "a.two", "failure"),
            ("work/05_a.ipynb", "a.three", "skipped"),
            ("work/06_b.ipynb", "read", "error"),
        ]
        assert suite[1][0].get("message") == 'it said "?[1m<no>?"' and suite[1][0].get("type") == "values"

    def test_a_file_that_cannot_be_written(self, tmp_path):
        with pytest.raises(ValueError, match=r"nowhere/out.xml cannot be written .* folder that is there"):
            results.write_junit(self.FOUND, tmp_path / "nowhere" / "out.xml")


class TestProofs:
    def proof(self, task_id, kind, wanted, holds):
        return proofs.Proof(tasks.find(task_id), kind, kind, wanted, Verdict(task_id, "passed"), holds)

    def test_the_last_lines_count_what_this_machine_decides(self):
        cast = "bytes_in_flight.cast"
        found = [
            self.proof(NEEDED, "solution", "passed", True),
            self.proof(cast, "solution", "parked", False),
            self.proof(NEEDED, "wrong", "failed at numbers", True),
            self.proof(cast, "wrong", "failed at shape", False),
            self.proof(cast, "wrong", "parked", True),
        ]
        assert proofs.closing_lines(found, {**MODEL_ONLY, "compiler": True}) == (
            "parked here: 1 task for later gates, 1 planted wrong answer",
            "2 tasks, 2 planted wrong answers, 1 caught, solutions passed 1 of 2",
        )
        assert proofs.closing_lines(found[:1], MODEL_ONLY)[1].startswith("1 task, 0 planted")

    def test_an_exercise_that_is_not_there_is_no_proof(self):
        with pytest.raises(ValueError, match="no exercise is called 'A'"):
            proofs.prove("A")

    def test_lines_off(self):
        assert proofs.lines_off("a\nb\nc", "a\nx\nc") == 1
        assert proofs.lines_off("a\nb", "a\nb\nc\nd") == 2


def test_the_stub_says_how_long_the_solution_was():
    source = "def f():\n    ### BEGIN SOLUTION\n    # why\n    a = 1\n\n    return a\n    ### END SOLUTION\nb = 2"
    assert derive.stub(source) == 'def f():\n    raise NotImplementedError("about 2 lines")\nb = 2'


def test_grade_failed_shows_one_line():
    assert GradeFailed("look there", "a.b, values")._render_traceback_() == ["GradeFailed (a.b, values): look there"]
