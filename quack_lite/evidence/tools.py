"""What runs under a sanitizer tool: small launches whose tensors end where their allocations end.

The tool slows every kernel down, torch's too, and a process of its own loads each anew. So contents are made, and
results compared, on the CPU, and nothing but the kernel runs on the GPU.
"""

from dataclasses import replace

import torch

from quack_lite import catalog, launch, reference
from quack_lite.evidence import guard, operands, values
from quack_lite.evidence.cases import Case, tool_cases, watched_at_once

ROWS_MADE = 64  # different ones; more rows repeat them


def launch_watched(kernel: catalog.Kernel, built: launch.Built, device="cuda") -> list[str]:
    """Launches the kernel on its small cases; a sentence for each without right values: nothing was watched there."""
    return [
        f"{case.name}: wrong values, or not launched: error {error:.3g} of the tolerance"
        for case in tool_cases(kernel)
        if (error := watched_error(kernel, built, case, device)) > 1
    ]


def watched_error(kernel: catalog.Kernel, built: launch.Built, case: Case, device) -> float:
    """The error of one launch. Only the elements of the inputs are ever written, the ends between them are not."""
    form, made = operands.form(kernel), replace(case, rows=min(case.rows, ROWS_MADE)).contents(kernel)
    source = torch.arange(case.rows) % ROWS_MADE
    at_once = watched_at_once(kernel, case)
    items = enumerate(form.inputs + form.outputs)
    tensors = [allocate(item, number, case, kernel, at_once, device) for number, item in items]
    inputs, outputs = tensors[: len(form.inputs)], tensors[len(form.inputs) :]
    for x, content in zip(inputs, of_rows(form.inputs, made.inputs, source), strict=True):
        copy(content, x)
    for y in outputs:
        integers = values.as_integers(y)
        copy(torch.full(y.shape, guard.PATTERN[integers.dtype], dtype=integers.dtype), integers)
    values.run(kernel, built, inputs, outputs, made.numbers, at_once)
    rows = looked_at(kernel, case.rows)
    results = of_rows(form.outputs, [on_the_cpu(y) for y in outputs], rows)
    given = of_rows(form.inputs, made.inputs, source[rows])
    return reference.worst_error(kernel.operator, (*given, *made.numbers), tuple(results))


def copy(source: torch.Tensor, to: torch.Tensor) -> None:
    """Copies between CPU and GPU row by row where there is padding, since torch would start a kernel for it."""
    whole = source.is_contiguous() and to.is_contiguous()
    for x, y in [(source, to)] if whole else zip(source, to, strict=True):
        y.copy_(x)


def on_the_cpu(y: torch.Tensor) -> torch.Tensor:
    """A contiguous copy on the CPU."""
    copied = torch.empty(y.shape, dtype=y.dtype)
    copy(y, copied)
    return copied


def looked_at(kernel: catalog.Kernel, m: int) -> torch.Tensor:
    """The rows whose values are looked at: all where sums over them are a result, or they are few; else some."""
    if m <= ROWS_MADE or operands.has_partial_sums(kernel):
        return torch.arange(m)
    return torch.linspace(0, m - 1, ROWS_MADE).long()


def of_rows(items, tensors, rows: torch.Tensor) -> list[torch.Tensor]:
    """These rows of the tensors that hold something of each row; the others as they are."""
    return [x[rows] if item.kind in operands.ONE_A_ROW else x for item, x in zip(items, tensors, strict=True)]


def allocate(item: operands.Operand, number: int, case: Case, kernel, partial: int, device) -> torch.Tensor:
    """An allocation of its own, uninitialised, that ends with the operand's last element."""
    shape = item.shape(case.rows, case.n, partial)
    place = values.whereabouts(item, number, case, kernel.plan.vector)
    start, pad = place.get("start", 0), place.get("pad", 0)
    strides = (shape[1] + pad, 1) if len(shape) == 2 else (1,)
    flat = torch.empty(start + shape[0] * strides[0] - pad, dtype=item.dtype, device=device)
    return flat.as_strided(shape, strides, start)
