"""Exercise 01: floors of operators, timings that cannot be, and arithmetic that costs nothing."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from quack_lite.grading.feedback import GradeFailed
from quack_lite.grading.given import number
from quack_lite.grading.task import Gate, Submission, Task

SHAPES = ((37, 1000), (1, 7), (4096, 151936), (5, 1))
HALF, FULL, LABEL = 2, 4, 8  # bytes of bfloat16, float32, int64
TOLERANCE = 0.01


def floors(m: int, n: int) -> dict[str, int]:
    """The bytes of each operator on m x n bfloat16: inputs read once, outputs written once."""
    matrix = m * n * HALF
    return {
        "fill": matrix,
        "copy": 2 * matrix,
        "add": 3 * matrix,
        "relu in place": 2 * matrix,
        "to float32": matrix + m * n * FULL,
        "row sums": matrix + m * FULL,
        "cross entropy": matrix + m * LABEL + m * FULL,
        "rms norm": 2 * matrix + n * HALF,
    }


def slips(m: int, n: int) -> dict[str, dict[int, str]]:
    """{operator: {wrong bytes: what was forgotten, or counted too often}}."""
    matrix = m * n * HALF
    return {
        "fill": {
            2 * matrix: "nothing is read: the zeros come from nowhere",
            0: "the zeros are written, each of them",
        },
        "copy": {matrix: "a copy reads and writes, and both move bytes"},
        "add": {2 * matrix: "there are two inputs and an output", 4 * matrix: "there are two inputs and one output"},
        "relu in place": {
            matrix: "in place saves room, not movement: each element is read, and written back",
            3 * matrix: "there is one input, and the output takes its place",
        },
        "to float32": {
            2 * matrix: "2 bytes an element are read and 4 are written",
            2 * m * n * FULL: "the input has 2 bytes an element",
        },
        "row sums": {
            2 * matrix: "the output has one number a row, not one an element",
            matrix: "the sums are written too, 4 bytes a row",
            matrix + m * HALF: "a sum is float32, 4 bytes",
            matrix + n * FULL: "there is a sum for each of the m rows, not for each column",
        },
        "cross entropy": {
            2 * matrix + m * (LABEL + FULL): "a loss needs one number a row: no probabilities are written",
            2 * matrix: "a loss needs one number a row: no probabilities are written",
            matrix: "a label is read and a loss is written for each row",
            matrix + m * FULL: "the labels are read too, 8 bytes a row",
            matrix + m * LABEL: "the losses are written too, 4 bytes a row",
            matrix + m * 2 * FULL: "a label is int64, 8 bytes",
        },
        "rms norm": {
            2 * matrix: "the weight is read too, once",
            3 * matrix: "the weight is one row, read once, not once for each row",
            3 * matrix + n * HALF: "a row is read once: what is kept need not be read again",
            2 * matrix + n * FULL: "the weight is bfloat16, 2 bytes an element",
            2 * matrix + m * HALF: "the weight has an element for each of the n columns",
        },
    }


def judge_floors(submission: Submission) -> str:
    """Tries the function floors(m, n) at several shapes, one operator after the other."""
    given = [(shape, submission.answer(*shape)) for shape in SHAPES]
    for shape, answer in given:
        if not isinstance(answer, dict):
            raise GradeFailed(f"floors returned {answer!r}: it returns a dict, from the operator's name to its bytes")
        missing = [name for name in floors(*shape) if name not in answer]
        if missing:
            raise GradeFailed(f"floors says nothing of {missing[0]!r}: write the names as they stand in the table")
    for name in floors(1, 1):
        for shape, answer in given:
            judge_bytes(name, shape, answer[name])
    return f"right for {len(floors(1, 1))} operators at {len(SHAPES)} shapes"


def judge_bytes(name: str, shape: tuple[int, int], given: Any) -> None:
    """Compares one floor exactly, and names the slip where the number gives it away."""
    given, wanted = number(f"floors, at {name!r},", given), floors(*shape)[name]
    if given == wanted:
        return
    common = {
        wanted / HALF: "that looks like elements: an element has 2 bytes",
        wanted * 8: "that looks like bits: count bytes",
        wanted / 1e9: "that looks like GB: give bytes",
    }
    why = slips(*shape)[name].get(given) or common.get(given)
    raise GradeFailed(
        f"{name!r} at m = {shape[0]}, n = {shape[1]}: {given:g} bytes, and that is not its floor: "
        + (why or "write down what it reads and what it writes, and how many bytes each element of these has")
    )


class Timing(NamedTuple):
    """bytes read and written, seconds, bytes of all arrays, the memory's peak in GB/s, bytes of the L2."""

    moved: int
    seconds: float
    touched: int
    peak: float
    l2: int


def timing(share: float, touched: int, peak: float = 4900.0, l2: int = 60 * 2**20) -> Timing:
    """One whose figure is `share` of the peak, of a copy that touched so many bytes."""
    return Timing(touched, touched / (share * peak * 1e9), touched, peak, l2)


TIMINGS = (
    timing(0.86, 2**30),
    timing(0.7, 2**24),
    timing(1.04, 2**30),
    timing(30.0, 2**31),
    timing(1.3, 2**25),
    timing(1.2, 60 * 2**20),
    timing(30.0, 2**20),
    timing(1.5, 2**26, peak=2039.0, l2=40 * 2**20),
    timing(1.5, 2**26, peak=3350.0, l2=128 * 2**20),
    timing(0.99, 2**27, peak=300.0, l2=48 * 2**20),
)


def judge_rule(submission: Submission) -> str:
    """Tries the function broken_rule on timings other than those of the notebook."""
    for one in TIMINGS:
        judge_timing(submission.answer(*one), one)
    return f"right for {len(TIMINGS)} timings"


def judge_timing(given: Any, one: Timing) -> None:
    """Compares one answer; the sentence says how the figure and the sizes lie."""
    figure = one.moved / one.seconds / 1e9
    fits = one.touched <= one.l2
    wanted = 0 if figure <= one.peak else 3 if fits else 1
    if isinstance(given, bool) or given not in (0, 1, 3):
        raise GradeFailed(f"broken_rule gave {given!r}: it answers 0, 1 or 3")
    if given == wanted:
        return
    said = f"{figure:.0f} GB/s against a peak of {one.peak:.0f}"
    size = f"{one.touched / 2**20:.0f} MB touched against an L2 of {one.l2 / 2**20:.0f} MB"
    if wanted == 0:
        why = "that can be, so the answer is 0: compare bytes / seconds / 1e9 with the peak"
    elif given == 0:
        why = f"that cannot be, and the answer was 0: a GB is 10^9 bytes; {size}"
    elif wanted == 3:
        why = f"with {size} it may have come from the cache: that is rule 3, not {given}"
    else:
        why = f"with {size} it cannot have come from the cache: that is rule 1, not {given}"
    raise GradeFailed(f"{said}: {why}")


class Machine(NamedTuple):
    """copy: GB/s, read and written.  sms.  lanes: multiply-adds an SM and tick.  ghz: ticks a nanosecond."""

    copy: float
    sms: int
    lanes: int
    ghz: float


MACHINES = (
    Machine(4100.0, 132, 128, 1.7),
    Machine(1350.0, 108, 64, 1.41),
    Machine(930.0, 128, 128, 2.5),
    Machine(270.0, 58, 128, 2.04),
)
ELEMENT_BYTES = (1, 2, 4, 8)


def free_multiply_adds(machine: Machine, element_bytes: int) -> float:
    """Multiply-adds for each element that take as long as its copy."""
    return machine.sms * machine.lanes * machine.ghz * 2 * element_bytes / machine.copy


def judge_budget(submission: Submission) -> str:
    """Tries the function free_multiply_adds on numbers other than those of the notebook."""
    for machine in MACHINES:
        for size in ELEMENT_BYTES:
            judge_free(submission.answer(*machine, size), machine, size)
    return f"right on {len(MACHINES)} machines, for elements of {', '.join(map(str, ELEMENT_BYTES))} bytes"


def judge_free(given: Any, machine: Machine, size: int) -> None:
    """Compares to within TOLERANCE, and names the slip where the factor gives it away."""
    given = number("free_multiply_adds", given)
    wanted = free_multiply_adds(machine, size)
    if math.isclose(given, wanted, rel_tol=TOLERANCE):
        return
    factors = {
        FULL / size: "that is for elements of 4 bytes, as in the lesson: a copy moves 2 * element_bytes for each",
        1 / 2: "that is half: each element is read and written, and `copy` counts both",
        2: "that is twice too much: a multiply-add counts as one here, not as two operations",
        1 / machine.sms: "that is for one SM: all of them compute, and `copy` is that of the whole machine",
        1 / machine.lanes: "that is for one lane of an SM: each tick it does `lanes` multiply-adds",
        1 / size: "that is for each byte: an element has element_bytes of them",
        1e9: "that is 10^9 too much: GB/s and GHz have the same 10^9, and they cancel",
        1e-9: "that is 10^9 too little: GB/s and GHz have the same 10^9, and they cancel",
    }
    for factor, sentence in factors.items():
        if math.isclose(given, wanted * factor, rel_tol=TOLERANCE):
            raise GradeFailed(f"free_multiply_adds: {sentence}")
    raise GradeFailed(
        f"free_multiply_adds{(*machine, size)} gave {given:g}: it is multiply-adds a nanosecond over elements a "
        "nanosecond, and a copy moves each element twice"
    )


TASKS = (
    Task(
        id="speed_of_light.floors",
        kind="N",
        gates=(Gate("bytes", "model", judge_floors),),
        hints=(
            "For each operator two lists: what it must read, what it must write. Then the bytes of an element of each.",
            "Some write less than they read: a number a row. Some read more than the matrix: a label a row, a weight "
            "a column. In place saves no movement.",
            "matrix = m * n * 2. fill 1, copy 2, add 3, relu 2 of it; float32 has m * n * 4; sums add m * 4, labels "
            "m * 8, losses m * 4, a weight n * 2.",
        ),
    ),
    Task(
        id="speed_of_light.rule",
        kind="N",
        gates=(Gate("timings", "model", judge_rule),),
        hints=(
            "How many GB/s is each of the three timings? A GB is 10^9 bytes.",
            "First ask whether the figure is above the peak. Only then the size of the L2 matters.",
            "moved / seconds / 1e9 <= peak gives 0; otherwise 3 where touched <= l2, and 1 where not.",
        ),
    ),
    Task(
        id="speed_of_light.budget",
        kind="N",
        gates=(Gate("numbers", "model", judge_budget),),
        hints=(
            "Two rates: how many multiply-adds the machine makes in a nanosecond, and how many elements it copies.",
            "sms * lanes * ghz is the first. A copy moves each element twice, once in and once out.",
            "Elements a nanosecond: copy / (2 * element_bytes). The answer is the first rate over this one.",
        ),
    ),
)
