"""Exercise 08: in which order a butterfly adds and what that keeps, sums from each element on, and argmax."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from quack_lite import simt
from quack_lite.grading.feedback import GradeFailed
from quack_lite.grading.kernel_gates import Cases, compiles, shape, values
from quack_lite.grading.program_gates import Trial, Trials, gates, lanes_have_met
from quack_lite.grading.speed_gate import speed
from quack_lite.grading.task import Gate, Submission, Task

if TYPE_CHECKING:
    import torch

    from quack_lite.facts import Facts

WARP, STEPS = 32, 5
LANES = (0, 1, 5, 18, 31)
SUMS = ((64, 24), (8192, 8), (8224, 8), (2**20, 11), (2**26, 24), (2**30, 24), (96, 3))
CTAS, WARPS = 3, 2  # of the program's launch: six rows
ARGMAX_SHARE = 0.7  # of the copy ceiling
ARGMAX_TAIL = "look at the number of blocks, and at which lane stores a row's answer"


def order(lane: int) -> list[int]:
    """Lanes, in the order in which their values stand in this lane's sum; offsets 1, 2, 4, 8, 16."""
    return [lane ^ step for step in range(WARP)]


def one_by_one(n: int, bits: int) -> int:
    """n ones in a float of `bits` bits: 2**bits + 1 lies half-way between two neighbours, and goes to the even one."""
    return min(n, 2**bits)


def by_lanes(n: int, bits: int) -> int:
    """n / 32 ones in each lane, then a butterfly, whose doublings round nothing."""
    return WARP * one_by_one(n // WARP, bits)


def judge_numbers(submission: Submission) -> str:
    """Tries (order, one_by_one, by_lanes)."""
    try:
        of_order, of_one, of_lanes = submission.answer
    except (TypeError, ValueError):
        raise GradeFailed("hand over the three functions: (order, one_by_one, by_lanes)") from None
    for lane in LANES:
        judge_order(of_order(lane), lane)
    for n, bits in SUMS:
        judge_one_by_one(of_one(n, bits), n, bits)
    for n, bits in SUMS:
        judge_by_lanes(of_lanes(n, bits), n, bits)
    return f"right for {len(LANES)} lanes and {len(SUMS)} sums"


def judge_order(given: Any, lane: int) -> None:
    """Compares order, and names the slip where the list gives it away."""
    try:
        given = [int(one) for one in given]
    except (TypeError, ValueError):
        raise GradeFailed(f"order({lane}) gave {given!r}: it returns a list of 32 lanes") from None
    if given == order(lane):
        return
    call = f"order({lane}) begins with {given[:4]}"
    if len(given) != WARP:
        raise GradeFailed(f"order({lane}) has {len(given)} lanes: after five steps each of the 32 has come in once")
    if given == list(range(WARP)):
        raise GradeFailed(f"{call}: that is lane 0's order; each lane begins with its own value")
    if given == [lane ^ int(f"{step:05b}"[::-1], 2) for step in range(WARP)]:
        raise GradeFailed(f"{call}: that is the order of offsets 16, 8, 4, 2, 1; here the first offset is 1")
    if given == [(lane + step) % WARP for step in range(WARP)]:
        raise GradeFailed(f"{call}: a butterfly gives lane ^ offset's value, not lane + offset's")
    raise GradeFailed(
        f"{call}: in each step a lane puts its own list in front and the list of lane ^ offset behind it; write down "
        "two steps for lanes 0 to 3"
    )


def judge_one_by_one(given: Any, n: int, bits: int) -> None:
    """Compares one_by_one."""
    given, wanted = _whole("one_by_one", given), one_by_one(n, bits)
    if given == wanted:
        return
    slips = {
        n: "the sum stops growing: where neighbours lie 2 apart, 1 more is rounded away",
        2 ** (bits - 1): "one bit too few: up to 2**bits every whole number has a place",
        2**bits - 1: "2**bits itself has a place too: the ones behind it are lost",
        2 ** (bits + 1): "one bit too many: from 2**bits on neighbours lie 2 apart, and a tie goes to the even one",
    }
    why = slips.get(given, "up to 2**bits every whole number has a place; from there on, what becomes of 1 more?")
    raise GradeFailed(f"one_by_one({n}, {bits}) gave {given}: {why}")


def judge_by_lanes(given: Any, n: int, bits: int) -> None:
    """Compares by_lanes."""
    given, wanted = _whole("by_lanes", given), by_lanes(n, bits)
    if given == wanted:
        return
    slips = {  # where two slips give one number, the later sentence stands
        one_by_one(n // WARP, bits): "that is one lane's sum: the butterfly adds 32 of them",
        n: "a lane that adds more than 2**bits ones loses some as well",
        one_by_one(n, bits): "the lanes start from nothing each: the limit holds for what one lane adds one by one, "
        "and the five doublings round nothing",
    }
    why = slips.get(given, "each lane adds n // 32 ones one by one; then five times the sum doubles")
    raise GradeFailed(f"by_lanes({n}, {bits}) gave {given}: {why}")


def _whole(name: str, given: Any) -> int:
    if isinstance(given, bool) or not hasattr(given, "__float__") or float(given) != int(given):
        raise GradeFailed(f"{name} returned {given!r}: it returns a whole number")
    return int(given)


def returns_inputs(n: int, random: np.random.Generator) -> tuple[simt.Tensor]:
    """A row of n whole numbers a warp."""
    return (simt.tensor(random.integers(-1000, 1000, (CTAS * WARPS, n)), "int32"),)


def returns_reference(x: np.ndarray) -> np.ndarray:
    """The specification."""
    return x[:, ::-1].cumsum(1)[:, ::-1].astype(np.int32)


def returns_traffic(trial: Trial) -> str:
    """One request a warp each way, and five shuffles."""
    lanes_have_met(trial)
    rows = CTAS * WARPS
    for verb in ("ld.global", "st.global"):
        found = trial.run.total(verb).requests
        if found > rows:
            raise GradeFailed(
                f"{trial.name}: {found} requests of {verb} for {rows} rows: a row has at most 32 elements, so each "
                "lane moves one, once"
            )
    found = trial.run.total().shuffles
    if found > STEPS * rows:
        raise GradeFailed(
            f"{trial.name}: {found / rows:g} shuffles a warp, and {STEPS} are enough: after a step with delta each "
            "lane holds the sum of twice as many, so the next delta is twice as large"
        )
    return f"{found / rows:g} shuffles a warp"


class Shape(NamedTuple):
    """Rows and columns."""

    m: int
    n: int

    def __str__(self) -> str:
        return f"{self.m} x {self.n}"


ARGMAX_LARGE = Shape(2**17, 1024)


def argmax_inputs(size: Shape, generator: torch.Generator) -> tuple[torch.Tensor]:
    """Few different values, so that there are ties. Of four rows one has NaN, one -inf alone, one negative numbers."""
    import torch

    device = generator.device
    if size == ARGMAX_LARGE:
        return (torch.randn(size, generator=generator, device=device),)
    x = torch.randint(-3, 4, size, generator=generator, device=device).float()
    some = torch.rand(size, generator=generator, device=device) < 0.1
    x[1::4] = torch.where(some, math.nan, x)[1::4]
    x[2::4] = -math.inf
    x[3::4] -= 10
    return (x,)


def argmax_reference(x: torch.Tensor) -> torch.Tensor:
    """The specification."""
    import torch

    return x.argmax(1).to(torch.int32)


def argmax_examples() -> tuple[torch.Tensor, torch.Tensor]:
    """One tensor an argument: x float32, y int32."""
    import torch

    x = torch.empty(2, 8, device="meta")
    return x, argmax_reference(x)


def argmax_shape(facts: Facts) -> str:
    """Whole warps, and no spill."""
    if facts.block % WARP:
        raise GradeFailed(f"a block has {facts.block} threads: shuffles go over whole warps, so take a multiple of 32")
    if facts.spill_bytes:
        raise GradeFailed(
            f"{facts.spill_bytes} bytes of registers are spilled to memory: a lane needs a value and an index"
        )
    return f"{facts.block} threads, {facts.shfl_bfly} shuffles by a butterfly, no spill"


RETURNS_TRIALS = Trials(
    sizes=(32, 20, 1, 2, 16, 17, 31),
    inputs=returns_inputs,
    reference=returns_reference,
    dtype="int32",
    grid=lambda n: CTAS,
    block=WARP * WARPS,
)
ARGMAX_CASES = Cases(
    sizes=(Shape(4, 32), Shape(1, 1), Shape(5, 20), Shape(9, 33), Shape(70, 1000), Shape(300, 4099)),
    inputs=argmax_inputs,
    reference=argmax_reference,
    letter="shape",
    advice="of equal values the lowest index wins, NaN is greater than all, and a row of -inf has an answer too",
)

TASKS = (
    Task(
        id="warp_reduction.order",
        kind="N",
        gates=(Gate("numbers", "model", judge_numbers),),
        hints=(
            "Write down lanes 0 to 3 after the offsets 1 and 2. What is lane 1's list, and how does it follow from "
            "lane 0's?",
            "Lane 0's list is 0, 1, 2, ... In every other list each number is the one of lane 0 with the same bits "
            "turned over, those that are set in the lane's own number.",
            "order: [lane ^ k for k in range(32)]. one_by_one: min(n, 2**bits), since 2**bits + 1 is a tie that goes "
            "back. by_lanes: 32 times what one lane keeps of n // 32 ones.",
        ),
    ),
    Task(
        id="warp_reduction.returns",
        kind="P",
        trials=RETURNS_TRIALS,
        gates=gates(RETURNS_TRIALS, returns_traffic),
        hints=(
            "After a step with delta 1 a lane holds its own value and the next one's. With which delta does it get "
            "the sum of the two after that?",
            "Deltas 1, 2, 4, 8, 16. Lanes without an element hold 0, and so does whatever comes from past lane 31: "
            "there shfl_down gives a lane its own value back.",
            "value = b.ld_global(x, (row, b.laneid), where=b.laneid < n, fill=0), and in each step value = value + "
            "np.where(b.laneid + delta < 32, b.shfl_down(value, delta), 0).",
        ),
    ),
    Task(
        id="warp_reduction.argmax",
        kind="K",
        examples=argmax_examples,
        gates=(
            compiles(),
            shape(argmax_shape),
            values(ARGMAX_CASES, ARGMAX_TAIL),
            speed(
                ARGMAX_CASES,
                ARGMAX_LARGE,
                bytes_moved=4 * (ARGMAX_LARGE.n + 1) * ARGMAX_LARGE.m,
                share=ARGMAX_SHARE,
            ),
        ),
        hints=(
            "Start from warp_sum_kernel. A value is now a pair, (number, index), and both travel in each step. When "
            "does pair a win over pair b, whichever of them is the lane's own?",
            "a wins if it is greater; or if it is NaN and b is not; or if both are equal, or both NaN, and its index "
            "is lower. A number is NaN if it is not equal to itself. The identity is -inf with an index past the end.",
            "same = (a[0] == b[0]) | ((a[0] != a[0]) & (b[0] != b[0])); wins = (a[0] > b[0]) | ((a[0] != a[0]) & "
            "(b[0] == b[0])) | (same & (a[1] < b[1])); then cutlass.select_(wins, a[k], b[k]) for both parts.",
        ),
    ),
)
