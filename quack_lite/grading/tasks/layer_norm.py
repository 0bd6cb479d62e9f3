"""Exercise 11: what a variance in one pass loses, rows centred and scaled on the Model, and group norm."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from quack_lite import simt
from quack_lite.counted import counted
from quack_lite.grading.feedback import GradeFailed
from quack_lite.grading.kernel_gates import Cases, compiles, shape, values
from quack_lite.grading.program_gates import Trial, Trials, at_most, gates, lanes_have_met
from quack_lite.grading.speed_gate import speed
from quack_lite.grading.task import Gate, Submission, Task

if TYPE_CHECKING:
    import torch

    from quack_lite.facts import Facts

TOLERANCE = 0.01
MOMENTS = ((0.0, 1.0), (0.0, 3.0), (1.0, 1.0), (10.0, 0.5), (-30.0, 2.0), (1e3, 1.0), (1e4, 1.0), (80001.5, 1.118))
BITS = (8, 11, 24, 53)
SHARES = (1e-3, 0.01, 0.5)
ROWS = 5  # of the program's matrix
CENTRE_THREADS = 128  # of a block
GROUPS = 32
GROUP_EPS = 1e-5
GROUP_SHARE = 0.65  # of the copy ceiling
GROUP_ROUNDINGS = 8
GROUP_TAIL = "a group may have fewer vectors than the block's threads can take"


def share_lost(mean: float, std: float, p: int) -> float:
    """By which share of the variance one rounding of the mean of the squares to p bits is off."""
    return 2.0**-p * (mean**2 + std**2) / std**2


def bits_needed(mean: float, std: float, share: float) -> int:
    """The fewest bits with which it is off by no more."""
    return math.ceil(math.log2((mean**2 + std**2) / std**2 / share))


def judge_lost(submission: Submission) -> str:
    """Tries (share_lost, bits_needed) on other numbers than those of the notebook."""
    try:
        of_share, of_bits = submission.answer
    except (TypeError, ValueError):
        raise GradeFailed("hand over the two functions: (share_lost, bits_needed)") from None
    for moments in MOMENTS:
        for p in BITS:
            judge_share(of_share(*moments, p), *moments, p)
    for moments in MOMENTS:
        for share in SHARES:
            judge_bits(of_bits(*moments, share), *moments, share)
    return f"right for {len(MOMENTS)} rows"


def judge_share(given: Any, mean: float, std: float, p: int) -> None:
    """Compares share_lost to within TOLERANCE, and names the slip where the number gives it away."""
    given, wanted = _number("share_lost", given), share_lost(mean, std, p)
    if _close(given, wanted):
        return
    slips = (
        (share_lost(mean, std, p) * std**2, "that is the error itself: divide by the variance to have its share"),
        (2.0**-p * (mean**2 + std**2) / std, "that is divided by the deviation: the variance is its square"),
        (2.0**-p * mean**2 / std**2, "the mean of the squares is mean ** 2 + std ** 2, also where the mean is 0"),
        (2.0**-p * abs(mean) / std, "squares are what is added: the mean and the deviation both enter as squares"),
        (2.0**p * (mean**2 + std**2) / std**2, "the more bits, the less is lost"),
        (2 * wanted, "one rounding is off by half the distance of two neighbours: 2 ** -p, not twice that"),
        (100 * wanted, "that is in per cent: a share of 1 is all of it"),
    )
    otherwise = "it is the error, 2 ** -p of the mean of the squares, over the variance"
    why = next((sentence for slip, sentence in slips if _close(given, slip)), otherwise)
    raise GradeFailed(f"share_lost({mean:g}, {std:g}, {p}) gave {given:g}: {why}")


def judge_bits(given: Any, mean: float, std: float, share: float) -> None:
    """Compares bits_needed exactly."""
    given, wanted = _number("bits_needed", given), bits_needed(mean, std, share)
    if given == wanted:
        return
    call = f"bits_needed({mean:g}, {std:g}, {share:g}) gave {given:g}"
    if given != int(given):
        raise GradeFailed(f"{call}: bits come whole, so round up")
    if given == wanted - 1:
        raise GradeFailed(f"{call}: with so few bits more than {share:g} is lost: round up, not down")
    raise GradeFailed(f"{call}: it is the smallest p for which share_lost(mean, std, p) <= share")


def _number(what: str, given: Any) -> float:
    if isinstance(given, bool | np.bool_):
        raise GradeFailed(f"{what} gave {given!r}: return a number")
    try:
        return float(given)
    except (TypeError, ValueError):
        raise GradeFailed(f"{what} gave {given!r}: return a number") from None


def _close(given: float, wanted: float) -> bool:
    return abs(given - wanted) <= TOLERANCE * abs(wanted)


def centre_inputs(n: int, random: np.random.Generator) -> tuple[simt.Tensor]:
    """Whole numbers whose sums no order rounds; the second row hardly varies, the third is far from 0."""
    x = random.integers(-60, 61, (ROWS, n))
    x[1], x[1, 0] = 7, 8
    x[2] = x[2] % 8 + 120
    return (simt.tensor(x, "bfloat16"),)


def centre_reference(x: np.ndarray) -> np.ndarray:
    """The specification."""
    d = x - (x.sum(axis=1, dtype=np.float32) / np.float32(x.shape[1]))[:, None]
    return simt.rounded(d / np.maximum(np.float32(1), abs(d).max(axis=1))[:, None], "bfloat16")


def centre_traffic(trial: Trial) -> str:
    """Each element loaded once, by neighbours side by side; two barriers."""
    lanes_have_met(trial)
    warps_past_the_end(trial)
    twice_among_threads(trial)
    requests = ROWS * math.ceil(trial.size / 32)
    once = "neighbouring lanes take neighbouring elements, and each thread keeps its own in a list for later"
    at_most(trial, "ld.global", "requests", requests, once)
    met = trial.run.total("bar.sync").requests // (ROWS * CENTRE_THREADS // 32)
    if met > 2:
        raise GradeFailed(
            f"{trial.name}: {met} barriers a block, and 2 are enough: with a place of its own the second reduction "
            "need not wait for those who still read from the first"
        )
    return f"{trial.run.total('ld.global').requests} loads of a warp, {counted(met, 'barriers')}"


def warps_past_the_end(trial: Trial) -> None:
    """GradeFailed where a warp without an element leaves more than a 1, the least divisor, as if it knew the row."""
    for event in (event for event in trial.run.events if event.verb == "st.shared"):
        left = event.values[event.active & (np.arange(CENTRE_THREADS) // 32 * 32 >= trial.size)]
        if (np.isfinite(left) & (left > 1)).any():
            raise GradeFailed(
                f"{trial.name}: a warp whose lanes are all past the end of the row leaves {left.max():g} in shared "
                f"memory, at `{event.line.text}`, as if it knew the row: NumPy's functions look at all threads unless "
                "axis=0 says that only the list is meant"
            )


def twice_among_threads(trial: Trial) -> None:
    """GradeFailed where the warps with elements exchange less than two reductions take: one of them is NumPy's."""
    warps = ROWS * min(math.ceil(trial.size / 32), CENTRE_THREADS // 32)
    left = sum(int(event.active.sum()) for event in trial.run.events if event.verb == "st.shared")
    for found, least, what in (trial.run.total().shuffles, 10, "shuffles"), (left, 2, "numbers left in shared memory"):
        if warps > ROWS and found < least * warps:
            raise GradeFailed(
                f"{trial.name}: {counted(found, what)} by {warps} warps, and two reductions take {least} of each: "
                "NumPy's functions look at all threads, and no GPU does"
            )


class Images(NamedTuple):
    """mean: of the numbers, whose deviation is 1."""

    channels: int
    pixels: int
    images: int = 3
    mean: float = 0.0

    def __str__(self) -> str:
        return f"{self.channels} x {self.pixels}" + (f" around {self.mean:g}" if self.mean else "")


GROUP_SIZES = (
    Images(32, 128, 1),
    Images(64, 64),
    Images(32, 8),
    Images(96, 24),
    Images(320, 64),
    Images(128, 256, mean=1000),
    Images(96, 1000, 2, mean=1000),
    Images(512, 1024, 1),
)
GROUP_LARGE = Images(512, 1024, 128)
GROUP_BYTES = 8 * GROUP_LARGE.images * GROUP_LARGE.channels * GROUP_LARGE.pixels


def group_inputs(size: Images, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """x around the mean, and a weight and a bias of each channel."""
    import torch

    def random(*shape):
        return torch.randn(shape, generator=generator, device=generator.device)

    x = random(size.images, size.channels, size.pixels) + size.mean
    return x, random(size.channels), random(size.channels)


def group_exact(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """The specification, in float64."""
    import torch

    return torch.nn.functional.group_norm(x.double(), GROUPS, w.double(), b.double(), GROUP_EPS)


def group_reference(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """The specification, rounded once."""
    return group_exact(x, w, b).to(x.dtype)


def group_allowed(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """A few roundings of the largest number of a group, as it comes through, and of the bias."""
    rows = x.double().reshape(len(x), GROUPS, -1)
    largest = rows.abs().amax(-1) * (rows.var(-1, correction=0) + GROUP_EPS).rsqrt()  # (images, groups)
    sizes = largest.repeat_interleave(x.shape[1] // GROUPS, 1) * w.double().abs() + b.double().abs()
    return (GROUP_ROUNDINGS * 2.0**-24 * sizes)[..., None].expand(x.shape)


def group_shape(facts: Facts) -> str:
    """128-bit accesses for the rows, and no spill."""
    for name, found in (("load", facts.ld_global), ("store", facts.st_global)):
        if max(found, default=0) != 128:
            raise GradeFailed(
                f"the widest {name} has {max(found, default=0)} bits: a group starts at a multiple of 16 bytes, so "
                "take whole vectors"
            )
    if facts.spill_bytes:
        raise GradeFailed(f"{facts.spill_bytes} bytes of registers are spilled: a thread takes more than it can hold")
    return f"{facts.barriers} barriers, {facts.registers} registers, no spill"


def group_examples() -> tuple[torch.Tensor, ...]:
    """One tensor an argument, all float32."""
    import torch

    x, w = torch.empty(2, 2, 8, device="meta"), torch.empty(8, device="meta")
    return x, w, w, x


CENTRE_TRIALS = Trials(
    sizes=(128, 100, 1, 33, 256, 500),
    inputs=centre_inputs,
    reference=centre_reference,
    dtype="bfloat16",
    grid=lambda n: ROWS,
    block=CENTRE_THREADS,
)
GROUP_CASES = Cases(
    sizes=GROUP_SIZES,
    inputs=group_inputs,
    reference=group_reference,
    allowed=group_allowed,
    letter="channels x pixels",
    advice="look at which channel a vector belongs to, at what n is, and at what lanes past the end add to a sum",
)

TASKS = (
    Task(
        id="layer_norm.lost",
        kind="N",
        gates=(Gate("numbers", "model", judge_lost),),
        hints=(
            "The mean of the squares is mean ** 2 + std ** 2, and one rounding changes it by up to 2 ** -p of itself. "
            "Subtracting mean ** 2 takes away most of the number and nothing of the error.",
            "A share is the error over what it lands on, here std ** 2. For the second function ask how small 2 ** -p "
            "has to be, and take a logarithm.",
            "2**-p * (mean**2 + std**2) / std**2, and the smallest whole p for which that is at most share: "
            "math.ceil(math.log2((mean**2 + std**2) / std**2 / share)).",
        ),
    ),
    Task(
        id="layer_norm.centre",
        kind="P",
        trials=CENTRE_TRIALS,
        gates=gates(CENTRE_TRIALS, centre_traffic),
        hints=(
            "Load four elements a thread with fill=0, reduce their sum over the block as in lesson 10, divide by n. "
            "Everybody has the mean now, and the elements are still in the list.",
            "A lane past the end holds 0, and 0 - mean is no element of the row: np.where(i < n, value - mean, 0) "
            "keeps it out. 1 is the least you divide by: np.maximum(1, ...) at the end.",
            "s takes the sums of the four warps, t their maxima; a barrier behind each store. If both went to s, a "
            "fast warp would store its maximum while a slow one still reads the sums.",
        ),
    ),
    Task(
        id="layer_norm.group_norm",
        kind="K",
        examples=group_examples,
        gates=(
            compiles(),
            shape(group_shape),
            values(GROUP_CASES, GROUP_TAIL),
            speed(GROUP_CASES, GROUP_LARGE, bytes_moved=GROUP_BYTES, share=GROUP_SHARE),
        ),
        hints=(
            "It is the lesson's two-pass kernel with other rows: a block has a group. Which image is it, which is its "
            "first channel, how many elements has it?",
            "image = block // 32, channel = block % 32 * (channels // 32), n = channels // 32 * pixels. The row begins "
            "at mX[image, channel, None], and vectors_of(..., n) goes on into the next channels.",
            "Vector v of a group begins at its element 8 * v, which is in channel `channel + 8 * v // pixels`: all of "
            "the vector takes mW[c] and mB[c]. Keep lanes past the end out of the squares.",
        ),
    ),
)
