"""A kernel's values by the tolerance rule, its guard regions, and its bits: alone, in a batch, in place, again."""

from typing import NamedTuple

import torch

from quack_lite import catalog, launch, reference
from quack_lite.evidence import guard, operands
from quack_lite.evidence.cases import Case, middle, row_padding, start_of_vector

IN_PLACE = ("cross_entropy_backward", "smoothed_cross_entropy_backward")  # may write the gradient over the first input


class Launch(NamedTuple):
    """Guarded tensors of one launch, and its numbers."""

    inputs: tuple[guard.Guarded, ...]
    outputs: tuple[guard.Guarded, ...]
    numbers: tuple


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
    this = prepare(kernel, case, device)
    before = [item.bits.clone() for item in this.inputs]
    inputs, outputs = views(this.inputs), views(this.outputs)
    run(kernel, built, inputs, outputs, this.numbers)
    error = reference.worst_error(kernel.operator, (*inputs, *this.numbers), outputs)
    problems = guard_faults(kernel, this, before)
    if error > 1:
        problems.append(f"the largest error is {error:.3g} of the tolerance")
    if kernel.operator == "copy" and not torch.equal(bits(inputs[0]), bits(outputs[0])):
        problems.append("the copy has other bits")
    return error, problems


def prepare(kernel: catalog.Kernel, case: Case, device) -> Launch:
    """The tensors of a case: inputs with their contents, outputs of nothing but the pattern."""
    this, contents = operands.form(kernel), case.contents(kernel, device)
    partial = operands.at_once(kernel, case.rows, case.n, device)

    def place(items, pattern, first):
        return [
            guard.surround(
                item.shape(case.rows, case.n, partial),
                item.dtype,
                **whereabouts(item, number, case, kernel.plan.vector),
                device=device,
                pattern=pattern,
            )
            for number, item in enumerate(items, first)
        ]

    inputs = place(this.inputs, guard.INPUT_PATTERN, 0)
    for item, content in zip(inputs, contents.inputs, strict=True):
        item.view.copy_(content)
    return Launch(tuple(inputs), tuple(place(this.outputs, guard.PATTERN, len(inputs))), contents.numbers)


def whereabouts(item: operands.Operand, number: int, case: Case, vector: int) -> dict[str, int]:
    """Padding and start of an operand, the number-th of the launch."""
    if item.kind in operands.MATRICES:
        return {"pad": row_padding(case, number, vector), "start": case.start}
    return {"start": 0 if item.is_partial else start_of_vector(case)}


def views(guarded) -> tuple[torch.Tensor, ...]:
    """The tensors without what surrounds them."""
    return tuple(item.view for item in guarded)


def guard_faults(kernel: catalog.Kernel, this: Launch, before: list[torch.Tensor]) -> list[str]:
    """One sentence for each output not written as a whole or written beyond, and for each input written to."""
    form = operands.form(kernel)
    found = [
        f"{item.name}: {sentence}"
        for item, guarded in zip(form.outputs, this.outputs, strict=True)
        for sentence in guarded.faults()
    ]
    for item, guarded, was in zip(form.inputs, this.inputs, before, strict=True):
        if not torch.equal(guarded.bits, was):
            found.append(f"{item.name}: the input, or what lies round it, was written")
    return found


def run(kernel: catalog.Kernel, built: launch.Built, inputs, outputs, numbers=(), at_once: int | None = None) -> None:
    """Launches; copy gets the elements of its matrices (1, n) in one line.

    at_once: rows that are worked on at once, for a kernel that takes groups; as many as the device takes.
    """
    tensors = (*inputs, *outputs)
    if operands.takes_groups(kernel):
        m, n = inputs[0].shape
        rows = at_once or operands.at_once(kernel, m, n, inputs[0].device)
        numbers = (*numbers, -(-rows // kernel.plan.rows))
    built(*((x.view(-1) for x in tensors) if kernel.operator == "copy" else tensors), *numbers)


def same_bits(kernel: catalog.Kernel, built: launch.Built, device) -> list[str]:
    """A row's bits depend neither on the rows beside it nor on the run, nor on whether it is written in place."""
    form, case = operands.form(kernel), Case("bits", 2 * kernel.plan.rows + 1, middle(kernel))
    this = prepare(kernel, case, device)
    inputs, first = views(this.inputs), views(this.outputs)
    second, alone = (views(prepare(kernel, case, device).outputs) for _ in range(2))
    run(kernel, built, inputs, first, this.numbers)
    run(kernel, built, inputs, second, this.numbers)
    problems = []
    if not equal(first, second):
        problems.append("two runs gave different bits")
    partial = operands.at_once(kernel, 1, case.n, device)
    for i in range(case.rows):
        row = [one_row(items, tensors, i, partial) for items, tensors in ((form.inputs, inputs), (form.outputs, alone))]
        run(kernel, built, *row, this.numbers)
    if not equal(by_row(form.outputs, first), by_row(form.outputs, alone)):
        problems.append("a row alone has other bits than in a batch")
    if kernel.operator in IN_PLACE:
        run(kernel, built, inputs, inputs[:1], this.numbers)
        if not equal(first, inputs[:1]):
            problems.append("written in place it has other bits")
    return problems


def one_row(items, tensors, i: int, partial: int) -> tuple[torch.Tensor, ...]:
    """Of what holds something of each row, row i at its place; of partial sums the first `partial`."""

    def part(item) -> slice:
        if item.kind in operands.ONE_A_ROW:
            return slice(i, i + 1)
        return slice(partial if item.is_partial else None)

    return tuple(x[part(item)] for item, x in zip(items, tensors, strict=True))


def by_row(items, tensors) -> list[torch.Tensor]:
    """Those of the tensors that hold something of each row."""
    return [x for item, x in zip(items, tensors, strict=True) if item.kind in operands.ONE_A_ROW]


def equal(some, others) -> bool:
    """Whether tensors are equal bit by bit."""
    return all(torch.equal(bits(x), bits(y)) for x, y in zip(some, others, strict=True))


def as_integers(x: torch.Tensor) -> torch.Tensor:
    """The elements of a tensor as integers, in place."""
    return x.view(guard.INTEGER[x.itemsize])


def bits(x: torch.Tensor) -> torch.Tensor:
    """The elements as integers, since NaN is equal to nothing."""
    return x.contiguous().view(guard.INTEGER[x.itemsize])
