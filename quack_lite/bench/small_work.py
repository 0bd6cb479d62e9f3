"""`python -m quack_lite.bench.small_work`: microseconds of few rows, ours and QuACK's, forward in bf16."""

from collections.abc import Callable

import torch

from quack_lite.bench import check, peers, records
from quack_lite.bench.cases import Case, Job, tensors
from quack_lite.bench.peers import OURS, QUACK, as_tuple
from quack_lite.bench.protocol import gpu_lock, measure
from quack_lite.bench.worker import ours_over, refused, wrongness

OPERATORS = ("softmax", "rms_norm", "layer_norm", "cross_entropy")
ROWS = (1, 8, 128)
LENGTHS = (4096, 131072)


def main() -> int:
    """Measures and writes records/small_work.json."""
    cases = [(operator, Case(m, n)) for operator in OPERATORS for n in LENGTHS for m in ROWS]
    with torch.no_grad():
        for operator, case in cases:  # ours is compiled before QuACK is imported
            peers.find(OURS, operator).forward(*tensors(Job(operator, False, "bf16"), case).inputs)
        rows = [measure_case(Job(operator, False, "bf16"), case) for operator, case in cases]
    records.write("small_work", {"rows": rows, **records.circumstances()})
    return 0


def measure_case(job: Job, case: Case) -> dict:
    """{operator, m, n, us: {peer: microseconds, or why there are none}, ours_over: {peer: its time over ours}}."""
    given = tensors(job, case)
    names = [name for name in peers.names(job, case) if name in (OURS, QUACK)]
    us = {name: microseconds(job, name, given) for name in names}
    speeds = {name: 1 / time if isinstance(time, float) else time for name, time in us.items()}
    return {"operator": job.operator, "m": case.m, "n": case.n, "us": us, "ours_over": ours_over(speeds)}


def microseconds(job: Job, name: str, given) -> float | str:
    """The median time of a call on the GPU, or why there is none."""
    try:
        forward: Callable = peers.find(name, job.operator).forward
        with gpu_lock(exclusive=False):
            error_of = check.our_error if name == OURS else check.peer_error
            error = error_of(job, given, as_tuple(forward(*given.inputs)), ())
        return wrongness(error) if error > 1 else round(measure(forward, *given.inputs, bytes_moved=0).seconds * 1e6, 2)
    except Exception as refusal:  # as in worker.measure_cell
        return refused(refusal)


if __name__ == "__main__":
    raise SystemExit(main())
