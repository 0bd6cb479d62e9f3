"""What an operator is launched on: its tensors and numbers in launch order, their shapes, and sensible contents."""

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import torch

from quack_lite import catalog, reference
from quack_lite.reference import Kind

# Inputs -> outputs; numbers. What an operator's backward gets of its forward has a name that says so.
NAMES = {
    "copy": "x -> y",
    "softmax": "x -> y",
    "log_softmax": "x -> y",
    "softmax_backward": "dy probabilities -> dx",
    "log_softmax_backward": "dy log_probabilities -> dx",
    "rms_norm": "x weight -> y; eps",
    "rms_norm_backward": "dy x weight -> dx dweight; eps",
    "add_rms_norm": "x residual weight -> y new_residual; eps",
    "add_rms_norm_backward": "dy dresidual residual weight -> dsum dweight; eps",
    "layer_norm": "x weight bias -> y mean rstd; eps",
    "layer_norm_backward": "dy x weight mean rstd -> dx dweight dbias",
    "cross_entropy": "x target -> loss lse; ignore_index",
    "cross_entropy_backward": "x target lse scale -> dx; ignore_index",
    "smoothed_cross_entropy": "x target class_weight -> loss lse spread; ignore_index",
    "smoothed_cross_entropy_backward": "x target class_weight lse a b e -> dx",
    "swiglu": "gate up -> y",
    "swiglu_backward": "dy gate up -> dgate dup",
}
NUMBERS = {"eps": 1e-5, "ignore_index": -100}
SUBJECTS = ("x", "logits", "gate", "residual")  # the first of these is what unusual values are put into
MATRICES = (Kind.FLAT, Kind.MATRIX, Kind.RESIDUAL)
ONE_A_ROW = (*MATRICES, Kind.ROWS, Kind.LABELS)


class Operand(NamedTuple):
    """A tensor of a launch."""

    name: str
    kind: Kind
    dtype: torch.dtype
    is_partial: bool

    def shape(self, m: int, n: int, partial: int) -> tuple[int, ...]:
        """Its shape for matrices (m, n) and as many rows of partial sums."""
        if self.is_partial:
            return (partial, n)
        if self.kind is Kind.COLUMNS:
            return (n,)
        return (m, n) if self.kind in MATRICES else (m,)


class Form(NamedTuple):
    """Operands and names of numbers, in launch order."""

    inputs: tuple[Operand, ...]
    outputs: tuple[Operand, ...]
    numbers: tuple[str, ...]


class Contents(NamedTuple):
    """inputs: tensors, contiguous.  numbers: those behind the tensors of a launch."""

    inputs: tuple[torch.Tensor, ...]
    numbers: tuple


@cache
def form(kernel: catalog.Kernel) -> Form:
    """What a kernel is launched on."""
    tensors, _, numbers = NAMES[kernel.operator].partition(";")
    inputs, outputs = (side.split() for side in tensors.split("->"))
    operator = reference.find(kernel.operator)
    return Form(
        tuple(operand(*item, kernel.dtype) for item in zip(inputs, operator.inputs, strict=True)),
        tuple(operand(*item, kernel.dtype, True) for item in zip(outputs, operator.outputs, strict=True)),
        tuple(numbers.split()),
    )


def operand(name: str, kind: Kind, dtype: str, is_output: bool = False) -> Operand:
    """An operand of a kernel of this dtype."""
    matrix, residual = dtypes(dtype)
    special = {Kind.RESIDUAL: residual, Kind.LABELS: torch.int64, **dict.fromkeys(MATRICES[:2], matrix)}
    return Operand(name, kind, special.get(kind, torch.float32), is_output and kind is Kind.COLUMNS)


def dtypes(dtype: str) -> tuple[torch.dtype, torch.dtype]:
    """Of the matrices and of the residual: "bfloat16", or "bfloat16+float32" where they differ."""
    first, *residual = dtype.split("+")
    return getattr(torch, first), getattr(torch, (residual or [first])[0])


def is_persistent(kernel: catalog.Kernel) -> bool:
    """Whether a fixed number of groups of blocks goes on over the rows."""
    return kernel.plan.stages > 0


def has_partial_sums(kernel: catalog.Kernel) -> bool:
    """Whether an output holds sums over rows that the caller completes."""
    return any(item.is_partial for item in form(kernel).outputs)


def at_once(kernel: catalog.Kernel, m: int, n: int, device) -> int:
    """How many of m rows are worked on at once, and rows of partial sums."""
    return catalog.partials(kernel, m, n, device)


def takes_groups(kernel: catalog.Kernel) -> bool:
    """Whether a launch is told how many groups of blocks it has; one that is not has as many as partial sums."""
    return "g" in catalog.OPERATORS[kernel.operator].operands


def unchanged(made: dict) -> None:
    """Leaves the random contents as they are."""


def contents(kernel: catalog.Kernel, m: int, n: int, device="cpu", change: Callable = unchanged) -> Contents:
    """The inputs for matrices (m, n) and the numbers, the same each time on one kind of device.

    change: gets {name: tensor or number} of all that is random, float32 where it is not integer, and writes into it;
    what follows from it (a logarithm of a sum, a mean) is computed afterwards, in float64.
    """
    random = torch.Generator(device).manual_seed(n)
    this = form(kernel)
    made = {"shape": (m, n), **NUMBERS}
    for name in dict.fromkeys(SOURCES.get(operand.name, operand.name) for operand in this.inputs):
        if name not in DERIVED:
            made[name] = RANDOM.get(name, normal)(made, random)
    change(made)
    for item in this.inputs:
        if item.name in DERIVED:
            made[item.name] = DERIVED[item.name](made, random)
        made[item.name] = made[item.name].to(item.dtype)
    return Contents(tuple(made[item.name] for item in this.inputs), tuple(made[name] for name in this.numbers))


def subject(made: dict) -> torch.Tensor:
    """The matrix that unusual values are put into."""
    return made[next(name for name in SUBJECTS if name in made)]


def normal(made, random):
    """A matrix of the size that a model's activations have."""
    return 4 * torch.randn(made["shape"], generator=random, device=random.device)


def row(made, random):
    """A weight: every seventh is 0."""
    weight = torch.randn(made["shape"][1], generator=random, device=random.device)
    weight[6::7] = 0
    return weight


def positive_row(made, random):
    """A weight of each class, all above 0."""
    return 0.1 + torch.rand(made["shape"][1], generator=random, device=random.device)


def target(made, random):
    """Labels: most of a class, some ignored, some of no class, among them one that is 0 in its lower 32 bits."""
    m, n = made["shape"]
    labels = torch.randint(n, (m,), generator=random, device=random.device)
    for place, label in ((3, made["ignore_index"]), (4, n), (5, -1), (6, 2**32), (7, n - 1)):
        labels[place::16] = label
    return labels


def column(made, random):
    """A gradient of each row, 0 in some."""
    values = torch.randn(made["shape"][0], generator=random, device=random.device)
    values[9::16] = 0
    return values


def counted_column(made, random):
    """A gradient of each row, 0 where its label is ignored or of no class."""
    labels = made["target"]
    counts = (labels >= 0) & (labels < made["shape"][1]) & (labels != made["ignore_index"])
    return column(made, random) * counts


def logsumexp(made, random):
    return torch.logsumexp(made["x"].double(), -1)


def mean(made, random):
    return made["x"].double().mean(-1)


def rstd(made, random):
    return (made["x"].double().var(-1, correction=0) + made["eps"]).rsqrt()


def probabilities(made, random):
    return torch.softmax(made["logits"].double(), -1)


def log_probabilities(made, random):
    return torch.log_softmax(made["logits"].double(), -1)


RANDOM = {"weight": row, "bias": row, "class_weight": positive_row, "target": target}
SOURCES = {"probabilities": "logits", "log_probabilities": "logits"}
DERIVED = {
    "probabilities": probabilities,
    "log_probabilities": log_probabilities,
    "lse": logsumexp,
    "mean": mean,
    "rstd": rstd,
    "scale": column,
    **dict.fromkeys(("a", "b", "e"), counted_column),
}
