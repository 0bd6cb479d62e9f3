"""Exercise 18: warps without an element, a pair by st.async on the Model, and a softmax's denominator to mend."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from quack_lite import simt
from quack_lite.grading.feedback import GradeFailed
from quack_lite.grading.kernel_gates import Cases, compiles, shape, values
from quack_lite.grading.program_gates import Trial, Trials, at_most, gates, lanes_have_met
from quack_lite.grading.task import Gate, Submission, Task

if TYPE_CHECKING:
    import torch

    from quack_lite.facts import Facts

WARP, VECTOR = 32, 8
CUTS = (
    (151936, 5, 256, 16),
    (131072, 4, 256, 16),
    (202048, 7, 256, 16),
    (8, 1, 64, 2),
    (264, 2, 32, 2),
    (520, 1, 64, 2),
)
PLANS = ((5, 256, 16), (4, 256, 16), (1, 32, 1), (2, 64, 4), (1, 1024, 2))
MODEL_ROWS, CTAS, CTA_THREADS = 2, 4, 64
MASKED = 37
TAIL = "look at which thread stores a row's answer, and at the grid"
ADVICE = "a warp or block without an element, or with -inf alone, must change nothing: follow its pair"
ROUNDINGS = 64


def empty_warps(n: int, vectors: int, threads: int, cluster: int) -> int:
    """Warps of a cluster that hold no element of a row."""
    empty, piece = 0, threads * vectors
    for rank in range(cluster):
        held = min(max(n // VECTOR - rank * piece, 0), piece)
        empty += threads // WARP - min(math.ceil(held / WARP), threads // WARP)
    return empty


def shortest(vectors: int, threads: int, cluster: int) -> int:
    """The shortest row that gives each warp an element."""
    return VECTOR * ((cluster - 1) * threads * vectors + threads - WARP + 1)


def judge_empty(submission: Submission) -> str:
    """Tries (empty_warps, shortest)."""
    try:
        of_warps, of_row = submission.answer
    except (TypeError, ValueError):
        raise GradeFailed("hand over the two functions: (empty_warps, shortest)") from None
    for n, vectors, threads, cluster in CUTS:
        slips = {
            empty_warps(n, vectors, threads, cluster) + 1: "a warp that is not full has something as well",
            _blocks(n, vectors, threads, cluster): "count warps, not blocks",
            _blocks(n, vectors, threads, cluster) * threads // WARP: "the last block that has something may have warps "
            "that have nothing",
            _in_pieces(n, vectors, threads, cluster): "a thread takes every threads-th vector of its slice: the first "
            "vectors of a slice go to all of its threads",
        }
        call = f"empty_warps({n}, {vectors}, {threads}, {cluster})"
        judge_number(call, of_warps(n, vectors, threads, cluster), empty_warps(n, vectors, threads, cluster), slips)
    for vectors, threads, cluster in PLANS:
        right = shortest(vectors, threads, cluster)
        slips = {
            right - VECTOR + 1: "rows come in whole vectors, of 8 elements each",
            right + VECTOR * threads * (vectors - 1): "the last slice need not be full: its first vectors go to "
            "all of its threads",
            right - VECTOR: "one vector more: the last warp still has nothing",
            VECTOR * ((cluster - 1) * threads * vectors + 1): "every warp of the last block needs an element, not "
            "only the first",
            VECTOR * ((cluster - 1) * threads * vectors + threads): "a warp has an element as soon as one of its "
            "lanes has",
            right // VECTOR: "that is a number of vectors, each has 8 elements",
        }
        judge_number(f"shortest({vectors}, {threads}, {cluster})", of_row(vectors, threads, cluster), right, slips)
    return f"right for {len(CUTS)} cuts and {len(PLANS)} plans"


def _blocks(n, vectors, threads, cluster):
    return sum(n // VECTOR <= rank * threads * vectors for rank in range(cluster))


def _in_pieces(n, vectors, threads, cluster):
    """As if each thread had neighbouring vectors."""
    return cluster * threads // WARP - min(math.ceil(n / VECTOR / (WARP * vectors)), cluster * threads // WARP)


def judge_number(call: str, given: Any, wanted: int, slips: dict[int, str]) -> None:
    """Compares a whole number, and names the slip where the number gives it away."""
    if isinstance(given, bool) or not isinstance(given, int | np.integer):
        raise GradeFailed(f"{call} gave {given!r}: it is a whole number")
    if given != wanted:
        raise GradeFailed(f"{call} gave {given}: {slips.get(int(given), 'draw the slices and their warps')}")


def count_inputs(n: int, random: np.random.Generator) -> tuple[simt.Tensor]:
    """A row with ties, and one of negative numbers whose largest comes once, or of MASKED elements -inf."""
    x = random.integers(-3, 2, (MODEL_ROWS, n)).astype(np.float32)
    x[1] -= 9
    x[1, random.integers(n)] = -2
    if n == MASKED:
        x[1] = -np.inf
    return (simt.tensor(x, "float32"),)


def count_reference(x: np.ndarray) -> np.ndarray:
    """The specification."""
    highest = x.max(axis=1, keepdims=True)
    return np.concatenate([highest, (x == highest).sum(axis=1, keepdims=True)], axis=1).astype(np.float32)


def count_traffic(trial: Trial) -> str:
    """One cluster barrier a block, and one store by st.async for each pair of blocks."""
    lanes_have_met(trial)
    warps = MODEL_ROWS * CTAS * CTA_THREADS // WARP
    met = trial.run.total("barrier.cluster.wait").requests // warps
    if met > 1:
        raise GradeFailed(f"{trial.name}: {met} cluster barriers a block: one is enough, the bytes tell the rest")
    sent = MODEL_ROWS * CTAS * CTAS
    at_most(trial, "st.async", "requests", sent, "lane r of one warp sends to rank r")
    at_most(trial, "st.async", "bytes_asked", sent * 8, "a pair goes in one store, once to each block")
    stores = sum(int(event.active.sum()) for event in trial.run.events if event.verb == "st.async")
    if stores > sent:
        raise GradeFailed(f"{trial.name}: {stores} asynchronous stores for {sent} pairs: both numbers go in one store")
    return f"{met} cluster barrier, {sent * 8} bytes by st.async"


class Rows(NamedTuple):
    """m rows of n elements, of which those from `masked` on are -inf."""

    m: int
    n: int
    masked: int | None = None

    def __str__(self) -> str:
        return f"{self.m} x {self.n}" + (f" (-inf from {self.masked} on)" if self.masked is not None else "")


def mend_inputs(size: Rows, generator: torch.Generator) -> tuple[torch.Tensor]:
    """Random logits."""
    import torch

    x = torch.randn(size.m, size.n, generator=generator, device=generator.device, dtype=torch.bfloat16)
    if size.masked is not None:
        x[:, size.masked :] = -math.inf
    return (x * 4,)


def mend_reference(x: torch.Tensor) -> torch.Tensor:
    """The specification, in float64."""
    return x.double().softmax(1).amax(1).float()


def mend_allowed(x: torch.Tensor) -> torch.Tensor:
    """Some roundings of float32; the exponents are rounded too, in proportion to their size."""
    spread = (x.double().amax(1) - x.double().where(x.isfinite(), x.double().amax(1, keepdim=True)).amin(1)).clamp_min(
        1
    )
    return ROUNDINGS * 2.0**-24 * spread * x.double().softmax(1).amax(1)


def mend_examples() -> tuple[torch.Tensor, torch.Tensor]:
    """One tensor an argument: x bfloat16, y float32."""
    import torch

    return torch.empty(2, 8, dtype=torch.bfloat16, device="meta"), torch.empty(2, device="meta")


def mend_shape(facts: Facts) -> str:
    """One exchange by st.async behind one cluster barrier, and no spill."""
    if facts.st_async != 1 or facts.cluster_barriers != 1:
        raise GradeFailed(
            f"{facts.st_async} st.async and {facts.cluster_barriers} cluster barriers stand in it: the kernel that was "
            "given has one of each, and they are right"
        )
    if facts.spill_bytes:
        raise GradeFailed(f"{facts.spill_bytes} bytes of registers are spilled: a row has room without")
    return f"one st.async, one cluster barrier, {facts.registers} registers"


COUNT_TRIALS = Trials(
    sizes=(256, 1, MASKED, 100),
    inputs=count_inputs,
    reference=count_reference,
    dtype="float32",
    grid=lambda n: MODEL_ROWS * CTAS,
    block=CTA_THREADS,
    cluster=CTAS,
)
MEND_CASES = Cases(
    sizes=(
        Rows(4, 163840),
        Rows(3, 155400),
        Rows(3, 151936),
        Rows(2, 131072),
        Rows(5, 8),
        Rows(2, 163840, 81920),
        Rows(2, 163840, 1),
    ),
    inputs=mend_inputs,
    reference=mend_reference,
    allowed=mend_allowed,
    letter="shape",
    advice=ADVICE,
)

TASKS = (
    Task(
        id="cluster_async.empty",
        kind="N",
        gates=(Gate("numbers", "model", judge_empty),),
        hints=(
            "Draw two blocks of 64 threads with two vectors a thread: a slice has 128 vectors. Which warps have "
            "something if the row has 130?",
            "A block holds min(max(n // 8 - rank * threads * vectors, 0), threads * vectors) vectors, and its first "
            "ceil(held / 32) warps have something, at most all of them.",
            "In the shortest row all slices but the last are full, and of the last block all warps but one are full, "
            "and that one has a single vector: 8 * ((cluster - 1) * threads * vectors + threads - 32 + 1).",
        ),
    ),
    Task(
        id="cluster_async.count",
        kind="P",
        trials=COUNT_TRIALS,
        gates=gates(COUNT_TRIALS, count_traffic),
        hints=(
            "The order: expect and arrive, b.cluster_arrive(), load, of_block, b.cluster_wait(), send, wait, combine "
            "four pairs, store. A lane without an element says (-inf, 0).",
            "Each mbarrier waits for 8 bytes from each of four blocks. Lane r < 4 sends to rank r, to the slot of its "
            "own rank: b.st_async(s, b.tid % 4, (b.rank, 0), np.stack(pair, axis=1), m, where=b.tid < 4).",
            "together: the count of a side goes in if its number is the larger of both: a[1] * (a[0] == highest) + "
            "b[1] * (b[0] == highest). At equal numbers both do.",
        ),
    ),
    Task(
        id="cluster_async.mend",
        kind="K",
        examples=mend_examples,
        gates=(compiles(), shape(mend_shape), replace(values(MEND_CASES, TAIL), place="hopper")),
        hints=(
            "Who sends to one mbarrier? Every warp of every block, one pair of two words each. What is -inf - -inf?",
            "EXPECTED is 8 * WARPS * CLUSTER. In power subtract a maximum that is never -inf: "
            "cute.arch.fmax(highest, LOWEST).",
            "row_total: each lane goes over the pairs lane, lane + 32 and so on, for the maximum first; of_lanes with "
            "cute.arch.fmax; then total += sV[1, k] * power(sV[0, k], highest), and of_lanes with add.",
        ),
    ),
)
