"""`python -m quack_lite.bench.host_time`: what a call costs the host, ours and torch's; compile times; recompilations.

The kernels are compiled before and the rows are few, so that the GPU is never waited for.
"""

import contextlib
import statistics
import time
from collections.abc import Callable, Iterator

import torch

from quack_lite import catalog, launch
from quack_lite.bench import peers, records
from quack_lite.bench.cases import INPUTS, OUTPUTS, Case, Job, make
from quack_lite.bench.peers import OURS, TORCH, as_tuple, kept_graph
from quack_lite.bench.protocol import gpu_lock

M, N = 8, 4096
OTHER_ROWS, OTHER_LENGTHS = (1, 3, 100), (4095, 4000)  # within the plans of M and N
COMPILED_LENGTHS = (4096, 131072)
ROUNDS, CALLS = 9, 100


def main() -> int:
    """Measures and writes records/host_time.json."""
    compiled = [kernel for name in INPUTS if name != "copy" for kernel in compile_seconds(name)]
    with gpu_lock(exclusive=True):
        rows = [row for operator in INPUTS for row in measure_operator(operator)]
        again = {operator: recompilations(operator) for operator in INPUTS}
    content = {"m": M, "n": N, "rows": rows, "compile_seconds": dict(compiled), "recompilations": again}
    records.write("host_time", {**content, **records.circumstances()})
    return 0


def compile_seconds(operator: str) -> list[tuple[str, float]]:
    """(kernel, seconds) of compiling the forward and the backward kernels for COMPILED_LENGTHS in bf16."""
    found = []
    for kernel in (operator, f"{operator}_backward"):
        for n in COMPILED_LENGTHS:
            with counted() as compilations:
                start = time.perf_counter()
                built = catalog.find(kernel, "bfloat16", n)
                seconds = time.perf_counter() - start
            if compilations:
                found.append((built.name, round(seconds, 2)))
    return found


def measure_operator(operator: str) -> list[dict]:
    """Rows {operator, weights, call, us: {peer: microseconds}, ours_over} of an operator."""
    weights = ("fp32", "bf16") if "w" in INPUTS[operator] else ("fp32",)
    return [row for each in weights for row in measure_calls(operator, Case(M, N, each))]


def measure_calls(operator: str, case: Case) -> list[dict]:
    """The rows for one dtype of weights: no grad, the forward with its graph, forward and backward."""
    job = Job(operator, False, "bf16")
    inputs, sent = make(INPUTS[operator], job, case), make(OUTPUTS[operator], job, case)
    times = {
        name: {what: host_microseconds(fn) for what, fn in calls_of(name, operator, inputs, sent).items()}
        for name in (OURS, TORCH)
    }
    return [row_of(operator, case, what, {name: times[name][what] for name in times}) for what in times[OURS]]


def row_of(operator: str, case: Case, what: str, us: dict[str, float]) -> dict:
    """A row of the record."""
    over = round(us[OURS] / us[TORCH], 3)
    return {"operator": operator, "weights": case.weights, "call": what, "us": us, "ours_share_of_torchs": over}


def calls_of(name: str, operator: str, inputs: tuple, sent: tuple) -> dict[str, Callable]:
    """{what: a call} of a peer."""
    forward = peers.find(name, operator).forward
    leaves = [x.detach().requires_grad_(x.is_floating_point()) for x in inputs]
    sent = [dy.to(y.dtype) for dy, y in zip(sent, as_tuple(forward(*inputs)), strict=True)]

    def without_grad():
        with torch.no_grad():
            forward(*inputs)

    def both():
        kept_graph(forward, *inputs)[1](*sent)

    return {"no grad": without_grad, "forward with grad": lambda: forward(*leaves), "forward and backward": both}


def host_microseconds(fn: Callable[[], object]) -> float:
    """The median over rounds of the mean time in which a call returns."""
    rounds = []
    for _ in range(ROUNDS + 1):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(CALLS):
            fn()
        rounds.append((time.perf_counter() - start) / CALLS)
    return round(statistics.median(rounds[1:]) * 1e6, 2)


def recompilations(operator: str) -> dict[str, int]:
    """How often something is compiled when the number of rows changes within a plan, and when n does."""
    forward, job = peers.find(OURS, operator).forward, Job(operator, False, "bf16")
    kernel = catalog.find(operator, "bfloat16", N) if operator != "copy" else None
    within = [n for n in OTHER_LENGTHS if kernel is not None and catalog.find(operator, "bfloat16", n) is kernel]
    found = {}
    for what, cases in {"m": [Case(m, N) for m in OTHER_ROWS], "n": [Case(M, n) for n in within]}.items():
        with counted() as compilations:
            for case in cases:
                forward(*make(INPUTS[operator], job, case))
        found[what] = len(compilations)
    return found


@contextlib.contextmanager
def counted() -> Iterator[list[str]]:
    """A list that gets an entry for each compilation in the block."""
    compilations, compile_host = [], launch.compile_host

    def counting(host, *arguments, **options):
        compilations.append(launch.host_name(host))
        return compile_host(host, *arguments, **options)

    launch.compile_host = counting
    try:
        yield compilations
    finally:
        launch.compile_host = compile_host


if __name__ == "__main__":
    raise SystemExit(main())
