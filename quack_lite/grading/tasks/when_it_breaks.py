"""Exercise 03: when five kernels fail, and three of them mended."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from quack_lite import simt
from quack_lite.grading.feedback import GradeFailed
from quack_lite.grading.kernel_gates import Cases, compiles, values
from quack_lite.grading.program_gates import Trial, Trials, at_most, gates
from quack_lite.grading.task import Gate, Submission, Task

if TYPE_CHECKING:
    import torch

WARP = 32
INTERLEAVE_THREADS = 128
TRACED, RUNNING, SILENT = "when traced", "when run", "never"
MOMENTS = {"clip": TRACED, "prefix": TRACED, "roll": SILENT, "take": RUNNING, "interleave": RUNNING}
# Why each fails when it does, and nowhere else.
REASONS = {
    "clip": "look at the types of the two values that meet behind the `if`; tracing finds that before anything runs",
    "prefix": "look at what stands inside the loop over j, which is one for the GPU and not for Python",
    "roll": "with a shift of 1, element 0 reads mX[-1], an element in front of the view, which is in the same tensor: "
    "nothing stops it",
    "take": "an index of 2**40 is past everything that the process has; no kernel is stopped before it asks for that",
    "interleave": "the Model looks at every access, so it says at once which lane asks for too much",
}
CLIP_TAIL = ROLL_TAIL = "look at the guard, which was right"


def judge_moments(submission: Submission) -> str:
    """Compares {name: moment} one by one."""
    if not callable(submission.answer):
        raise GradeFailed("hand over the function moments itself")
    given = submission.answer()
    if not isinstance(given, dict):
        raise GradeFailed(f"moments returned a {type(given).__name__}: it returns a dictionary")
    for name, wanted in MOMENTS.items():
        said = given.get(name)
        if said is None:
            raise GradeFailed(f'"{name}" has no moment yet: one of "{TRACED}", "{RUNNING}", "{SILENT}"')
        if said not in (TRACED, RUNNING, SILENT):
            raise GradeFailed(f'"{name}": {said!r} is no moment: one of "{TRACED}", "{RUNNING}", "{SILENT}"')
        if said != wanted:
            raise GradeFailed(f'"{name}" does not fail "{said}": {REASONS[name]}')
    return f"right for {len(MOMENTS)}"


def interleave_inputs(n: int, random: np.random.Generator) -> tuple[simt.Tensor, simt.Tensor]:
    """Two arrays of n float32."""
    x, y = random.integers(-999, 1000, (2, n))
    return simt.tensor(x, "float32"), simt.tensor(y, "float32")


def interleave_reference(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The specification."""
    return np.stack([x, y], axis=1).reshape(-1)


def interleave_traffic(trial: Trial) -> str:
    """A load from each array, and at most two stores, of each warp that has work."""
    warps = math.ceil(trial.size / WARP)
    advice = "a thread loads one element of each array, and where it has none, it asks for nothing"
    at_most(trial, "ld.global", "requests", 2 * warps, advice)
    at_most(trial, "st.global", "requests", 2 * warps, advice)
    return f"{2 * warps} loads of a warp and no more stores"


def clip_inputs(n: int, generator: torch.Generator) -> tuple[torch.Tensor]:
    """n float32 on either side of -1 and 1; from 100 elements on also NaN, infinities and the two limits."""
    import torch

    x = 2 * torch.randn(n, generator=generator, device=generator.device)
    if n >= 100:
        special = torch.tensor([math.nan, math.inf, -math.inf, 1.0, -1.0, 0.0, 1.5, -1.5])
        places = torch.randint(n, special.shape, generator=generator, device=generator.device)
        x[places] = special.to(generator.device)
    return (x,)


def clip_reference(x: torch.Tensor) -> torch.Tensor:
    """The specification."""
    return x.clamp(-1, 1)


def roll_inputs(n: int, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """x (n) float32, shift (1) int32, from -3 n to 3 n; at n = 256 it is 300, which goes round more than once."""
    import torch

    options = {"generator": generator, "device": generator.device}
    shift = torch.randint(-3 * n, 3 * n + 1, (1,), dtype=torch.int32, **options)
    return torch.randn(n, **options), shift.fill_(300) if n == 256 else shift


def roll_reference(x: torch.Tensor, shift: torch.Tensor) -> torch.Tensor:
    """The specification."""
    return x.roll(int(shift))


def clip_examples() -> tuple[torch.Tensor, ...]:
    """One tensor an argument: x and y, float32."""
    import torch

    return tuple(torch.empty(16, device="meta") for _ in range(2))


def roll_examples() -> tuple[torch.Tensor, ...]:
    """One tensor an argument: x float32, shift int32, y float32."""
    import torch

    return torch.empty(16, device="meta"), torch.empty(1, dtype=torch.int32, device="meta"), torch.empty(16)


INTERLEAVE_TRIALS = Trials(
    sizes=(128, 1, 100, 1000, 4097),
    inputs=interleave_inputs,
    reference=interleave_reference,
    dtype="float32",
    grid=lambda n: math.ceil(n / INTERLEAVE_THREADS),
    block=INTERLEAVE_THREADS,
    between=(1, 4096),
)
SIZES = (256, 1, 255, 1000, 1_000_003)
CLIP_CASES = Cases(sizes=SIZES, inputs=clip_inputs, reference=clip_reference, between=(1, 2**20))
ROLL_CASES = Cases(sizes=SIZES, inputs=roll_inputs, reference=roll_reference, between=(1, 2**20))

TASKS = (
    Task(
        id="when_it_breaks.moments",
        kind="N",
        gates=(Gate("moments", "model", judge_moments),),
        hints=(
            "Two of them never reach a GPU. Read each as the compiler does: once, from top to bottom, with stand-ins "
            "for numbers.",
            "An `if` or a loop on a number that only the GPU knows cannot be left early, and what is assigned on its "
            "two sides has one type.",
            "clip and prefix fail when traced. Of take and roll, which both ask for memory that is not theirs, one "
            "asks so far away that the GPU refuses. The Model refuses everything that is outside.",
        ),
    ),
    Task(
        id="when_it_breaks.interleave",
        kind="P",
        trials=INTERLEAVE_TRIALS,
        gates=gates(INTERLEAVE_TRIALS, interleave_traffic),
        hints=(
            "What does the Model say about the broken one, for 100 elements? Which number does the guard compare with "
            "which, and of which array is that the length?",
            "A thread moves one element of x and one of y. So the threads that have work are those below the length "
            "of x, not of z.",
            "inside = i < n; the rest stays.",
        ),
    ),
    Task(
        id="when_it_breaks.clip",
        kind="K",
        examples=clip_examples,
        gates=(compiles(), values(CLIP_CASES, CLIP_TAIL)),
        hints=(
            "Build the broken one and read the error to its suggestion.",
            "1 is a Python integer, and value is a Float32. What must stand there instead, so that both sides of the "
            "`if` have one type?",
            "value = 1.0 and value = -1.0. The comparisons stay as they are: NaN is neither above nor below, and "
            "torch leaves it alone too.",
        ),
    ),
    Task(
        id="when_it_breaks.roll",
        kind="K",
        examples=roll_examples,
        gates=(compiles(), values(ROLL_CASES, ROLL_TAIL)),
        hints=(
            "For which threads is i - shift below zero, and what does % make of such a number on the GPU?",
            "What is left over has the sign of what was divided. So it lies between -n and n, without the ends. One "
            "more line brings it to where it belongs.",
            "source = (i - mShift[0]) % n; if source < 0: source += n; then mY[i] = mX[source].",
        ),
    ),
)
