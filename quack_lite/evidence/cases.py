"""The inputs that exercise a kernel of the list: the edges of its plan, odd shapes, padded rows, unusual values."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch

from quack_lite import catalog, tiling

MANY_ROWS = 70_001  # more than fit on a grid's second axis
MANY_ELEMENTS = 2**21
DTYPES = {name: getattr(torch, name) for name in catalog.FLOATS}


@dataclass(frozen=True)
class Case:
    """An input (rows, n), with `pad` elements between rows, that starts `start` elements behind a 16-byte boundary."""

    name: str
    rows: int
    n: int
    pad: int = 0
    start: int = 0
    content: Callable = lambda x: x

    def input(self, dtype: torch.dtype) -> torch.Tensor:
        """The values (rows, n) on the CPU, the same each time."""
        random = torch.Generator().manual_seed(self.n)
        return self.content(4 * torch.randn(self.rows, self.n, generator=random)).to(dtype)


def cases(kernel: catalog.Kernel) -> list[Case]:
    """All cases of a kernel."""
    return copy_cases(kernel.plan) if kernel.operator == "copy" else row_cases(kernel.plan)


def tool_cases(kernel: catalog.Kernel) -> list[Case]:
    """Few and small ones, for tools that slow a kernel down: no row fills the first, a second block works on both."""
    plan = kernel.plan
    if kernel.operator == "copy":
        return [Case("a tile, a vector, an element", 1, plan.capacity + plan.vector + 1)]
    shortest, longest = lengths(plan)
    return [
        Case("shortest, padded", plan.rows + 1, shortest, pad=row_padding(plan, shortest)),
        Case("longest", plan.rows + 1, longest),
    ]


def lengths(plan: tiling.RowPlan) -> tuple[int, int]:
    """The shortest and the longest row that gets this plan."""
    table = tiling.plans(plan.vector)
    i = table.index(plan)
    shorter = table[i - 1].capacity if i else 0
    return shorter + plan.vector, min(plan.capacity, tiling.MAX_N // plan.vector * plan.vector)


def middle(plan: tiling.RowPlan) -> int:
    """A row length in the middle, an odd number of vectors."""
    shortest, longest = lengths(plan)
    return (shortest + longest) // 2 // plan.vector // 2 * 2 * plan.vector + plan.vector


def row_padding(plan: tiling.RowPlan, n: int) -> int:
    """Elements that bring rows of n to a distance that 128-bit accesses allow, at least one."""
    return plan.vector if plan.vector > 1 else 8 - n % 8


def row_cases(plan: tiling.RowPlan) -> list[Case]:
    """The cases of an operator over rows."""
    shortest, longest = lengths(plan)
    n = middle(plan)
    found = [
        Case("one row, shortest", 1, shortest),
        Case("one row, longest", 1, longest),
        Case("rows that do not fill a block", plan.rows * 3 + 1, n),
        Case("many rows, shortest", max(7, min(MANY_ROWS, MANY_ELEMENTS // shortest)), shortest),
        Case("right half masked", 3, longest, content=right_half_masked),
        Case("left half masked", 3, longest, content=left_half_masked),
        Case("every second masked", 3, n, content=every_second_masked),
        Case("rows of -inf, NaN, +inf", 6, n, content=unusual_rows),
        Case("large values", 3, n, content=lambda x: 5000 * x.clamp(-12, 12)),
        Case("equal values", 2, n, content=torch.ones_like),
    ]
    found += [Case(f"padded rows, n % 8 = {n % 8}", plan.rows + 2, n, pad=row_padding(plan, n)) for n in padded(plan)]
    if plan.vector == 1:
        found.append(Case("misaligned", plan.rows + 1, n, start=1))
    return found


def padded(plan: tiling.RowPlan) -> list[int]:
    """Row lengths to try with padded rows: for one-element loads one of each remainder by 8."""
    shortest, longest = lengths(plan)
    if plan.vector > 1:
        return [shortest, middle(plan)]
    first = math.ceil(shortest / 8) * 8
    return [n for n in range(first + 1, first + 8) if n <= longest]


def copy_cases(plan: tiling.RowPlan) -> list[Case]:
    """The cases of copy."""
    tile, vector = plan.capacity, plan.vector
    lengths = {1, vector - 1, vector, tile - vector, tile - 1, tile, tile + 1, tile + vector, 5 * tile + 3 * vector + 1}
    found = [Case(f"{n} elements", 1, n) for n in sorted(lengths - {0})]
    found.append(Case("NaN and inf", 1, tile + vector, content=unusual_elements))
    if vector == 1:
        found.append(Case("misaligned", 1, 3 * tile + 1, start=1))
    return found


def right_half_masked(x):
    x[:, x.shape[1] // 2 + 1 :] = -math.inf
    return x


def left_half_masked(x):
    x[:, : x.shape[1] // 2] = -math.inf
    return x


def every_second_masked(x):
    x[:, 1::2] = -math.inf
    return x


def unusual_rows(x):
    x[0] = -math.inf
    x[1, -1] = math.nan
    x[2, 0] = math.inf
    x[3, :-1] = -math.inf
    x[4, 1:] = -math.inf
    return x


def unusual_elements(x):
    x[:, ::3] = math.nan
    x[:, 1::3] = math.inf
    x[:, 2::3] = -0.0
    return x
