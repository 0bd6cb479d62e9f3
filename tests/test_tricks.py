"""Answers that look right without being right, at the gates: stand-ins on the CPU, programs, and kernels on a GPU."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from quack_lite import simt
from quack_lite.grading import endings, judge, kernel_gates, notebook, origins, spawn, speed_gate, tasks
from quack_lite.grading.feedback import GradeFailed
from quack_lite.grading.program_gates import Trials, gates
from quack_lite.grading.task import Task
from quack_lite.grading.tasks import bytes_in_flight

ROOT = Path(__file__).resolve().parents[1]
CAST = "bytes_in_flight.cast"
MODEL_ONLY = {"model": True, "compiler": False, "gpu": False, "hopper": False}


class TestValues:
    torch = pytest.importorskip("torch")
    cases = kernel_gates.Cases((7, 64), bytes_in_flight.cast_inputs, lambda x: x.clone(), between=(100, 199))

    def told(self, kernel):
        with pytest.raises(GradeFailed) as caught:
            kernel_gates.try_values(kernel, self.cases, "the tail", "cpu")
        return caught.value.sentence

    def test_a_result_kept_by_object(self):
        kept = {}
        told = self.told(lambda x, y: y.copy_(kept.setdefault(id(x), x.clone())))
        assert told.startswith("n = 7: with new values in the same tensors 7 elements came out wrong, the first at 0")

    def test_an_output_that_becomes_the_input(self):
        assert "n = 7: the output became another tensor's memory" in self.told(lambda x, y: y.set_(x))

    def test_only_the_sizes_that_are_known(self):
        def kernel(x, y):
            if len(x) in self.cases.sizes:
                y.copy_(x)

        assert "unwritten" in self.told(kernel) and "n = 1" in self.told(kernel)

    def test_a_right_one_passes_at_a_size_of_the_day(self):
        words = [kernel_gates.try_values(lambda x, y: y.copy_(x), self.cases, "", "cpu") for _ in range(3)]
        assert all(word.startswith("equal to torch at n = 7, 64, 1") for word in words) and len(set(words)) > 1


class TestPrograms:
    trials = Trials(
        sizes=(64, 128),
        inputs=lambda n, random: (simt.tensor(random.integers(1, 99, n).astype(np.float32), "float32"),),
        reference=lambda x: 2 * x,
        dtype="float32",
        grid=lambda n: 1,
        block=512,
        between=(200, 500),
    )
    task = Task("bytes_in_flight.twice", "P", gates(trials, lambda trial: trial.name), ("a", "b", "c"), trials=trials)

    def verdict(self, program):
        return judge.judge(self.task, program, MODEL_ONLY)

    def test_a_size_of_the_day_comes_before_the_last(self):
        def program(b, x, y, n):
            b.st_global(y, b.tid, 2 * b.ld_global(x, b.tid, where=b.tid < n), where=b.tid < n)

        assert self.verdict(program).seen[-1][1].startswith("n = 128")
        sizes = [trial.size for trial in self.trials.run(program)]
        assert sizes[:3] == [64] * 3 and sizes[6:] == [128] * 3 and 200 <= sizes[3] <= 500

    def test_only_the_rows_that_are_known(self):
        def program(b, x, y, n):
            mine = b.tid < min(n, 128)
            b.st_global(y, b.tid, 2 * b.ld_global(x, b.tid, where=mine), where=mine)

        verdict = self.verdict(program)
        assert verdict.gate == "checks" and "nobody wrote" in verdict.sentence and "128" in verdict.sentence

    def test_numpy_in_the_place_of_stores(self):
        def program(b, x, y, n):
            b.st_global(y, b.tid, b.ld_global(x, b.tid, where=b.tid < 8), where=b.tid < 8)
            y.value[:], y.known[:] = 2 * x.value, True

        assert self.verdict(program).sentence == (
            "n = 64: byte 32 of the output came without b.st_global: store through b"
        )

    def test_numpy_in_the_place_of_loads(self):
        def program(b, x, y, n):
            b.st_global(y, b.tid, 2 * x.value[b.tid % n], where=b.tid < n)

        [mean] = [task for task in tasks.of("bytes_in_flight") if task.id == "bytes_in_flight.mean"]
        assert origins.late_load(self.trials.run(program)[0].run) is None
        verdict = judge.judge(mean, beside_the_model, MODEL_ONLY)
        assert verdict.gate == "traffic" and "the Model saw no load" in verdict.sentence


def beside_the_model(b, x, y, z, n):
    thread = b.ctaid * b.ntid + b.tid
    value = (x.value + y.value) / 2
    for group in (thread, thread + b.ntid * b.nctaid):
        eight = value[(8 * group[:, None] + np.arange(8)) % n]
        b.st_global(z, 8 * group, eight, where=group < n // 8)
    last = n - 1 - thread
    b.st_global(z, last, value[last % n], where=thread < n % 8)


def test_slower_on_new_values_means_kept():
    speed_gate.judge_fresh(1.2e-3, 1e-3)
    with pytest.raises(GradeFailed, match="on new values a call takes 1.4 times as long"):
        speed_gate.judge_fresh(1.4e-3, 1e-3)


def test_a_sentence_is_not_a_book():
    long = judge.explain(ValueError("x" * 10**6), "")
    assert len(long) < judge.LONGEST + 100


@pytest.mark.parametrize(
    ("code", "told"), [(3, "exit code 3"), (-11, "outside the tensors"), (-9, "memory is short"), (-15, "SIGTERM")]
)
def test_what_is_said_of_an_ending(code, told):
    assert told in endings.ended(code)


@pytest.mark.compile
def test_what_the_dsl_writes_anew_in_a_function_of_the_package_is_no_trick():
    program = """
import torch
from quack_lite import launch, reductions
from quack_lite.grading import seal
import test_reductions
broken = seal.taken()
launch.build(test_reductions.block_sum(64), torch.empty(4), torch.empty(4))
print(broken() or "nothing")
reductions.reduce_shared = print
print(broken())
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "tests")))}
    told = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert told.stdout.split() == ["nothing", "quack_lite.reductions.reduce_shared"]


class TestCompiler:
    """torch in the place of the kernel gets no further than the compiler."""

    @pytest.mark.compile
    def test_torch_inside(self):
        pytest.importorskip("cutlass")
        beside = "import torch\ndef cast(x, y, stream):\n    y.copy_(x)\nanswer = cast\n"
        inside = solution(("    blocks = ", "    torch.add(mX, mX)\n    blocks = "))
        patched = solution(
            after="from quack_lite import launch\nlaunch.build = lambda host, *_: lambda x, y: y.copy_(x)"
        )
        told = [verdict.sentence for verdict in spawn.grade([spawn.Answer(CAST, beside), inside, patched])]
        assert "must be decorated with @cute.jit" in told[0]
        assert "must be Tensor" in told[1] and "at `torch.add(mX, mX)`" in told[1]
        assert told[2].startswith("your code replaced quack_lite.launch.build, ")


def solution(*changes, after=""):
    """The solution of the cast, changed, with more lines at its end."""

    def change(source):
        for right, wrong in changes:
            source = source.replace(right, wrong)
        return source

    path = ROOT / "solutions" / "05_bytes_in_flight.ipynb"
    [plain], [answer] = ([one for one in notebook.answers(path, how) if one.task == CAST] for how in (str, change))
    assert changes == () or answer.text != plain.text
    return spawn.Answer(CAST, f"{answer.text}\n{after}\n")


ON_A_GPU = {
    "a stream of its own": (((", stream=stream)", ")"),), "", "it ran on another stream than the one it is given"),
    "only the sizes of the check": (
        (("if group < n // 8:", "if group < n // 8 and group < 2**17:"),),
        "",
        "after timing",
    ),
    "a timer replaced": (
        (),
        "torch.cuda.Event.elapsed_time = lambda *_: 1.0",
        "replaced torch.cuda.Event.elapsed_time",
    ),
    "a comparison replaced": ((), "torch.Tensor.sum = lambda *_: 0", "your code replaced torch.Tensor.sum"),
    "an access far outside": (
        (("mY[n - 1 - group] = ", "mY[n - 1 - group + 2**40] = "),),
        "",
        "the launch failed",
    ),
    "a GPU that never ends": ((), "torch.cuda._sleep(2**62); torch.cuda.synchronize()", "a loop or a wait without end"),
    "more memory than a GPU has": (
        (),
        "held = torch.empty(2**50, dtype=torch.uint8, device='cuda')",
        "raised OutOfMemoryError",
    ),
    "a child with the GPU's memory": (
        (),
        "import subprocess, sys, time\n"
        "code = 'import time, torch; x = torch.zeros(2**28, device=\"cuda\"); time.sleep(600)'\n"
        "subprocess.Popen([sys.executable, '-c', code])\ntime.sleep(600)",
        "a loop or a wait without end",
    ),
}


@pytest.mark.hopper
class TestKernels:
    @pytest.mark.parametrize(("changes", "after", "told"), ON_A_GPU.values(), ids=ON_A_GPU)
    def test_a_kernel_gets_its_sentence_and_gives_the_memory_back(self, changes, after, told):
        import torch

        before = torch.cuda.mem_get_info()[0]
        hostile, right = spawn.grade([solution(*changes, after=after), solution()])
        assert hostile.status == "failed" and told in hostile.sentence
        assert right.status == "passed", right
        if "PYTEST_XDIST_WORKER" not in os.environ:  # others would take and give memory meanwhile
            assert torch.cuda.mem_get_info()[0] > before - 2**28

    cases = kernel_gates.Cases((2**26,), bytes_in_flight.cast_inputs, lambda x: x.clone())

    def timed(self, kernel):
        submission = SimpleNamespace(built=kernel)
        return speed_gate._best_seconds(submission, self.cases, 2**26, 2**29)

    def test_a_result_kept_from_the_check_for_the_timing(self):
        kept = set()

        def by_address(x, y):
            if x.data_ptr() not in kept:
                y.copy_(x)
            kept.add(x.data_ptr())

        with pytest.raises(GradeFailed, match="timed on new values, .* were wrong"):
            self.timed(by_address)

    def test_work_left_out_where_nothing_is_new(self):
        seen = set()

        def by_version(x, y):
            if (x._version, x.data_ptr()) not in seen:
                y.copy_(x)
            seen.add((x._version, x.data_ptr()))

        with pytest.raises(GradeFailed, match="times as long as on values that it has seen"):
            self.timed(by_version)

    def test_an_honest_copy_is_as_fast_on_new_values(self):
        assert self.timed(lambda x, y: y.copy_(x)) > 0
