"""One job in a process of its own: python -m quack_lite.bench.worker JOB [--helpers K] [--lost PEER@CASE]...

First everything is compiled: ours here, the peers that keep what they compile on disk also in K helpers, processes
that do nothing else. Then case after case is checked and timed, alone on the GPU, and the record is written. Compiling
goes on beside other jobs' timing: what torch.compile times to choose a kernel waits for its turn, as everybody does,
and a first launch lasts a millisecond, which no median sees.

Before a peer runs for the first time its name is printed behind MARK: where the process ends, that was the reason, and
it can be started again with --lost.
"""

import argparse
import contextlib
import dataclasses
import faulthandler
import gc
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import wraps

import torch

from quack_lite.bench import check, peers, records
from quack_lite.bench.cases import INPUTS, Case, Job, Tensors, bytes_moved, cases, job, tensors
from quack_lite.bench.ceilings import ceilings
from quack_lite.bench.peers import COMPILED, LIGER, OURS, QUACK, TUNED, as_tuple
from quack_lite.bench.protocol import Timing, gpu_lock, holds, measure

MARK = "@first "
COSTS = {TUNED: 10, COMPILED: 2, QUACK: 1, LIGER: 1}  # of compiling, about; of those that keep it on disk
PATIENCE_SECONDS = 180  # for one first call; a hang ends the process
SAMPLES, SECONDS = (10, 40), 0.12  # a call of half a millisecond or more: its median is settled by then
TOO_SLOW_SECONDS = 0.25
RETRIES, PAUSE_SECONDS = 5, 4.0  # where others hold the memory for the moment
SHOWN = 90  # letters of an error

Task = tuple[Case, str]


def main(argv=None) -> int:
    """Runs a job, or a helper's part of one."""
    parser = argparse.ArgumentParser()
    parser.add_argument("job")
    parser.add_argument("--helpers", type=int, default=0)
    parser.add_argument("--part", type=int, help="help: compile this part")
    parser.add_argument("--lost", action="append", default=[])
    arguments = parser.parse_args(argv)
    wait_for_turns()
    this = job(arguments.job)
    parts = deal(tasks(this), arguments.helpers + 1)
    with torch.set_grad_enabled(this.backward):
        if arguments.part is not None:
            first_calls(this, parts[arguments.part], arguments.lost)
            return 0
        helpers = [start_helper(this, i, arguments.helpers, arguments.lost) for i in range(1, len(parts))]
        limit = dataclasses.asdict(ceilings())
        lost = arguments.lost + compile_all(this, parts, helpers, arguments.lost)
        write(this, limit, [measure_case(this, case, lost) for case in cases(this)])
    return 0


def tasks(job: Job) -> list[Task]:
    """What has to be compiled: each case with each peer."""
    return [(case, name) for case in cases(job) for name in peers.names(job, case)]


def deal(tasks: list[Task], parts: int) -> list[list[Task]]:
    """The tasks that a helper can take, the costly ones first, one to each in turn; each part in the cases' order."""
    shared = [task for task in tasks if task[1] in COSTS]
    costly = sorted(shared, key=lambda task: -COSTS[task[1]])
    return [[task for task in shared if task in costly[i::parts]] for i in range(parts)]


def compile_all(job: Job, parts: list[list[Task]], helpers: list[subprocess.Popen], lost: list[str]) -> list[str]:
    """Compiles everything for this process, ours before any library is imported; says at what helpers ended early."""
    first_calls(job, [task for task in tasks(job) if task[1] == OURS], lost)
    first_calls(job, parts[0], lost)
    heard = [(helper.communicate()[0], helper.returncode) for helper in helpers]
    also_lost = [at for said, code in heard if code and (at := last_mark(said))]
    for part in parts[1:]:
        first_calls(job, part, lost + also_lost)
    return also_lost


def start_helper(job: Job, part: int, helpers: int, lost: list[str]) -> subprocess.Popen:
    """A process that compiles a part."""
    words = [job.name, "--part", str(part), "--helpers", str(helpers), *(f"--lost={at}" for at in lost)]
    command = [sys.executable, "-m", "quack_lite.bench.worker", *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


def last_mark(said: str) -> str | None:
    """The peer and the case that a process was at last."""
    marks = [line for line in said.splitlines() if line.startswith(MARK)]
    return marks[-1].removeprefix(MARK) if marks else None


def first_calls(job: Job, part: list[Task], lost: list[str]) -> None:
    """Calls each of the peers once. What it refuses is not of interest yet; a dead GPU context ends the process."""
    for case in dict.fromkeys(case for case, _ in part):
        names = [name for other, name in part if other == case and place(name, case) not in lost]
        with contextlib.suppress(torch.OutOfMemoryError):
            first_calls_of(job, case, names)
        give_back()


def first_calls_of(job: Job, case: Case, names: list[str]) -> None:
    """Calls each peer once for a case."""
    given = make(job, case)
    for name in names:
        with marked(name, case), contextlib.suppress(Exception):
            call(job, name, given)


@contextlib.contextmanager
def marked(name: str, case: Case) -> Iterator[None]:
    """Says who runs; ends the process if that lasts too long or leaves the GPU's context dead."""
    print(MARK + place(name, case), flush=True)
    faulthandler.dump_traceback_later(PATIENCE_SECONDS, exit=True)
    yield
    torch.cuda.synchronize()
    faulthandler.cancel_dump_traceback_later()


def place(name: str, case: Case) -> str:
    """As quack-kernels@4096."""
    return f"{name}@{case.label}"


def make(job: Job, case: Case) -> Tensors:
    """The case's tensors, while nobody is timing."""
    with gpu_lock(exclusive=False):
        given = tensors(job, case)
        torch.cuda.synchronize()
    return given


def call(job: Job, name: str, given: Tensors) -> tuple[tuple, tuple, Callable[[], object]]:
    """(outputs, gradients, what is to be timed) of a peer; the gradients are those for given.checked."""
    peer = peers.find(name, job.operator)
    if not job.backward:
        return as_tuple(peer.forward(*given.inputs)), (), lambda: peer.forward(*given.inputs)
    outputs, backward = peer.backward(*given.inputs)
    sent, checked = (
        [dy.to(y.dtype) for dy, y in zip(gradients, outputs, strict=True)]
        for gradients in (given.gradients, given.checked)
    )
    return outputs, as_tuple(backward(*checked)), lambda: backward(*sent)


def measure_case(job: Job, case: Case, lost: list[str]) -> dict:
    """{m, n, weights, gbps: {peer: GB/s, or why there is none}, spread, error, ours_over} of a case.

    error: as a share of the tolerance; a peer's is wider than ours, see check.
    """
    row = {"m": case.m, "n": case.n, "gbps": {}, "spread": {}, "error": {}}
    if "w" in INPUTS[job.operator]:
        row["weights"] = case.weights
    given = patiently(lambda: make(job, case))
    for name in peers.names(job, case):
        cell, timing, error = measure_cell(job, case, name, given, lost)
        row["gbps"][name] = cell
        if timing:
            row["spread"][name] = round(timing.spread, 4)
            row["error"][name] = round(error, 3)
    row["ours_over"] = ours_over(row["gbps"])
    del given
    give_back()
    return row


def measure_cell(job: Job, case: Case, name: str, given: Tensors, lost: list[str]) -> tuple:
    """(GB/s or why there is none, the timing or None, the error) of a peer."""
    if place(name, case) in lost:
        return "lost: it ended its process", None, 0.0
    with marked(name, case):
        try:
            timing, error = patiently(lambda: measure_peer(job, case, name, given))
        except Exception as refusal:  # a peer may raise anything at a shape that it does not take
            return refused(refusal), None, 0.0
        finally:
            torch.cuda.empty_cache()
    return said(timing, error), timing, error


def measure_peer(job: Job, case: Case, name: str, given: Tensors) -> tuple[Timing | None, float]:
    """(its timing, its error); no timing if it is wrong, or slow beyond TOO_SLOW_SECONDS, told as the error -1."""
    with gpu_lock(exclusive=False):
        outputs, gradients, timed = call(job, name, given)
        error_of = check.our_error if name == OURS else check.peer_error
        error = error_of(job, given, outputs, gradients)
        del outputs, gradients
        if error > 1:
            return None, error
        if seconds_of(timed) > TOO_SLOW_SECONDS:
            return None, -1.0
    return measure(timed, bytes_moved=bytes_moved(job, case), samples=SAMPLES, seconds=SECONDS), error


def seconds_of(fn: Callable[[], object]) -> float:
    """Of one call, by the clock on the wall."""
    torch.cuda.synchronize()
    start = time.perf_counter()
    fn()
    torch.cuda.synchronize()
    return time.perf_counter() - start


def patiently(fn: Callable):
    """fn(), again after a pause where other processes hold the memory."""
    for _ in range(RETRIES):
        try:
            return fn()
        except torch.OutOfMemoryError:
            pass
        give_back()
        time.sleep(PAUSE_SECONDS)
    return fn()


def give_back() -> None:
    """Frees what nobody holds any more, for the other processes."""
    gc.collect()
    torch.cuda.empty_cache()


def said(timing: Timing | None, error: float) -> float | str:
    """A cell of the record."""
    if timing:
        return round(timing.gbps, 1)
    if error < 0:
        return f"too slow: more than {TOO_SLOW_SECONDS} s a call"
    return wrongness(error)


def wrongness(error: float) -> str:
    """What a failed comparison says."""
    return f"wrong: {'NaN' if error == float('inf') else f'{error:.1f} times the tolerance'}"


def refused(error: Exception) -> str:
    """What an exception says in a cell."""
    first, *_ = str(error).strip().splitlines() or [""]
    return f"refused: {type(error).__name__}: {first}"[:SHOWN].rstrip(": ")


def ours_over(gbps: dict[str, float | str]) -> dict[str, float]:
    """{peer: our speed over the peer's} of the peers whose values are right."""
    ours = gbps[OURS]
    right = {name: rate for name, rate in gbps.items() if isinstance(rate, float) and name != OURS}
    return {name: round(ours / rate, 3) for name, rate in right.items()} if isinstance(ours, float) else {}


def write(job: Job, ceilings: dict, rows: list[dict]) -> None:
    """Writes the record."""
    about = {"operator": job.operator, "direction": "backward" if job.backward else "forward", "dtype": job.dtype}
    records.write(f"bench_{job.name}", {**about, "ceilings": ceilings, "rows": rows, **records.circumstances()})


def wait_for_turns() -> None:
    """From here on torch.compile holds the GPU while it times kernels to choose one."""
    from torch._inductor.runtime.benchmarking import benchmarker

    benchmarker.benchmark_gpu = in_turn(benchmarker.benchmark_gpu)


def in_turn(timed: Callable) -> Callable:
    """The function, run while this process holds the GPU."""

    @wraps(timed)
    def waits(*args, **kwargs):
        with contextlib.nullcontext() if holds() else gpu_lock(exclusive=True):
            return timed(*args, **kwargs)

    return waits


if __name__ == "__main__":
    raise SystemExit(main())
