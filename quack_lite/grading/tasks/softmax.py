"""Exercise 12: two parts of an attention become one, pairs of rows with a sink, and a masked log-sum-exp with one."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from quack_lite import simt
from quack_lite.grading.feedback import GradeFailed
from quack_lite.grading.kernel_gates import Cases, compiles, shape, values
from quack_lite.grading.program_gates import Trial, Trials, at_most, gates, lanes_have_met, requests_of
from quack_lite.grading.speed_gate import speed
from quack_lite.grading.task import Gate, Submission, Task

if TYPE_CHECKING:
    import torch

    from quack_lite.facts import Facts

TOLERANCE = 1e-9
VECTOR = 8  # bfloat16 in 128 bits
ROWS = 9  # of the program's matrix
PAIR_THREADS = 128  # of a block
SINK_SHARE = 0.65  # of the copy ceiling
SINK_ROUNDINGS = 8
SINK_TAIL = "a block has one number to store, its row's"


class Part(NamedTuple):
    """What a part of the keys gives: the scores of its keys, and a vector of `width` numbers for each."""

    scores: np.ndarray
    values: np.ndarray

    def attention(self) -> tuple[float, np.ndarray]:
        """(log-sum-exp of the scores, mean of the vectors with the weights exp(score))."""
        if not len(self.scores) or self.scores.max() == -math.inf:
            return -math.inf, np.zeros(self.values.shape[1])
        powers = np.exp(self.scores - self.scores.max())
        return self.scores.max() + math.log(powers.sum()), powers @ self.values / powers.sum()


def part(keys: int, offset: float, random: np.random.Generator, width: int = 5) -> Part:
    """A part with random scores about `offset`."""
    return Part(random.standard_normal(keys) * 3 + offset, random.standard_normal((keys, width)))


# (keys, what their scores lie about) of the two parts
MERGES = (
    ((4, 0.0), (4, 0.0)),
    ((7, 1.0), (2, -3.0)),
    ((3, 0.0), (0, 0.0)),
    ((0, 0.0), (5, 2.0)),
    ((3, 900.0), (6, 905.0)),
    ((3, -900.0), (6, -905.0)),
    ((3, -1000.0), (6, 1000.0)),
    ((0, 0.0), (0, 0.0)),
)


def judge_merge(submission: Submission) -> str:
    """Tries (empty, merge) on parts that are as they should be, empty, or far from 0."""
    try:
        empty, merge = submission.answer
    except (TypeError, ValueError):
        raise GradeFailed("hand over the two functions: (empty, merge)") from None
    random = np.random.default_rng()
    judge_empty(empty(5))
    for one, other in MERGES:
        judge_pair(empty, merge, part(*one, random), part(*other, random))
    return f"right for {len(MERGES)} pairs of parts"


def judge_empty(given: Any) -> None:
    """What stands for no key at all has to be (-inf, zeros)."""
    lse, out = _result("empty(5)", given)
    if out.shape != (5,):
        raise GradeFailed(f"empty(5) gave an output of shape {out.shape}: it has `width` numbers, here the shape (5,)")
    if not np.isfinite(out).all():
        raise GradeFailed(f"empty(5) gave the output {out}: it is multiplied by 0 later, and 0 * inf is NaN")
    if lse != -math.inf:
        raise GradeFailed(
            f"empty(5) gave the log-sum-exp {lse:g}: no exponential at all is a sum of 0, and log 0 is -inf"
        )


def judge_pair(empty: Any, merge: Any, one: Part, other: Part) -> None:
    """Compares merge for two parts, and names the slip where the numbers give it away."""
    both = Part(np.concatenate((one.scores, other.scores)), np.concatenate((one.values, other.values)))
    wanted_lse, wanted = both.attention()
    pair = [empty(5) if not len(side.scores) else side.attention() for side in (one, other)]
    case = (
        f"merge of parts with {len(one.scores)} and {len(other.scores)} keys, lse {pair[0][0]:.4g} and {pair[1][0]:.4g}"
    )
    try:
        lse, out = _result(case, merge(*pair))
    except (OverflowError, ZeroDivisionError, ValueError) as error:
        raise GradeFailed(f"{case}: {error}: {_far(pair)}") from None
    if not (_close(lse, wanted_lse) and math.isfinite(np.sum(out))):
        raise GradeFailed(
            f"{case}: it gave the log-sum-exp {lse:g} and should give {wanted_lse:g}: {_why_lse(pair, lse)}"
        )
    if not np.allclose(out, wanted, rtol=TOLERANCE, atol=TOLERANCE):
        raise GradeFailed(f"{case}: the log-sum-exp is right and the output is not: {_why_out(pair, out)}")


def _far(pair: list) -> str:
    if pair[0][0] == pair[1][0] == -math.inf:
        return "where both parts are empty nothing may be divided by their sum, nor -inf be taken from -inf"
    return "exp of a large number overflows, and of a very small one is 0: take the greater log-sum-exp off both before"


def _why_lse(pair: list, given: float) -> str:
    if math.isnan(given) and pair[0][0] == pair[1][0] == -math.inf:
        return "-inf - -inf is NaN, so two empty parts need care"
    if not math.isfinite(given):
        return _far(pair)
    if _close(given, max(pair[0][0], pair[1][0])):
        return "that is the greater of the two: both parts add to the sum"
    return "add the two sums of exponentials, e to the one and e to the other, and take the logarithm"


def _why_out(pair: list, given: np.ndarray) -> str:
    if np.allclose(given, (pair[0][1] + pair[1][1]) / 2):
        return "that is the mean of the two, as if both parts weighed the same"
    if np.allclose(given, pair[0][1] + pair[1][1]):
        return "that is the sum of the two, and each of them is a mean already"
    return "each part's output weighs as much as its sum of exponentials, and the two weights add up to 1"


def _result(name: str, given: Any) -> tuple[float, np.ndarray]:
    try:
        lse, out = given
        return float(lse), np.asarray(out, float)
    except (TypeError, ValueError):
        raise GradeFailed(f"{name} gave {given!r}: it returns two things, (log-sum-exp, output)") from None


def _close(given: float, wanted: float) -> bool:
    return given == wanted or abs(given - wanted) <= TOLERANCE * max(1, abs(wanted))


def pair_inputs(n: int, random: np.random.Generator) -> tuple[simt.Tensor, ...]:
    """Whole numbers, so that powers of 2 and their sums are exact; NaN behind each row's length."""
    lengths = random.integers(0, n + 1, ROWS)
    lengths[:3] = n, 0, min(n, 3)
    x = random.integers(-6, 7, (ROWS, n)).astype(np.float32)
    x[random.random((ROWS, n)) < 0.1] = -math.inf
    x[4] = -math.inf
    x[np.arange(n) >= lengths[:, None]] = math.nan
    sink = random.integers(-6, 7, ROWS).astype(np.float32)
    sink[[1, 5]] = -math.inf
    return simt.tensor(x, "bfloat16"), simt.tensor(lengths, "int32"), simt.tensor(sink, "float32")


def pair_reference(x: np.ndarray, lengths: np.ndarray, sink: np.ndarray) -> np.ndarray:
    """The specification."""
    pairs = np.empty((ROWS, 2), np.float32)
    for row, length in enumerate(lengths):
        seen = np.append(x[row, :length], sink[row])
        seen = seen[seen > -math.inf]
        pairs[row] = (seen.max(), np.exp2(seen - seen.max()).sum()) if len(seen) else (-math.inf, 0)
    return pairs


def pair_traffic(trial: Trial) -> str:
    """Nothing behind a row's length is loaded, but for the rest of its last vector; two numbers a row are stored."""
    lanes_have_met(trial)
    vectors = -(-trial.tensors[1].values // VECTOR)
    loads = requests_of(trial, "ld.global", 0)
    asked, needed = sum(load.bytes_asked for load in loads), int(vectors.sum()) * VECTOR * 2
    for load in loads:
        if load.width != 2 * VECTOR:
            raise GradeFailed(
                f"{trial.name}: a lane loads {load.width // 2} scores at `{load.line.text}`: take 8 neighbours in one "
                "access with vec=8",
                request=load,
            )
    if asked > needed:
        beyond = max(loads, key=lambda load: load.bytes_asked)
        raise GradeFailed(
            f"{trial.name}: {asked} bytes of x are loaded, and {needed} are needed: at `{beyond.line.text}` leave out, "
            "with where=, each vector that begins at or behind the row's length",
            request=beyond,
        )
    warps = ROWS * PAIR_THREADS // 32
    at_most(trial, "st.global", "bytes_asked", ROWS * 8, "one thread stores for its row")
    at_most(trial, "shfl.sync.bfly", "requests", warps * 2 * 10, "five steps of a butterfly, for two numbers, twice")
    return "nothing behind a length was loaded but the rest of its vector"


class Rows(NamedTuple):
    """m rows of n scores in turn for `heads` heads."""

    n: int
    m: int = 6
    heads: int = 3

    def __str__(self) -> str:
        return str(self.n)


SINK_SIZES = (Rows(8), Rows(16, 1, 1), Rows(1000), Rows(4096), Rows(50264), Rows(2056, 300, 7))
SINK_LARGE = Rows(32768, 8192, 64)


def large_lengths(size: Rows) -> list[int]:
    """From half a row to all of it."""
    return [size.n // 2 + row * 7 % (size.n // 2) for row in range(size.m)]


SINK_BYTES = 2 * sum(large_lengths(SINK_LARGE))


def sink_inputs(size: Rows, generator: torch.Generator) -> tuple[torch.Tensor, ...]:
    """x bfloat16 with -inf here and there and NaN behind each length; lengths int32; sinks float32."""
    import torch

    how = {"generator": generator, "device": generator.device}
    x = torch.randn(size.m, size.n, dtype=torch.bfloat16, **how) * 4
    sink = torch.randn(size.heads, **how) * 4
    if size == SINK_LARGE:
        lengths = torch.tensor(large_lengths(size), dtype=torch.int32, device=generator.device)
        return x, lengths, sink
    lengths = torch.randint(size.n + 1, (size.m,), dtype=torch.int32, **how)
    lengths[0] = size.n
    lengths[1:3] = torch.tensor([0, min(size.n, 5)])[: size.m - 1]
    x[torch.rand(x.shape, **how) < 0.2] = -math.inf
    x[3:4] = -math.inf
    x[4:5] += 1000
    x[torch.arange(size.n, device=generator.device) >= lengths[:, None]] = math.nan
    sink[1:2] = -math.inf
    return x, lengths, sink


def sink_scores(x: torch.Tensor, lengths: torch.Tensor, sink: torch.Tensor) -> torch.Tensor:
    """All numbers whose exponentials are added, in float64: (m, n + 1), -inf where there is none."""
    import torch

    behind = torch.arange(x.shape[1], device=x.device) >= lengths[:, None]
    heads = torch.arange(len(x), device=x.device) % len(sink)
    return torch.cat((x.double().masked_fill(behind, -math.inf), sink.double()[heads][:, None]), 1)


def sink_reference(x: torch.Tensor, lengths: torch.Tensor, sink: torch.Tensor) -> torch.Tensor:
    """The specification, in float64, a few rows at a time."""
    import torch

    parts = [sink_scores(x[k : k + 512], lengths[k : k + 512], _turned(sink, k)) for k in range(0, len(x), 512)]
    return torch.cat([part.logsumexp(1) for part in parts]).float()


def sink_allowed(x: torch.Tensor, lengths: torch.Tensor, sink: torch.Tensor) -> torch.Tensor:
    """A few roundings of 1 plus the greatest number of the row."""
    import torch

    parts = [sink_scores(x[k : k + 512], lengths[k : k + 512], _turned(sink, k)) for k in range(0, len(x), 512)]
    sizes = torch.cat([part.nan_to_num(neginf=0).abs().amax(1) for part in parts])
    return SINK_ROUNDINGS * 2.0**-24 * (1 + sizes)


def _turned(sink: torch.Tensor, first: int) -> torch.Tensor:
    return sink.roll(-(first % len(sink)))


def sink_shape(facts: Facts) -> str:
    """128-bit loads, one exchange between warps, no spill."""
    if max(facts.ld_global, default=0) != 128:
        raise GradeFailed(
            f"the widest load has {max(facts.ld_global, default=0)} bits: rows start at a multiple of 16 bytes, so the "
            "whole vectors before a length go by 128-bit loads"
        )
    if not facts.barriers:
        raise GradeFailed("there is no barrier: the warps of a block have to meet before their pairs become one")
    if facts.spill_bytes:
        raise GradeFailed(
            f"{facts.spill_bytes} bytes of registers are spilled to memory: a row streams by, and needs no room"
        )
    return "128-bit loads, no spill"


def sink_examples() -> tuple[torch.Tensor, ...]:
    """One tensor an argument: x bfloat16, lengths int32, sinks and lse float32."""
    import torch

    x = torch.empty(2, 8, dtype=torch.bfloat16, device="meta")
    lengths, numbers = torch.empty(2, dtype=torch.int32, device="meta"), torch.empty(2, device="meta")
    return x, lengths, numbers, numbers


PAIR_TRIALS = Trials(
    sizes=(8, 40, 256, 264, 1024),
    inputs=pair_inputs,
    reference=pair_reference,
    dtype="float32",
    grid=lambda n: ROWS,
    block=PAIR_THREADS,
)
SINK_CASES = Cases(
    sizes=SINK_SIZES,
    inputs=sink_inputs,
    reference=sink_reference,
    allowed=sink_allowed,
    advice="look at what an empty thread holds, at the elements behind a length, and at which head a row has",
)

TASKS = (
    Task(
        id="softmax.merge",
        kind="N",
        gates=(Gate("numbers", "model", judge_merge),),
        hints=(
            "A part's sum of exponentials is exp(lse), and its output is a mean: times that sum it is what the part "
            "adds. What do the two parts together divide by?",
            "Do not form exp(lse). With the greater lse taken off, one weight is 1 and the other is smaller; put the "
            "greater back at the end. If both are -inf there is no greater one to take off.",
            "shift = max of the two; weights exp(lse - shift); lse = shift + log(sum of the weights); output = (weight "
            "* out + weight * out) / sum. Where shift is -inf return empty's pair.",
        ),
    ),
    Task(
        id="softmax.pair",
        kind="P",
        trials=PAIR_TRIALS,
        gates=gates(PAIR_TRIALS, pair_traffic),
        hints=(
            "A lane's 8 numbers become a pair, the lanes' pairs become the warp's by five exchanges, the four warps' "
            "pairs go through shared memory. Which thread brings in the sink?",
            "Set what lies behind the length to -inf first: np.where(i[:, None] + np.arange(8) < length[:, None], x, "
            "-np.inf). A maximum that is subtracted must not be -inf: np.maximum(m, -1e30).",
            "One thread combines its pair with (sink, 2 ** (sink - finite(sink))), the others with (-inf, "
            "0). Behind bar_sync each lane loads slot lane of 4, fill=-np.inf or 0, and the butterfly runs again.",
        ),
    ),
    Task(
        id="softmax.sink",
        kind="K",
        examples=sink_examples,
        gates=(
            compiles(),
            shape(sink_shape),
            values(SINK_CASES, SINK_TAIL),
            speed(SINK_CASES, SINK_LARGE, bytes_moved=SINK_BYTES, share=SINK_SHARE),
        ),
        hints=(
            "It is the lesson's kernel of two reads without its second loop. The loop ends at the row's length, and "
            "what is left behind the last whole vector is less than a vector: whose are those elements?",
            "length // 8 whole vectors stream by. A thread below length % 8 starts with the pair of element length - 1 "
            "- thread, the last thread of the block with that of the sink, all others with the identity.",
            "softmax_value(Float32(...)) is the pair of one number, also of -inf. Then for each step value = "
            "add_softmax(value, x), block_reduce, and thread 0 stores row_max + log(row_sum).",
        ),
    ),
)
