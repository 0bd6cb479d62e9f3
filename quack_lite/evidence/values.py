"""A kernel's values by the tolerance rule, its guard regions, and its bits: alone, in a batch, a second time."""

import torch

from quack_lite import catalog, launch, reference
from quack_lite.evidence import guard
from quack_lite.evidence.cases import DTYPES, Case, middle


def check(kernel: catalog.Kernel, built: launch.Built, cases: list[Case], device="cuda") -> tuple[dict, list[str]]:
    """({case: largest error as a share of the tolerance}, one sentence for each thing that is wrong)."""
    errors, problems = {}, []
    for case in cases:
        errors[case.name], found = check_case(kernel, built, case, device)
        problems += [f"{case.name} ({case.rows} x {case.n}): {sentence}" for sentence in found]
    if kernel.operator != "copy":
        problems += same_bits(kernel, built, device)
    return errors, problems


def check_case(kernel, built, case: Case, device) -> tuple[float, list[str]]:
    """(error, sentences) of one case."""
    dtype = DTYPES[kernel.dtype]
    place = (case.rows, case.n, dtype, case.pad, case.start, device)
    x, y = guard.surround(*place, pattern=guard.INPUT_PATTERN), guard.surround(*place)
    x.view.copy_(case.input(dtype))
    run(kernel, built, x.view, y.view)
    error = reference.worst_error(kernel.operator, x.view, y.view)
    problems = y.faults()
    if error > 1:
        problems.append(f"the largest error is {error:.3g} of the tolerance")
    if kernel.operator == "copy" and not torch.equal(bits(x.view), bits(y.view)):
        problems.append("the copy has other bits")
    return error, problems


def run(kernel: catalog.Kernel, built: launch.Built, x: torch.Tensor, y: torch.Tensor) -> None:
    """Launches on x, y (rows, n); copy gets the elements in one line."""
    built(*((x.view(-1), y.view(-1)) if kernel.operator == "copy" else (x, y)))


def same_bits(kernel: catalog.Kernel, built: launch.Built, device) -> list[str]:
    """A row's bits depend neither on the rows beside it nor on the run."""
    dtype, rows, n = DTYPES[kernel.dtype], kernel.plan.rows + 1, middle(kernel.plan)
    x, first, second, alone = (guard.surround(rows, n, dtype, device=device).view for _ in range(4))
    x.copy_(Case("bits", rows, n).input(dtype))
    built(x, first)
    built(x, second)
    for i in range(len(x)):
        built(x[i : i + 1], alone[i : i + 1])
    problems = []
    if not torch.equal(bits(first), bits(second)):
        problems.append("two runs gave different bits")
    if not torch.equal(bits(first), bits(alone)):
        problems.append("a row alone has other bits than in a batch")
    return problems


def bits(x: torch.Tensor) -> torch.Tensor:
    """The elements as integers, since NaN is equal to nothing."""
    return x.contiguous().view(guard.INTEGER[x.itemsize])
