"""The time of a kernel on a large input: the project's way of taking a time, with few samples, since there are many."""

import torch

from quack_lite import bench, catalog, launch, reference
from quack_lite.evidence import operands, values
from quack_lite.evidence.cases import Case

ELEMENTS = 2**26
SAMPLES = (10, 20)


def take(kernel: catalog.Kernel, built: launch.Built) -> dict:
    """{shape, seconds, spread, gbps} of the longest rows. All is made ready before the GPU is held alone."""
    n = ELEMENTS if kernel.operator == "copy" else catalog.lengths(kernel)[1]
    m = max(1, ELEMENTS // n)
    with bench.gpu_lock(exclusive=False):
        inputs, numbers = Case("time", m, n).contents(kernel, "cuda")
        partial = operands.at_once(kernel, m, n, "cuda")
        outputs = [
            torch.empty(item.shape(m, n, partial), dtype=item.dtype, device="cuda")
            for item in operands.form(kernel).outputs
        ]
        torch.cuda.synchronize()
    launched = (values.run, kernel, built, inputs, outputs, numbers)
    timing = bench.measure(*launched, bytes_moved=bytes_moved(kernel, m, n), samples=SAMPLES)
    return {"shape": [m, n], "seconds": timing.seconds, "spread": timing.spread, "gbps": timing.gbps}


def bytes_moved(kernel: catalog.Kernel, m: int, n: int) -> int:
    """Useful bytes of one launch."""
    matrix, residual = operands.dtypes(kernel.dtype)
    return reference.bytes_moved(kernel.operator, (m, n), matrix, residual_dtype=residual)
