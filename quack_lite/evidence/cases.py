"""The inputs that exercise a kernel of the list: the edges of its plan, each place of a vector, unusual values."""

from collections.abc import Callable
from dataclasses import dataclass

from quack_lite import catalog
from quack_lite.counted import counted
from quack_lite.evidence import changes, operands

MANY_ROWS = 70_001  # more than fit on a grid's second axis
MANY_ELEMENTS = 2**21


@dataclass(frozen=True)
class Case:
    """Matrices (rows, n), with `pad` elements or more between rows, that start `start` elements behind a boundary."""

    name: str
    rows: int
    n: int
    pad: int = 0
    start: int = 0
    change: Callable = operands.unchanged

    def contents(self, kernel: catalog.Kernel, device="cpu") -> operands.Contents:
        """Its inputs and numbers, the same each time."""
        return operands.contents(kernel, self.rows, self.n, device, self.change)


def cases(kernel: catalog.Kernel, device="cuda") -> list[Case]:
    """All cases of a kernel. device: the one that its rows are shared out on."""
    if kernel.operator == "copy":
        return copy_cases(kernel.plan)
    found = [*lengths_and_rows(kernel), *places(kernel), *values(kernel)]
    if catalog.lengths(kernel)[0] == 1:
        found += short_rows(kernel)
    if goes_on_along_rows(kernel):
        found += pieces(kernel)
    if operands.is_persistent(kernel):
        found += turns(kernel, device)
    return found


def tool_cases(kernel: catalog.Kernel) -> list[Case]:
    """Few and small ones, for tools that slow a kernel down; each of the tools sees all of them.

    Rows with single elements at both ends, more rows than a block takes, more elements than a block holds; or turns of
    one group until a stage is used again. No row fills what its kernel holds, and no launch the device.
    """
    plan = kernel.plan
    if kernel.operator == "copy":
        return [Case("a tile, a vector, an element", 1, plan.capacity + plan.vector + 1)]
    if operands.is_persistent(kernel):
        return [turns_of_one_group(kernel)]
    found = [Case("odd, padded", plan.rows + 1, odd(kernel), pad=3, start=1)]
    if goes_on_along_rows(kernel):
        found.append(
            Case("more than a block holds", 2, max(catalog.lengths(kernel)[0], plan.capacity + plan.vector + 1))
        )
    return found


def turns_of_one_group(kernel: catalog.Kernel) -> Case:
    """Turns until a stage is used again, the last not full; rows that all begin and end with single elements."""
    plan, n = kernel.plan, odd(kernel) - 1
    rows = (plan.stages + 1) * plan.rows - plan.rows // 2
    return Case("every stage again", rows, n, pad=-n % plan.vector, start=1)


def watched_at_once(kernel: catalog.Kernel, case: Case) -> int:
    """How many of a case's rows are worked on at once under a tool.

    By one group where groups go on over the rows and may: a group's rows have to start at the same place in a vector.
    """
    in_step = (case.n + case.pad) % kernel.plan.vector == 0
    return min(case.rows, kernel.plan.rows) if operands.is_persistent(kernel) and in_step else case.rows


def goes_on_along_rows(kernel: catalog.Kernel) -> bool:
    """Whether rows may be longer than a block, or a cluster, holds at once."""
    return catalog.lengths(kernel)[1] > kernel.plan.capacity + 3 * kernel.plan.vector


def rows_of_turns(kernel: catalog.Kernel, n: int, turns: int, device) -> int:
    """Rows that keep all groups of blocks busy for so many turns, and one more."""
    return turns * operands.at_once(kernel, MANY_ROWS, n, device) + 1


def middle(kernel: catalog.Kernel) -> int:
    """A row length in the middle, an odd number of vectors where it can be."""
    shortest, longest = catalog.lengths(kernel)
    vector = kernel.plan.vector
    return min(longest, max(shortest, (shortest + longest) // 2 // vector // 2 * 2 * vector + vector))


def odd(kernel: catalog.Kernel) -> int:
    """A short row that begins and ends with single elements, at least three vectors if the plan allows it."""
    shortest, longest = catalog.lengths(kernel)
    vector = kernel.plan.vector
    return min(longest, max(shortest, 3 * vector) // vector * vector + vector - 1)


def lengths_and_rows(kernel: catalog.Kernel) -> list[Case]:
    """The ends of the plan, and numbers of rows."""
    shortest, longest = catalog.lengths(kernel)
    rows, n = kernel.plan.rows, middle(kernel)
    return [
        Case("one row, shortest", 1, shortest),
        Case("one row, longest", 1, longest),
        Case("rows that do not fill a block", rows * 3 + 1, n),
        Case("shortest", max(rows + 1, 9), shortest),
        Case("many rows", max(7, min(MANY_ROWS, MANY_ELEMENTS // shortest)), shortest),
    ]


def places(kernel: catalog.Kernel) -> list[Case]:
    """Each remainder of a row by a vector, each start in one, padded rows of both kinds."""
    vector, rows, n = kernel.plan.vector, kernel.plan.rows + 2, middle(kernel)
    longest = catalog.lengths(kernel)[1]
    found = [Case(f"rows one behind the other, n % {vector} = {k}", max(rows, vector), n + k) for k in range(1, vector)]
    found += [Case(f"padded to a vector, n % {vector} = {k}", rows, n + k, pad=vector - k) for k in range(1, vector)]
    found += [Case(f"start {k}", rows, n + 3 * k % vector, start=k) for k in range(1, vector)]
    found += [Case(f"start {k}, n and padding odd", rows, n + k, pad=k, start=k) for k in (1, vector - 1)]
    found += [Case("start 1, longest", 2, longest, start=1)]
    return [case for case in found if case.n <= longest]


def short_rows(kernel: catalog.Kernel) -> list[Case]:
    """Rows up to two vectors: no whole vector, nothing but the elements before the first boundary, nothing behind."""
    vector, longest = kernel.plan.vector, catalog.lengths(kernel)[1]
    rows = kernel.plan.rows + 1
    return [
        Case(f"{counted(n, 'elements')}, start {start}", rows, n, start=start, pad=(vector - n) % vector + vector)
        for n in range(1, min(longest, 2 * vector + 1) + 1)
        for start in sorted({0, 1, vector - n % vector, vector - 1} - {vector})
    ]


def turns(kernel: catalog.Kernel, device) -> list[Case]:
    """Rows for a fixed number of groups: as many as fit at once, one more, several turns that end unevenly."""
    shortest, longest = catalog.lengths(kernel)
    n, many = middle(kernel), kernel.plan.stages + 2
    return [
        Case("one turn", rows_of_turns(kernel, shortest, 1, device) - 1, shortest),
        Case("one turn and a row", rows_of_turns(kernel, n, 1, device), n),
        Case("one turn and a row, longest", rows_of_turns(kernel, longest, 1, device), longest),
        Case("every stage again, odd", rows_of_turns(kernel, odd(kernel), many, device), odd(kernel)),
        Case("every stage again, shortest", rows_of_turns(kernel, shortest, many, device), shortest),
    ]


def pieces(kernel: catalog.Kernel) -> list[Case]:
    """Rows that a block, or a cluster, goes through in several steps, or that several blocks share."""
    capacity, (shortest, longest) = kernel.plan.capacity, catalog.lengths(kernel)
    first = -(-shortest // capacity) * capacity
    lengths = (first, first + 1, first + capacity - 1, first + capacity, first + 2 * capacity + kernel.plan.vector + 1)
    return [
        Case(f"{counted(n, 'elements')}, start {start}", 2, n, start=start)
        for n in lengths
        if n <= longest
        for start in (0, 1)
    ]


def values(kernel: catalog.Kernel) -> list[Case]:
    """Unusual values."""
    longest = catalog.lengths(kernel)[1]
    n = min(longest, middle(kernel) + kernel.plan.vector - 1)
    length_of = {changes.right_half_masked: longest, changes.left_half_masked: longest}
    return [
        Case(change.__name__.replace("_", " "), changes.ROWS, length_of.get(change, n), change=change)
        for change in changes.of(kernel.operator)
    ]


def copy_cases(plan) -> list[Case]:
    """The cases of copy."""
    tile, vector = plan.capacity, plan.vector
    lengths = {1, vector - 1, vector, tile - vector, tile - 1, tile, tile + 1, tile + vector, 5 * tile + 3 * vector + 1}
    found = [Case(f"{counted(n, 'elements')}", 1, n) for n in sorted(lengths - {0})]
    found.append(Case("NaN and inf", 1, tile + vector, change=changes.nan_and_inf_elements))
    if vector == 1:
        found.append(Case("misaligned", 1, 3 * tile + 1, start=1))
    return found


def row_padding(case: Case, matrix: int, vector: int) -> int:
    """Elements between the rows of a launch's matrix of this number: other distances, the same place in a vector."""
    return case.pad and case.pad + matrix * vector


def start_of_vector(case: Case) -> int:
    """Elements from a boundary to the first of a row (n) or column (m): any, since none is promised."""
    return case.start * 3 % 4
