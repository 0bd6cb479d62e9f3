"""Exercise 13: what an element may cost, two labels a row on the Model, and a loss with z-loss and entropy."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from quack_lite import simt
from quack_lite.grading.feedback import GradeFailed
from quack_lite.grading.kernel_gates import Cases, compiles, shape, values
from quack_lite.grading.program_gates import Trial, Trials, gates, requests_of
from quack_lite.grading.speed_gate import speed
from quack_lite.grading.task import Gate, Submission, Task

if TYPE_CHECKING:
    import torch

    from quack_lite.facts import Facts

TOLERANCE = 0.001
MIXED_THREADS = 64  # of a block, a row each
CLASSES = 96  # of the program's matrix
IGNORE_INDEX = -100
ZLOSS_SHARE = 0.6  # of the copy ceiling
ZLOSS_ROUNDINGS = 8
ZLOSS_TAIL = "a row has two numbers to store"


class Machine(NamedTuple):
    """read: GB/s.  sms.  clock: GHz."""

    read: float
    sms: int
    clock: float


MACHINES = (Machine(4400.0, 132, 1.9), Machine(1800.0, 108, 1.4), Machine(900.0, 128, 2.5), Machine(7400.0, 148, 1.8))
ITEMSIZES = (1, 2, 4)
# What an element needs: (operations an element, such operations an SM finishes in a clock)
NEEDS = (
    ((1, 16),),
    ((2, 16),),
    ((2, 16), (9, 128)),
    ((1, 16), (25, 128)),
    ((1, 128),),
    ((0.5, 16), (4, 64), (12, 128)),
)


def affordable(machine: Machine, itemsize: int, per_clock: float) -> float:
    """Operations of one kind that there is time for while memory brings an element."""
    return machine.sms * machine.clock * per_clock / (machine.read / itemsize)


def reached(machine: Machine, itemsize: int, needs: tuple) -> float:
    """GB/s: what memory brings, or what the slowest unit works off."""
    units = [machine.sms * machine.clock * per_clock / count * itemsize for count, per_clock in needs]
    return min(machine.read, *units)


def judge_budget(submission: Submission) -> str:
    """Tries (affordable, reached) on machines other than the notebook's."""
    try:
        of_affordable, of_reached = submission.answer
    except (TypeError, ValueError):
        raise GradeFailed("hand over the two functions: (affordable, reached)") from None
    for machine in MACHINES:
        for itemsize in ITEMSIZES:
            for per_clock in (16, 128):
                judge_affordable(of_affordable(*machine, itemsize, per_clock), machine, itemsize, per_clock)
    for machine in MACHINES:
        for itemsize in ITEMSIZES:
            for needs in NEEDS:
                judge_reached(of_reached(*machine, itemsize, list(needs)), machine, itemsize, needs)
    return f"right on {len(MACHINES)} machines"


def judge_affordable(given: Any, machine: Machine, itemsize: int, per_clock: int) -> None:
    """Compares affordable, and names the slip where the factor gives it away."""
    wanted = affordable(machine, itemsize, per_clock)
    rounded = (wanted // 1, *(round(wanted, digits) for digits in range(3)))
    if isinstance(given, int | float) and given in rounded and not _close(given, wanted):
        raise GradeFailed(f"affordable gave {given:g}, which is rounded: hand it over as it comes")
    ratio = _number("affordable", given) / wanted
    if _close(ratio, 1):
        return
    slips = {
        1 / machine.sms: "that is what one SM finishes while the whole GPU's memory brings an element: all SMs work",
        1 / itemsize: "memory brings read / itemsize elements in a ns, and you took bytes for elements",
        1 / itemsize**2: "an element has itemsize bytes, so memory brings fewer elements than bytes, not more",
        1 / wanted**2: "that is the other way round: operations an element, not elements an operation",
        1 / per_clock: "an SM finishes per_clock of these operations in a clock, not one",
        1e9: "that is 10^9 too much: GB a second and GHz both count 10^9, and the two cancel",
        1e-9: "that is 10^9 too little: GB a second and GHz both count 10^9, and the two cancel",
    }
    for factor, sentence in slips.items():
        if _close(ratio, factor):
            raise GradeFailed(f"affordable: {sentence}")
    raise GradeFailed(
        f"affordable{(*machine, itemsize, per_clock)} gave {given:g}: it is operations a second of all SMs over "
        "elements a second from memory"
    )


def judge_reached(given: Any, machine: Machine, itemsize: int, needs: tuple) -> None:
    """Compares reached."""
    wanted = reached(machine, itemsize, needs)
    given = _number("reached", given)
    if _close(given / wanted, 1):
        return
    units = [reached(machine._replace(read=math.inf), itemsize, (need,)) for need in needs]
    call = f"reached{(*machine, itemsize, list(needs))} gave {given:.4g}"
    if given > machine.read * (1 + TOLERANCE):
        raise GradeFailed(f"{call}: more than memory brings, which is {machine.read:g} GB/s")
    one_after_another = 1 / sum(1 / unit for unit in units)
    if any(_close(given, slip) for slip in (1 / (1 / machine.read + 1 / one_after_another), one_after_another)):
        raise GradeFailed(f"{call}: memory and the units work at the same time: the slowest decides, not the sum")
    if itemsize > 1 and any(_close(given, unit / itemsize) for unit in units):
        raise GradeFailed(f"{call}: that is elements a ns: each has itemsize bytes, and GB/s are bytes a ns")
    if _close(given, machine.read):
        raise GradeFailed(f"{call}: one of the units needs longer for an element than memory does")
    if any(_close(given, unit) for unit in units):
        raise GradeFailed(f"{call}: another unit, or memory, is slower than the one you took")
    raise GradeFailed(f"{call}: the smallest of read and, for each need, bytes a ns that its unit works off")


def _number(name: str, given: Any) -> float:
    if isinstance(given, bool) or not hasattr(given, "__float__"):
        raise GradeFailed(f"{name} returned {given!r}: it has to return a number")
    number = float(given)
    if not math.isfinite(number) or number <= 0:
        raise GradeFailed(f"{name} returned {number:g}: it has to return a positive finite number")
    return number


def _close(ratio: float, factor: float) -> bool:
    return abs(ratio - factor) <= TOLERANCE * factor


def mixed_inputs(n: int, random: np.random.Generator) -> tuple[simt.Tensor, ...]:
    """n rows of CLASSES numbers of few bits, two labels and a share for each; lies and ignored rows among them."""
    x = random.integers(-64, 65, (n, CLASSES)) / 8
    labels = random.integers(0, CLASSES, (2, n))
    kinds = random.random((2, n))
    lies = random.choice([-1, CLASSES, CLASSES + 7, -CLASSES, 2**31 - 1], (2, n))
    labels = np.where(kinds < 0.25, lies, labels)
    labels[0, random.random(n) < 0.2] = IGNORE_INDEX
    labels[:, -1] = 5, 7
    if n > 6:
        first = [0, CLASSES - 1, IGNORE_INDEX, CLASSES, -1, 4]
        labels[:, :6] = first, [CLASSES - 1, 3, CLASSES, 1, 2, IGNORE_INDEX]
    share = random.integers(0, 5, n) / 4
    return simt.tensor(x, "bfloat16"), *(simt.tensor(one, "int32") for one in labels), simt.tensor(share, "float32")


def mixed_reference(x: np.ndarray, one: np.ndarray, other: np.ndarray, share: np.ndarray) -> np.ndarray:
    """The specification."""
    y = np.full(len(x), np.nan, np.float32)
    for row, (a, b, w) in enumerate(zip(one, other, share, strict=True)):
        if a == IGNORE_INDEX:
            y[row] = 0
        elif 0 <= a < CLASSES and 0 <= b < CLASSES:
            y[row] = w * x[row, a] + (1 - w) * x[row, b]
    return y


def mixed_traffic(trial: Trial) -> str:
    """No element is loaded for a row that is ignored or has a lie, two for each other row."""
    _, one, other, _ = (tensor.values for tensor in trial.tensors[:4])
    good = (one >= 0) & (one < CLASSES) & (other >= 0) & (other < CLASSES)
    loads = requests_of(trial, "ld.global", 0)
    asked, needed = sum(load.bytes_asked for load in loads), 4 * int(good.sum())
    if asked > needed:
        worst = max(loads, key=lambda load: load.bytes_asked)
        raise GradeFailed(
            f"{trial.name}: {asked // 2} elements of x are loaded, and {needed // 2} are needed: at "
            f"`{worst.line.text}` leave out, with where=, each row that is ignored or has a label that is no class",
            request=worst,
        )
    return "two elements for each row that has two classes, none for the others"


class Logits(NamedTuple):
    """m rows of n classes; offset: what the logits lie about."""

    n: int
    m: int = 9
    offset: float = 0.0

    def __str__(self) -> str:
        return f"{self.n}" + (f" about {self.offset:g}" if self.offset else "")


ZLOSS_SIZES = (
    Logits(8),
    Logits(1000),
    Logits(8, 70, 500.0),
    Logits(50264, 3),
    Logits(4096, 9, -1000.0),
    Logits(2056, 300),
)
ZLOSS_LARGE = Logits(128256, 2048)
ZLOSS_BYTES = 2 * ZLOSS_LARGE.n * ZLOSS_LARGE.m
Z = 1e-4


def zloss_inputs(size: Logits, generator: torch.Generator) -> tuple:
    """x bfloat16 with -inf here and there, labels int64 with lies and ignored ones, and a z that sizes do not share."""
    import torch

    how = {"generator": generator, "device": generator.device}
    x = torch.randn(size.m, size.n, dtype=torch.bfloat16, **how) * 3
    x += size.offset
    target = torch.randint(size.n, (size.m,), **how)
    if size != ZLOSS_LARGE:
        x[torch.rand(x.shape, **how) < 0.2] = -math.inf
        x[: size.m // 2, : size.n // 2] = -math.inf
        x[:, -1] = size.offset
        x[torch.arange(size.m, device=generator.device), target] = size.offset
        lies = torch.tensor([-1, size.n, -100, 2**40, -(2**63)], device=generator.device)
        target[: min(5, size.m - 1)] = lies[: min(5, size.m - 1)]
    return x, target, Z * size.m


def zloss_terms(x: torch.Tensor, target: torch.Tensor, z: float) -> tuple[torch.Tensor, torch.Tensor]:
    """(result, scale of its roundings), both (m, 2) in float64, some rows at a time."""
    import torch

    parts = [_zloss_terms(x[k : k + 256].double(), target[k : k + 256], z) for k in range(0, len(x), 256)]
    return tuple(torch.cat(part) for part in zip(*parts, strict=True))


def _zloss_terms(x, target, z):
    import torch

    n = x.shape[1]
    lse = x.logsumexp(1)
    p, far = (x - lse[:, None]).exp(), (lse[:, None] - x).nan_to_num(posinf=0.0)
    entropy = (p * far).sum(1)
    inside = (target >= 0) & (target < n)
    picked = x.gather(1, target.where(inside, 0)[:, None])[:, 0]
    loss = (lse - picked + z * lse.square()).where(inside, math.nan).where(target != IGNORE_INDEX, 0.0)
    greatest = x.nan_to_num(neginf=0.0).abs().amax(1)
    sizes = 1 + greatest + picked.nan_to_num(neginf=0.0).abs() + 3 * z * lse.square()
    return torch.stack((loss, entropy), 1), torch.stack((sizes, 4 + math.log(n) + (p * far * (1 + far)).sum(1)), 1)


def zloss_reference(x: torch.Tensor, target: torch.Tensor, z: float) -> torch.Tensor:
    """The specification, in float64."""
    return zloss_terms(x, target, z)[0].float()


def zloss_allowed(x: torch.Tensor, target: torch.Tensor, z: float) -> torch.Tensor:
    """A few roundings: of the greatest logit for the loss; the entropy has no part in what the logits lie about."""
    return ZLOSS_ROUNDINGS * 2.0**-24 * zloss_terms(x, target, z)[1]


def zloss_shape(facts: Facts) -> str:
    """128-bit loads, an exchange between warps, no spill."""
    if max(facts.ld_global, default=0) != 128:
        raise GradeFailed(
            f"the widest load has {max(facts.ld_global, default=0)} bits: rows start at a multiple of 16 bytes and "
            "have whole vectors, so take 8 elements in one 128-bit load"
        )
    if not facts.barriers:
        raise GradeFailed("there is no barrier: the warps of a block have to meet before their values become one")
    if facts.spill_bytes:
        raise GradeFailed(
            f"{facts.spill_bytes} bytes of registers are spilled to memory: a row streams by, and needs no room"
        )
    return "128-bit loads, no spill"


def zloss_examples() -> tuple:
    """x bfloat16, labels int64, z, and the result float32 (m, 2)."""
    import torch

    x = torch.empty(2, 8, dtype=torch.bfloat16, device="meta")
    return x, torch.empty(2, dtype=torch.int64, device="meta"), Z, torch.empty(2, 2, device="meta")


MIXED_TRIALS = Trials(
    sizes=(1, 33, 64, 100, 500),
    inputs=mixed_inputs,
    reference=mixed_reference,
    dtype="float32",
    grid=lambda n: -(-n // MIXED_THREADS),
    block=MIXED_THREADS,
)
ZLOSS_CASES = Cases(
    sizes=ZLOSS_SIZES,
    inputs=zloss_inputs,
    reference=zloss_reference,
    allowed=zloss_allowed,
    advice="element 2 * row is the loss, the next the entropy: where only losses are wrong, look at labels and z, "
    "else at 0 * -inf and at what a new maximum changes",
)

TASKS = (
    Task(
        id="cross_entropy.budget",
        kind="N",
        gates=(Gate("numbers", "model", judge_budget),),
        hints=(
            "How many elements does memory bring in a ns? How many operations do all SMs finish in a ns, if each "
            "finishes per_clock of them in a clock?",
            "affordable is the second over the first. For reached: a unit that finishes so many operations in a ns, "
            "and needs count of them an element, works off so many elements, so many bytes, in a ns.",
            "affordable: sms * clock * per_clock / (read / itemsize). reached: min(read, ...) over sms * clock * "
            "per_clock / count * itemsize for each (count, per_clock).",
        ),
    ),
    Task(
        id="cross_entropy.mixed",
        kind="P",
        trials=MIXED_TRIALS,
        gates=gates(MIXED_TRIALS, mixed_traffic),
        hints=(
            "One thread a row. Load its two labels and its share first, then decide: what has to hold of a row so that "
            "an element of it may be loaded?",
            "A mask is an array: (0 <= a) & (a < CLASSES), joined with & and with row < m. The loads of x have "
            "where=good; x[row, a] is b.ld_global(x, (row, a), where=good).",
            "y = np.where(a == -100, 0, np.where(good, w * xa + (1 - w) * xc, np.nan)). Row is b.ctaid * b.ntid + "
            "b.tid, and everything has where=row < m.",
        ),
    ),
    Task(
        id="cross_entropy.zloss",
        kind="K",
        examples=zloss_examples,
        gates=(
            compiles(),
            shape(zloss_shape),
            values(ZLOSS_CASES, ZLOSS_TAIL),
            speed(ZLOSS_CASES, ZLOSS_LARGE, bytes_moved=ZLOSS_BYTES, share=ZLOSS_SHARE),
        ),
        hints=(
            "With p = exp(x - lse), the entropy is lse - sum p x. Near 1000 that takes a large number from a "
            "large number. Sum powers times (x - max) instead: what is the entropy in terms of that sum?",
            "A value has three numbers: max, s = sum e^(x - max), d = sum e^(x - max) (x - max). When the maximum "
            "grows by g, every x - max shrinks by g: s becomes f s and d becomes f (d - g s), f = e^-g.",
            "entropy = log(s) - d / s. Against 0 * -inf: in value_of, cute.where puts -200 for x - finite(max) where x "
            "is -inf; in moved, h = cute.arch.fmax(value[0] - shift, LOWEST), the sums are s e^h and (d + h s) e^h.",
        ),
    ),
)
