"""Exercise 17: where clusters find room, and the place of a row's largest element by a cluster: Model and kernel."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from quack_lite import simt
from quack_lite.counted import counted
from quack_lite.grading.feedback import GradeFailed
from quack_lite.grading.kernel_gates import Cases, compiles, shape, values
from quack_lite.grading.program_gates import Trial, Trials, at_most, gates, lanes_have_met
from quack_lite.grading.speed_gate import speed
from quack_lite.grading.task import Gate, Submission, Task
from quack_lite.simt.traffic import SECTOR, WORD

if TYPE_CHECKING:
    import torch

    from quack_lite.facts import Facts

GROUPS = (([16, 18, 16, 18], 16), ([16, 18, 16, 18], 4), ([18] * 7, 8), ([9, 7], 8), ([132], 1))
ROWS = ((8, [16, 18], 4), (9, [16, 18], 4), (1000, [18] * 7, 16), (2, [9, 7], 8))
HELD = ((131072, 8, 256), (131073, 8, 256), (8, 1, 32), (257, 1, 32), (262144, 4, 256), (10**6, 4, 256))
SIZES = (1, 2, 4, 8, 16)
GROUP_ADVICE = "draw the groups and put the clusters in"
SIZE_ADVICE = "count the vectors of the row, and those that the threads of a cluster hold"
MODEL_ROWS, CTAS, CTA_THREADS = 2, 4, 64
WARP = 32
ARGMAX_SHARE = 0.5  # of the copy ceiling
ARGMAX_TAIL = "look at which block stores a row's answer, and at the grid"
FEW = "a cluster has a row: look at what a block without an element says, and at when a peer's pair may be read"


def at_a_time(groups: list[int], size: int) -> int:
    """Clusters that run at a time, a block an SM."""
    return sum(group // size for group in groups)


def turns(rows: int, groups: list[int], size: int) -> int:
    """Turns until each row has had a cluster."""
    return math.ceil(rows / at_a_time(groups, size))


def smallest(n: int, vectors: int, threads: int) -> int:
    """The smallest cluster that holds a row."""
    return next((size for size in SIZES if math.ceil(n / 8) <= size * vectors * threads), 0)


def judge_room(submission: Submission) -> str:
    """Tries (at_a_time, turns, smallest)."""
    try:
        of_room, of_turns, of_size = submission.answer
    except (TypeError, ValueError):
        raise GradeFailed("hand over the three functions: (at_a_time, turns, smallest)") from None
    for groups, size in GROUPS:
        judge_number(
            f"at_a_time({groups}, {size})",
            of_room(list(groups), size),
            at_a_time(groups, size),
            {
                len(groups) * (min(groups) // size): "groups need not be of one size: take each by itself",
                size * at_a_time(groups, size): "that is a number of SMs: count clusters",
                sum(groups) // size: "a cluster lies in one group: what a group has left over is no use to another",
            },
        )
    for rows, groups, size in ROWS:
        slips = {
            rows // at_a_time(groups, size): "the last turn counts, though it may not be full",
            rows // at_a_time(groups, size) + 1: "where the rows fill every turn there is none behind it",
            math.ceil(rows * size / sum(groups)): "a cluster lies in one group: count clusters at a time, not SMs",
        }
        call = f"turns({rows}, {groups}, {size})"
        judge_number(call, of_turns(rows, list(groups), size), turns(rows, groups, size), slips)
    for n, vectors, threads in HELD:
        needed = math.ceil(math.ceil(n / 8) / (vectors * threads))
        slips = {
            SIZES[-1]: "0 says that none is large enough",
            2 * smallest(n, vectors, threads): "a row that fills every place fits as well",
            needed: "clusters have 1, 2, 4, 8 or 16 blocks, and 0 says that none is large enough",
            next((size for size in SIZES if n // 8 <= size * vectors * threads), 0): "a last vector that is not full "
            "takes a place as well",
            next((size for size in SIZES if n <= size * vectors * threads), 0): "a vector has 8 elements",
        }
        call = f"smallest({n}, {vectors}, {threads})"
        judge_number(call, of_size(n, vectors, threads), smallest(n, vectors, threads), slips, SIZE_ADVICE)
    return f"right for {len(GROUPS) + len(ROWS) + len(HELD)} questions"


def judge_number(call: str, given: Any, wanted: int, slips: dict[int, str], advice: str = GROUP_ADVICE) -> None:
    """Compares a whole number, and names the slip where the number gives it away."""
    if isinstance(given, bool) or not isinstance(given, int | np.integer):
        none = "" if wanted else ", and 0 where no cluster is large enough"
        raise GradeFailed(f"{call} gave {given!r}: it is a whole number{none}")
    if given != wanted:
        raise GradeFailed(f"{call} gave {given}: {slips.get(int(given), advice)}")


def largest_inputs(n: int, random: np.random.Generator) -> tuple[simt.Tensor]:
    """A row with many ties, whose largest come up to three times, and one of nothing but -inf.

    The first of the largest is the second warp's, and not the first block's, where the row is long enough.
    """
    x = random.integers(0, 4, (MODEL_ROWS, n)).astype(np.float32) - 5
    late = [i for i in range(n) if i % CTA_THREADS >= WARP and i // CTA_THREADS % CTAS > 0]
    first = random.choice(late or [0])
    x[0, [first, *random.integers(first, n, size=2)]] = -1
    x[1] = -np.inf
    return (simt.tensor(x, "float32"),)


def largest_reference(x: np.ndarray) -> np.ndarray:
    """The specification."""
    return x.argmax(axis=1).astype(np.int32)


def largest_traffic(trial: Trial) -> str:
    """Each element in one request of neighbours, and two cluster barriers a block."""
    lanes_have_met(trial)
    warps = MODEL_ROWS * CTAS * CTA_THREADS // WARP
    steps = -(-trial.size // (CTAS * CTA_THREADS))
    beside = "neighbouring lanes take neighbouring elements, and each of them once"
    at_most(trial, "ld.global", "requests", warps * steps, beside)
    loads = trial.run.total("ld.global").requests
    most = MODEL_ROWS * trial.size * WORD // SECTOR + 2 * loads  # a load may begin and end inside a sector
    at_most(trial, "ld.global", "sectors", most, beside)
    met = trial.run.total("barrier.cluster.wait").requests // warps
    if met > 2:
        raise GradeFailed(f"{trial.name}: {met} cluster barriers a block: one before the peers are read, one after")
    return f"{loads} loads of a warp, {counted(met, 'cluster barriers')}"


class Shape(NamedTuple):
    """Rows and columns."""

    m: int
    n: int

    def __str__(self) -> str:
        return f"{self.m} x {self.n}"


ARGMAX_LARGE = Shape(64, 2**21)


def argmax_inputs(size: Shape, generator: torch.Generator) -> tuple[torch.Tensor]:
    """Random numbers with ties in half of the rows; one row of -inf, one of negative numbers, where there are such."""
    import torch

    x = torch.randn(*size, generator=generator, device=generator.device)
    if size == ARGMAX_LARGE:
        return (x,)
    x[1::2] = torch.round(x[1::2])
    x[2::4] = -math.inf
    x[3::4] -= 10
    return (x,)


def argmax_reference(x: torch.Tensor) -> torch.Tensor:
    """The lowest index of the largest value, which torch's argmax does not promise."""
    import torch

    places = torch.arange(x.shape[1], device=x.device).where(x == x.amax(1, keepdim=True), x.shape[1])
    return places.amin(1).to(torch.int32)


def argmax_examples() -> tuple[torch.Tensor, torch.Tensor]:
    """One tensor an argument: x float32, y int32."""
    import torch

    return torch.empty(2, 8, device="meta"), torch.empty(2, dtype=torch.int32, device="meta")


def argmax_shape(facts: Facts) -> str:
    """Two cluster barriers, whole warps, no spill."""
    if facts.cluster_barriers != 2:
        raise GradeFailed(
            f"{facts.cluster_barriers} cluster barriers stand in it: one before the peers' pairs are read, so that "
            "they are there, and one after, so that nobody has left"
        )
    if facts.spill_bytes:
        raise GradeFailed(f"{facts.spill_bytes} bytes of registers are spilled: a thread needs a value and an index")
    return f"{counted(facts.cluster_barriers, 'cluster barriers')}, {facts.registers} registers"


LARGEST_TRIALS = Trials(
    sizes=(256, 1, 300),
    inputs=largest_inputs,
    reference=largest_reference,
    dtype="int32",
    grid=lambda n: MODEL_ROWS * CTAS,
    block=CTA_THREADS,
    cluster=CTAS,
)
ARGMAX_CASES = Cases(
    sizes=(Shape(4, 8192), Shape(1, 1), Shape(5, 31), Shape(3, 4097), Shape(8, 151936), Shape(37, 70001)),
    inputs=argmax_inputs,
    reference=argmax_reference,
    letter="shape",
    advice=FEW,
)

TASKS = (
    Task(
        id="cluster.room",
        kind="N",
        gates=(Gate("numbers", "model", judge_room),),
        hints=(
            "Take a group of 18 SMs and clusters of 4. Four of them fit. Can the two SMs that are left help another "
            "group?",
            "at_a_time adds up group // size. turns divides the rows by it and rounds up. For smallest count vectors: "
            "math.ceil(n / 8).",
            "smallest: go through 1, 2, 4, 8, 16 and give the first size with math.ceil(n / 8) <= size * vectors * "
            "threads, and 0 behind them.",
        ),
    ),
    Task(
        id="cluster.largest",
        kind="P",
        trials=LARGEST_TRIALS,
        gates=gates(LARGEST_TRIALS, largest_traffic),
        hints=(
            "Thread by thread, then the warp by a butterfly, then through shared memory: what exercise 8 did for a "
            "pair within a warp, once more with the pairs of eight warps in four blocks.",
            "A lane without an element has (-inf, n), also at first. Lane 0 of each warp stores its pair; behind the "
            "cluster barrier every thread reads 4 times 2 pairs by ld_peer. No bar_sync is needed.",
            "for rank, warp in np.ndindex(4, 2): best = first_of(best, (b.ld_peer(sV, rank, warp), b.ld_peer(sI, rank, "
            "warp))), and then b.cluster_arrive() and b.cluster_wait() once more, before the program ends.",
        ),
    ),
    Task(
        id="cluster.argmax",
        kind="K",
        examples=argmax_examples,
        gates=(
            compiles(),
            shape(argmax_shape),
            replace(values(ARGMAX_CASES, ARGMAX_TAIL), place="hopper"),
            replace(
                speed(ARGMAX_CASES, ARGMAX_LARGE, bytes_moved=4 * ARGMAX_LARGE.m * ARGMAX_LARGE.n, share=ARGMAX_SHARE),
                place="hopper",
            ),
        ),
        hints=(
            "The program of task 2 is the kernel: threads, warps, shared memory, peers. Sixteen blocks of sixteen "
            "warps leave 256 pairs.",
            "Each warp can combine all 256 for itself: lane l takes the pairs l, l + 32 and so on, pair k being slot "
            "k % WARPS of peer k // WARPS, and then of_warp.",
            "Start from (Float32(-math.inf), n); for j in cutlass.range(rank * THREADS + thread, n, CLUSTER * "
            "THREADS). cluster_arrive and cluster_wait before the loop over the peers and at the end of the kernel.",
        ),
    ),
)
