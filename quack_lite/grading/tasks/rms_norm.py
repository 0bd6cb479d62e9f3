"""Exercise 10: a proof of batch invariance, four rows in a block on the Model, and a norm of each head."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from quack_lite import simt
from quack_lite.grading.feedback import GradeFailed
from quack_lite.grading.kernel_gates import Cases, compiles, shape, values
from quack_lite.grading.program_gates import Trial, Trials, at_most, gates, lanes_have_met
from quack_lite.grading.speed_gate import speed
from quack_lite.grading.task import Gate, Submission, Task

if TYPE_CHECKING:
    import torch

    from quack_lite.facts import Facts

PROOF_ROWS, PROOF_N = 12, 256
ROWS = 9  # of the program's matrix: one more than two blocks hold
SQUARES_THREADS, ROW_THREADS = 256, 64
SQUARES_BLOCKS = 3
QK_SHARE = 0.7  # of the copy ceiling
QK_EPS = 1e-6
QK_ROUNDINGS = 32
QK_TAIL = "the last block has fewer heads than others, and a head may have fewer vectors than its lanes can take"


def norm_of(x: np.ndarray, parts: int) -> np.ndarray:
    """x over the root of the mean of its squares, which are added in so many parts."""
    pieces = (x * x).reshape(len(x), parts, -1)
    total = np.zeros(len(x), np.float32)
    for part in range(parts):
        sums = pieces[:, part, 0].copy()
        for j in range(1, pieces.shape[2]):
            sums += pieces[:, part, j]
        total += sums
    return x / np.sqrt(total / np.float32(x.shape[1]))[:, None]


def mixed(x: np.ndarray, other: np.ndarray) -> np.ndarray:
    """norm_of(x, 4), and norm_of(x, 16) in the rows that `other` names."""
    return np.where(other[:, None], norm_of(x, 16), norm_of(x, 4))


def leaking(x: np.ndarray) -> np.ndarray:
    """Each row times a number that the others decide, of the size of a rounding."""
    with np.errstate(invalid="ignore"):
        return norm_of(x, 4) * np.float32(1 + 2.0**-22 * (np.nansum(np.abs(x)) > 300 * len(x) ** 0.5))


def signed(x: np.ndarray) -> np.ndarray:
    """norm_of(x, 4), with -0.0 for 0.0 where there are four rows or more."""
    y = norm_of(x, 4)
    return np.where(y == 0, -y, y) if len(x) >= 4 else y


def shaken() -> Callable[[np.ndarray], np.ndarray]:
    """A norm whose every second call sums in another order."""
    calls = []

    def norm(x: np.ndarray) -> np.ndarray:
        calls.append(x)
        return norm_of(x, 16 if len(calls) % 2 else 4)

    return norm


class Norm(NamedTuple):
    """make: gives a function of rows.  invariant: whether it is.  why: what the sentence says of it."""

    make: Callable[[], Callable[[np.ndarray], np.ndarray]]
    invariant: bool
    why: str


NORMS = (
    Norm(lambda: lambda x: norm_of(x, 4), True, "always adds in one order; its rows hold NaN here and there"),
    Norm(lambda: lambda x: norm_of(x, 16 if len(x) < 4 else 4), False, "adds in another order where rows are few"),
    Norm(
        lambda: lambda x: norm_of(x, 16 if 4 <= len(x) < 9 else 4),
        False,
        "adds in another order for batches of 4 to 8 rows, and not for one row or for all: try every x[i:j]",
    ),
    Norm(
        lambda: lambda x: mixed(x, np.arange(len(x)) % 4 == 3),
        False,
        "treats the row in place 3, 7 and so on otherwise: a row's place counts too, so compare all rows of a batch",
    ),
    Norm(
        lambda: lambda x: mixed(x, np.arange(len(x)) == 11),
        False,
        "treats only the row in place 11 otherwise: compare all rows of every batch, to the last one",
    ),
    Norm(lambda: leaking, False, "lets the other rows in, by one rounding: compare bits, without a tolerance"),
    Norm(lambda: signed, False, "gives 0.0 where rows are few and else -0.0: they are equal, and their bits are not"),
    Norm(shaken, False, "gives other bits at each second call: an invariant norm gives one result, whenever it runs"),
    Norm(lambda: lambda x: norm_of(x, 16), True, "always adds in one order, in sixteen parts"),
)


def proof_rows() -> np.ndarray:
    """Fresh rows with a zero, each of which shows in which of the two orders it was added; two of them hold a NaN."""
    drawn = np.random.default_rng().standard_normal((64 * PROOF_ROWS, PROOF_N)).astype(np.float32)
    drawn[:, 7] = 0
    x = drawn[(norm_of(drawn, 4) != norm_of(drawn, 16)).any(axis=1)][:PROOF_ROWS]
    x[3, 5] = x[8, 200] = np.nan
    return x


def judge_proof(submission: Submission) -> str:
    """Calls batch_invariant on norms of which is known whether they are."""
    if not callable(submission.answer):
        raise GradeFailed("hand over the function: batch_invariant")
    x = proof_rows()
    for norm in NORMS:
        given = submission.answer(norm.make(), x.copy())
        if not isinstance(given, bool | np.bool_):
            raise GradeFailed(f"batch_invariant gave a {type(given).__name__}: return one True or False")
        if given and not norm.invariant:
            raise GradeFailed(f"it called a norm invariant that {norm.why}")
        if not given and norm.invariant:
            raise GradeFailed(
                f"it called a norm not invariant that {norm.why}: NaN is not equal to itself, but its bits are"
            )
    return f"right about {len(NORMS)} norms"


def squares_inputs(n: int, random: np.random.Generator) -> tuple[simt.Tensor]:
    """Small whole numbers, whose squares no order of summation rounds."""
    return (simt.tensor(random.integers(-8, 9, (ROWS, n)), "bfloat16"),)


def squares_reference(x: np.ndarray) -> np.ndarray:
    """The specification."""
    return (x * x).sum(axis=1, dtype=np.float32)


def squares_traffic(trial: Trial) -> str:
    """Each element in one request of neighbours, one barrier, one store to shared memory a warp."""
    lanes_have_met(trial)
    warps = SQUARES_THREADS // 32
    steps = -(-trial.size // ROW_THREADS)
    beside = "neighbouring lanes take neighbouring elements, and each of them once"
    at_most(trial, "ld.global", "requests", ROWS * steps * (ROW_THREADS // 32), beside)
    at_most(trial, "st.shared", "requests", SQUARES_BLOCKS * warps, "a warp leaves one number, its own sum")
    met = trial.run.total("bar.sync").requests // (SQUARES_BLOCKS * warps)
    if met > 1:
        raise GradeFailed(f"{trial.name}: {met} barriers a block: once all warps have met, all sums are there")
    return f"{trial.run.total('ld.global').requests} loads of a warp, one barrier"


class Heads(NamedTuple):
    """d: elements of a head.  apart: tokens lie so many times as far apart as they are long."""

    d: int
    tokens: int = 5
    heads: int = 3
    apart: int = 3

    def __str__(self) -> str:
        return f"{self.d} ({self.tokens} x {self.heads} heads)"


QK_SIZES = (
    Heads(128),
    Heads(64, 7, 9),
    Heads(256, 3, 5),
    Heads(8, 1, 1),
    Heads(24),
    Heads(136, 4, 4, 1),
    Heads(96, 33),
)
QK_LARGE = Heads(128, 2**15, 32, 1)
QK_BYTES = 4 * QK_LARGE.tokens * QK_LARGE.heads * QK_LARGE.d


def qk_inputs(size: Heads, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """x bfloat16, a view of a packed buffer, a head of it zero, and a weight around zero, float32."""
    import torch

    device, stride = generator.device, size.apart * size.heads * size.d
    room = torch.randn(size.tokens * stride, generator=generator, device=device, dtype=torch.bfloat16)
    x = room.as_strided((size.tokens, size.heads, size.d), (stride, size.d, 1))
    x[-1, -1] = 0
    return x, torch.rand(size.d, generator=generator, device=device) - 0.5


def qk_exact(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """The specification, in float64."""
    x = x.double()
    return x * (x.square().mean(-1, keepdim=True) + QK_EPS).rsqrt() * (1 + w.double())


def qk_reference(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """The specification, rounded once."""
    return qk_exact(x, w).to(x.dtype)


def qk_allowed(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """Nothing, but where a few float32 roundings decide to which bfloat16 it is rounded: the way between the two."""
    import torch

    y, slack = qk_exact(x, w), QK_ROUNDINGS * 2.0**-24
    less, right, more = ((y * (1 + off)).to(x.dtype).double() for off in (-slack, 0.0, slack))
    return torch.maximum((less - right).abs(), (more - right).abs())


def qk_shape(facts: Facts) -> str:
    """128-bit accesses, no barrier and no spill."""
    for name, found in (("load", facts.ld_global), ("store", facts.st_global)):
        if max(found, default=0) != 128:
            raise GradeFailed(
                f"the widest {name} has {max(found, default=0)} bits: heads start at multiples of 16 bytes, so take 8 "
                "elements in one 128-bit access"
            )
    if 16 in facts.ld_global:
        raise GradeFailed("there are loads of 16 bits, one element of a head each: take 8 in one 128-bit access")
    if facts.barriers:
        raise GradeFailed("there is a barrier in it: a head has at most 32 vectors, so a warp or part of it is enough")
    if facts.spill_bytes:
        raise GradeFailed(f"{facts.spill_bytes} bytes of registers are spilled: a thread takes more than it can hold")
    return f"{facts.shfl_bfly} shuffles, no barrier, {facts.registers} registers"


def qk_examples() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """One tensor an argument: x bfloat16, w float32, y bfloat16."""
    import torch

    x = torch.empty(2, 2, 8, dtype=torch.bfloat16, device="meta")
    return x, torch.empty(8, device="meta"), x


SQUARES_TRIALS = Trials(
    sizes=(64, 100, 1, 65, 333),
    inputs=squares_inputs,
    reference=squares_reference,
    dtype="float32",
    grid=lambda n: SQUARES_BLOCKS,
    block=SQUARES_THREADS,
)
QK_CASES = Cases(
    sizes=QK_SIZES,
    inputs=qk_inputs,
    reference=qk_reference,
    allowed=qk_allowed,
    letter="head size",
    advice="look at which lanes share a head, at what the mean is taken over, and at where it is rounded",
)

TASKS = (
    Task(
        id="rms_norm.proof",
        kind="N",
        gates=(Gate("numbers", "model", judge_proof),),
        hints=(
            "What a row gives alone is the yardstick: norm(x[i:i+1]) for each i, put together, is what every batch has "
            "to give again.",
            "There are few enough batches to try them all: i from 0, j from i + 1 to len(x). In each compare all rows. "
            "With a tolerance you would prove something weaker.",
            "Two arrays have the same bits if a.tobytes() == b.tobytes(). all(norm(x[i:j]).tobytes() == "
            "alone[i:j].tobytes() for ...) is the whole test.",
        ),
    ),
    Task(
        id="rms_norm.squares",
        kind="P",
        trials=SQUARES_TRIALS,
        gates=gates(SQUARES_TRIALS, squares_traffic),
        hints=(
            "Three parts: each thread adds the squares of its elements, thread, thread + 64 and so on; each warp makes "
            "a butterfly; then two warps' sums become a row's, through s.",
            "s has a place for each of the 8 warps: store at b.warpid, one lane of the warp. The warps of a row are "
            "neighbours, and the first of them has an even number.",
            "After b.bar_sync() every lane loads s[b.warpid // 2 * 2] and the place behind it and adds them. Rows 9 "
            "and up do not exist: (row < 9) belongs into where= of the load, with fill=0, and of the store.",
        ),
    ),
    Task(
        id="rms_norm.qk_norm",
        kind="K",
        examples=qk_examples,
        gates=(
            compiles(),
            shape(qk_shape),
            values(QK_CASES, QK_TAIL),
            speed(QK_CASES, QK_LARGE, bytes_moved=QK_BYTES, share=QK_SHARE),
        ),
        hints=(
            "Number all heads of all tokens: item // heads is the token, item % heads the head. A group of lanes has "
            "an item. The lesson's kernel for short rows does the rest.",
            "With 16 lanes a head and two vectors a lane, 128 elements keep every lane busy and 256 still fit. A "
            "butterfly over 16 lanes has four steps, with offsets 1, 2, 4 and 8.",
            "Fill the registers with 0, load vector lane + j * 16 where it is below d // 8 and the item exists. The "
            "mean is over d. y = x * rstd * (1 + w) in float32, rounded when it is stored, under the same condition.",
        ),
    ),
)
