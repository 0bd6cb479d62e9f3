"""What runs under a sanitizer tool: small launches whose tensors end where their allocations end."""

import torch

from quack_lite import catalog, launch, reference
from quack_lite.evidence import guard, values
from quack_lite.evidence.cases import DTYPES, Case, tool_cases


def launch_watched(kernel: catalog.Kernel, built: launch.Built) -> list[str]:
    """Launches the kernel on its small cases; a sentence for each without right values: nothing was watched there."""
    return [
        f"{case.name}: wrong values, or not launched: error {error:.3g} of the tolerance"
        for case in tool_cases(kernel)
        if (error := watched_error(kernel, built, case)) > 1
    ]


def watched_error(kernel: catalog.Kernel, built: launch.Built, case: Case) -> float:
    """The error of one launch. Only the rows of the input are ever written, the ends between them are not."""
    dtype = DTYPES[kernel.dtype]
    values_in = case.input(dtype)
    x, y = allocate(case, dtype), allocate(case, dtype)
    x.copy_(values_in)
    y.view(guard.INTEGER[y.itemsize]).fill_(guard.PATTERN[guard.INTEGER[y.itemsize]])
    values.run(kernel, built, x, y)
    torch.cuda.synchronize()
    return reference.worst_error(kernel.operator, values_in, y.contiguous().cpu())


def allocate(case: Case, dtype: torch.dtype) -> torch.Tensor:
    """An allocation of its own (rows, n), uninitialised, without the padding behind the last row."""
    stride = case.n + case.pad
    flat = torch.empty(case.rows * stride - case.pad, dtype=dtype, device="cuda")
    return flat.as_strided((case.rows, case.n), (stride, 1))
