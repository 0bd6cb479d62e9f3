"""Exercise 00: what lanes without an element hold in a maximum, and in a minimum."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from quack_lite import simt
from quack_lite.grading.feedback import GradeFailed
from quack_lite.grading.task import Gate, Submission, Task

LANES = 32
MOST_SHOWN = 4  # numbers of a list that a sentence repeats


def lists(worst: float) -> list[list[float]]:
    """Numbers to try: of both signs, of one, hardly finite, and nothing but `worst`, -inf or inf; then random ones."""
    far = math.copysign(3.4e38, worst)
    random = np.random.default_rng()
    fresh = [list(np.round(random.normal(size=n) * 100)) for n in (7, 31, LANES)]
    return [[3.0, 1.0, 2.0], [-3.0, -1.0, -2.0], [0.0], [far, far], [worst], [worst] * 5, *fresh]


def judge_max(submission: Submission) -> str:
    """Tries the fill value of the answer, a function without arguments, in a maximum of 32 lanes."""
    fill = value_of("fill_of_max", submission.answer)
    for numbers in lists(-math.inf):
        with np.errstate(invalid="ignore"):
            judge(numbers, fill, float(np.max(np.float32([*numbers, *[fill] * (LANES - len(numbers))]))), "largest")
    return "right for numbers of both signs, of one, and for nothing but -inf"


def judge_min(submission: Submission) -> str:
    """Tries (smallest, fill_of_min): first the program where every lane has an element, then both."""
    try:
        program, of_fill = submission.answer
    except (TypeError, ValueError):
        raise GradeFailed("hand over both: (smallest, fill_of_min)") from None
    judge_program(program)
    fill = value_of("fill_of_min", of_fill)
    for numbers in lists(math.inf):
        judge(numbers, fill, outcome(program, numbers, fill), "smallest")
    return "right for numbers of both signs, of one, and for nothing but inf"


def judge_program(program: Callable) -> None:
    """The program finds the smallest of 32, so that no fill value matters."""
    numbers = [float(number) for number in np.random.default_rng().permutation(LANES) - 5]
    got = outcome(program, numbers, 0.0)
    if got == max(numbers):
        raise GradeFailed("the program gave the largest of 32 numbers: keep the smaller of two, not the larger")
    if got != min(numbers):
        raise GradeFailed(
            f"of 32 numbers from {min(numbers):g} to {max(numbers):g} the program gave {got:g}: `smaller` has to keep "
            "the smaller of two values, for each lane"
        )


def outcome(program: Callable, numbers: Sequence[float], fill: float) -> float:
    """What the program stores, launched as in the exercise."""
    given = simt.tensor(numbers, "float32")
    run = simt.run(program, given, simt.empty(1, "float32"), len(numbers), fill, grid=1, block=LANES)
    for report in run.reports:
        raise GradeFailed(f"with {len(numbers)} numbers: {report.sentence}")
    return float(run.outputs[0][0])


def value_of(name: str, given: Any) -> float:
    """The number that the function `given` returns, NaN refused."""
    if not callable(given):
        raise GradeFailed(f"{given!r} was handed over: hand over the function, {name}, without brackets")
    value = given()
    if isinstance(value, bool) or not hasattr(value, "__float__"):
        raise GradeFailed(f"{name} returned {value!r}: it has to return a number")
    if math.isnan(value):
        raise GradeFailed(f"{name} returned NaN: what is compared with NaN is NaN afterwards, whatever the numbers are")
    return float(value)


def judge(numbers: Sequence[float], fill: float, got: float, what: str) -> None:
    """GradeFailed where `got` is not the largest, or smallest, of the numbers; says what the fill value did."""
    wanted = {"largest": max, "smallest": min}[what](numbers)
    if got == np.float32(wanted):
        return
    shown = ", ".join(f"{number:g}" for number in numbers[:MOST_SHOWN]) + ", ..." * (len(numbers) > MOST_SHOWN)
    side = {"largest": "larger", "smallest": "smaller"}[what]
    raise GradeFailed(
        f"of [{shown}] the {what} came out as {got:g}: the lanes without an element held {fill:g}, {side} than each of "
        "these numbers; take one that no number can be on the other side of"
    )


TASKS = (
    Task(
        id="start_here.max",
        kind="N",
        gates=(Gate("value", "model", judge_max),),
        hints=(
            "The lane without an element must never win. Which numbers does 0 win against?",
            "It must lose against each float32, or at least draw. There are numbers below the lowest finite one.",
            "A float has infinities: math.inf, and its negative.",
        ),
    ),
    Task(
        id="start_here.min",
        kind="N",
        gates=(Gate("value", "model", judge_min),),
        hints=(
            "The program `largest` keeps the larger of two values, lane by lane. NumPy has the same for the smaller.",
            "np.minimum, and not min, which does not take arrays. And now the lane without an element must never be "
            "smaller than a number.",
            "Turn the sign of the fill value of the maximum round.",
        ),
    ),
)
