"""Exercise 02: who does what, differences of neighbours as a program, and a*x + b as a kernel."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from quack_lite import simt
from quack_lite.counted import counted
from quack_lite.grading.feedback import GradeFailed
from quack_lite.grading.given import whole
from quack_lite.grading.kernel_gates import Cases, compiles, values
from quack_lite.grading.program_gates import Trial, Trials, at_most, gates
from quack_lite.grading.speed_gate import speed
from quack_lite.grading.task import Gate, Submission, Task

if TYPE_CHECKING:
    import torch

WARP = 32
LAUNCHES = ((1000, 256), (1, 32), (1024, 256), (1025, 256), (31, 32), (999_999, 96), (2**20, 512), (257, 64))
DIFF_THREADS = 128
AFFINE_SHARE = 0.3  # of the copy ceiling; an H200: 256 threads a block 0.62, 128 0.39, 64 0.2, lanes far apart 0.08
AFFINE_ELEMENTS = 2**26 - 3  # 256 MB
AFFINE_TAIL = "look at the guard, and at how many blocks the host function launches"
AFFINE_SPEED = "see that neighbours in a warp are neighbours in memory, and that a block has 256 threads"


def judge_numbers(submission: Submission) -> str:
    """Tries (blocks, idle, owner) on launches other than those of the notebook."""
    try:
        blocks, idle, owner = submission.answer
    except (TypeError, ValueError):
        raise GradeFailed("hand over the three functions: (blocks, idle, owner)") from None
    for n, threads in LAUNCHES:
        judge_blocks(blocks(n, threads), n, threads)
    for n, threads in LAUNCHES:
        judge_idle(idle(n, threads), n, threads)
    for n, threads in LAUNCHES:
        for i in sorted({0, n // 2, n - 1}):
            judge_owner(owner(i, threads), i, threads)
    return f"right for {len(LAUNCHES)} launches"


def judge_blocks(given: Any, n: int, threads: int) -> None:
    """Compares blocks exactly."""
    given, wanted = whole("blocks", given), math.ceil(n / threads)
    if given == wanted:
        return
    slips = {
        n // threads: f"those have {n // threads * threads} threads, and the last elements get none: round up",
        n // threads + 1: "that is one block too many where the threads divide n: round up, do not add one",
        n: "that is a block for each element: a block has many threads",
    }
    why = slips.get(given, "as many blocks as it takes to have a thread for each element, and no more")
    raise GradeFailed(f"blocks({n}, {threads}) gave {given}: {why}")


def judge_idle(given: Any, n: int, threads: int) -> None:
    """Compares idle exactly."""
    given, wanted = whole("idle", given), -n % threads
    if given == wanted:
        return
    slips = {
        n % threads: "that many threads of the last block have an element: the others are wanted",
        threads - n % threads: "where the threads divide n, nobody is idle",
    }
    why = slips.get(given, "all threads that are launched, less those that have an element")
    raise GradeFailed(f"idle({n}, {threads}) gave {given}: {why}")


def judge_owner(given: Any, i: int, threads: int) -> None:
    """Compares owner exactly."""
    wanted = divmod(i, threads)
    try:
        block, thread = given
    except (TypeError, ValueError):
        raise GradeFailed(f"owner({i}, {threads}) gave {given!r}: it returns two numbers, (block, thread)") from None
    found = whole("owner", block), whole("owner", thread)
    if found == wanted:
        return
    if found == wanted[::-1]:
        raise GradeFailed(f"owner({i}, {threads}) gave {found}: the block comes first, then the thread")
    if found[0] == wanted[0]:
        raise GradeFailed(
            f"owner({i}, {threads}) gave thread {found[1]}: a thread's number counts from 0 in its own block"
        )
    raise GradeFailed(f"owner({i}, {threads}) gave {found}: element i is block * threads + thread; go back from i")


def diff_inputs(n: int, random: np.random.Generator) -> tuple[simt.Tensor]:
    """n float32 whose differences are exact."""
    return (simt.tensor(random.integers(-999, 1000, n), "float32"),)


def diff_reference(x: np.ndarray) -> np.ndarray:
    """The specification."""
    return x[1:] - x[:-1]


def diff_traffic(trial: Trial) -> str:
    """Two loads and a store of each warp that has work."""
    warps = math.ceil((trial.size - 1) / WARP)
    advice = "a thread loads its two elements, once each, and stores one; one whose guard says no asks for nothing"
    at_most(trial, "ld.global", "requests", 2 * warps, advice)
    at_most(trial, "st.global", "requests", warps, advice)
    return f"{2 * warps} loads and {counted(warps, 'stores')} of a warp"


def affine_inputs(n: int, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """x (n), a (1), b (1): float32 for which a * x + b is exact, so that one rounding or two make no difference."""
    import torch

    def sixteenths(count: int) -> torch.Tensor:
        options = {"generator": generator, "device": generator.device}
        return torch.randint(-(2**10), 2**10, (count,), dtype=torch.float32, **options) / 16

    return sixteenths(n), sixteenths(1), sixteenths(1)


def affine_reference(x: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """The specification."""
    return a * x + b


def affine_examples() -> tuple[torch.Tensor, ...]:
    """One tensor an argument: x, a, b, y, all float32."""
    import torch

    return tuple(torch.empty(16, device="meta") for _ in range(4))


DIFF_TRIALS = Trials(
    sizes=(129, 2, 130, 1000, 4097),
    inputs=diff_inputs,
    reference=diff_reference,
    dtype="float32",
    grid=lambda n: math.ceil((n - 1) / DIFF_THREADS),
    block=DIFF_THREADS,
    between=(2, 4096),
)
AFFINE_CASES = Cases(
    sizes=(256, 1, 255, 257, 1000, 1_000_003),
    inputs=affine_inputs,
    reference=affine_reference,
    between=(1, 2**20),
)

TASKS = (
    Task(
        id="first_kernel.numbers",
        kind="N",
        gates=(Gate("numbers", "model", judge_numbers),),
        hints=(
            "Take 1000 elements and 256 threads on paper: three blocks are too few. How many threads have four, and "
            "in which block is the last element?",
            "blocks is a division that rounds up. idle is what is launched less what is needed. owner is a division "
            "with what it leaves over.",
            "blocks: math.ceil(n / threads). idle: blocks(n, threads) * threads - n. owner: divmod(i, threads).",
        ),
    ),
    Task(
        id="first_kernel.diff",
        kind="P",
        trials=DIFF_TRIALS,
        gates=gates(DIFF_TRIALS, diff_traffic),
        hints=(
            "How many elements has y? The guard asks whether there is an element of y for this thread; the two "
            "elements of x follow from it.",
            "A thread's number in the grid is b.ctaid * b.ntid + b.tid. It loads element i and element i + 1 of x, "
            "both with the same where=.",
            "inside = i < n - 1, then b.st_global(y, i, b.ld_global(x, i + 1, where=inside) - b.ld_global(x, i, "
            "where=inside), where=inside).",
        ),
    ),
    Task(
        id="first_kernel.affine",
        kind="K",
        examples=affine_examples,
        gates=(
            compiles(),
            values(AFFINE_CASES, AFFINE_TAIL),
            speed(AFFINE_CASES, AFFINE_ELEMENTS, 8 * AFFINE_ELEMENTS, share=AFFINE_SHARE, advice=AFFINE_SPEED),
        ),
        hints=(
            "Start from the lesson's square_kernel: the index and the guard stay as they are. What changes in the one "
            "line behind the guard?",
            "a and b are tensors of one element, so a thread reads mA[0] and mB[0]. The host function hands all four "
            "tensors to the kernel and launches a block for every 256 elements of x, rounded up.",
            "mY[i] = mA[0] * mX[i] + mB[0] if i < mX.shape[0], with i = block * 256 + thread; "
            "blocks = cute.ceil_div(mX.shape[0], 256).",
        ),
    ),
)
