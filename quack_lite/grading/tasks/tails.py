"""Exercise 07: how wide an access may be and where a row is cut, rows scaled on the Model, and RoPE for any head."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from quack_lite import simt
from quack_lite.grading.feedback import GradeFailed
from quack_lite.grading.given import whole
from quack_lite.grading.kernel_gates import Cases, compiles, shape, values
from quack_lite.grading.program_gates import Trial, Trials, at_most, gates
from quack_lite.grading.speed_gate import speed
from quack_lite.grading.task import Gate, Submission, Task

if TYPE_CHECKING:
    import torch

    from quack_lite.facts import Facts

LOAD_BYTES = 16
VECTOR = 8  # bfloat16 in 128 bits
ROWS = 9  # of the program's matrix: with odd n, each place of a vector is some row's start
SCALE_THREADS = 128  # of a block
ROPE_SHARE = 0.8  # of the copy ceiling
ROPE_ROUNDINGS = 8
ROPE_TAIL = "an access may be as wide as half a head, the strides and both addresses allow, and no wider"


class Rows(NamedTuple):
    """n, stride: elements.  address: of the first element, in bytes.  itemsize: bytes of an element."""

    n: int
    stride: int
    address: int
    itemsize: int


MATRICES = (
    Rows(4096, 4096, 512, 2),
    Rows(1001, 1001, 512, 2),
    Rows(1000, 1004, 512, 2),
    Rows(1000, 1000, 514, 2),
    Rows(1004, 1008, 528, 2),
    Rows(96, 100, 520, 4),
    Rows(96, 96, 516, 4),
    Rows(513, 528, 1024, 1),
    Rows(4096, 4096, 1024, 1),
    Rows(4096, 4098, 1024, 8),
)
CUTS = (
    (1001, 512, 2),
    (1001, 514, 2),
    (1001, 526, 2),
    (3, 516, 2),
    (7, 512, 4),
    (8, 524, 4),
    (40, 1030, 1),
    (2, 520, 8),
)


def width(rows: Rows) -> int:
    """Elements of the widest access, a power of two of at most 16 bytes, that fits into each row from its start on."""
    return math.gcd(LOAD_BYTES // rows.itemsize, rows.n, rows.stride, rows.address // rows.itemsize)


def cut(n: int, address: int, itemsize: int) -> tuple[int, int, int]:
    """(elements before the first 16-byte boundary, whole vectors, elements behind the last of them)."""
    vector = LOAD_BYTES // itemsize
    head = min(-(address // itemsize) % vector, n)
    return head, (n - head) // vector, (n - head) % vector


def judge_numbers(submission: Submission) -> str:
    """Tries (width, cut) on numbers other than those of the notebook."""
    try:
        of_width, of_cut = submission.answer
    except (TypeError, ValueError):
        raise GradeFailed("hand over the two functions: (width, cut)") from None
    for rows in MATRICES:
        judge_width(of_width(*rows), rows)
    for case in CUTS:
        judge_cut(of_cut(*case), *case)
    return f"right for {len(MATRICES)} matrices and {len(CUTS)} rows"


def judge_width(given: Any, rows: Rows) -> None:
    """Compares width, and names what was left out where the number gives it away."""
    wanted = width(rows)
    if whole("width", given) == wanted:
        return
    slips = {
        wanted * rows.itemsize: "that is in bytes: count elements",
        width(rows._replace(address=0)): "the first row starts at that address, and an access starts at a multiple of "
        "its size",
        width(rows._replace(stride=0)): "the second row starts `stride` elements behind the first",
        width(rows._replace(n=0)): "the last access of a row would reach over its end",
        math.gcd(VECTOR, rows.n, rows.stride, rows.address // rows.itemsize): "an access has at most 16 bytes, "
        f"{LOAD_BYTES // rows.itemsize} elements of {rows.itemsize} here",
        math.gcd(LOAD_BYTES // rows.itemsize, rows.n, rows.stride, rows.address): "the address is in bytes: divide it "
        "by itemsize",
    }
    why = slips.get(given, "it is the largest power of two, of at most 16 bytes, that divides n, stride and address")
    raise GradeFailed(f"width{tuple(rows)} gave {given!r}: {why}")


def judge_cut(given: Any, n: int, address: int, itemsize: int) -> None:
    """Compares cut, part by part."""
    wanted = cut(n, address, itemsize)
    if not isinstance(given, tuple) or len(given) != 3:
        raise GradeFailed(f"cut gave {given!r}: it returns three numbers, (head, vectors, tail)")
    given, vector = tuple(whole("cut", part) for part in given), LOAD_BYTES // itemsize
    if given == wanted:
        return
    call = f"cut{(n, address, itemsize)} gave {given}"
    if given[0] > n:
        raise GradeFailed(f"{call}: the row ends before its first boundary, so all of its {n} elements are head")
    if given[0] == vector and wanted[0] == 0:
        raise GradeFailed(f"{call}: the row starts at a boundary, so nothing lies before it")
    if given[0] != wanted[0] and given[0] == wanted[0] * itemsize:
        raise GradeFailed(f"{call}: that head is in bytes: count elements of {itemsize}")
    if given[0] != wanted[0] and given[0] == vector - wanted[0]:
        raise GradeFailed(
            f"{call}: the start lies so far behind a boundary, and the first multiple of 16 bytes comes {wanted[0]} "
            "elements behind the start"
        )
    if given[0] + given[1] * vector + given[2] != n:
        raise GradeFailed(f"{call}: head, {vector} elements a vector, and tail do not add up to {n}")
    if given[0] != wanted[0]:
        raise GradeFailed(f"{call}: the first multiple of 16 bytes comes {wanted[0]} elements behind the start")
    raise GradeFailed(f"{call}: {wanted[1]} whole vectors fit behind the head, and what is left is the tail")


def scale_inputs(n: int, random: np.random.Generator) -> tuple[simt.Tensor, simt.Tensor]:
    """A matrix of bfloat16, and a float32 for each of its rows."""
    x = simt.tensor(random.standard_normal((ROWS, n)), "bfloat16")
    return x, simt.tensor(random.uniform(0.5, 2, ROWS), "float32")


def scale_reference(x: np.ndarray, s: np.ndarray) -> np.ndarray:
    """The specification."""
    return simt.rounded(x * s[:, None], "bfloat16")


def scale_traffic(trial: Trial) -> str:
    """Whole vectors by 128-bit accesses, the edges of a row in two requests at most."""
    cuts = [cut(trial.size, 2 * row * trial.size, 2) for row in range(ROWS)]
    requests = sum(math.ceil(vectors / 32) + 2 * bool(head + tail) for head, vectors, tail in cuts)
    wide = "between a row's first and its last boundary take 8 elements in one access, and its edges in two requests"
    at_most(trial, "ld.global", "requests", requests + ROWS * SCALE_THREADS // 32, wide)  # each warp may load its scale
    at_most(trial, "st.global", "requests", requests, wide)
    return f"{trial.run.total('st.global').requests} stores of a warp, {requests} are allowed"


class Heads(NamedTuple):
    """d: elements of a head.  start: the first element, counted from a 16-byte boundary.  apart: tokens lie so many
    times as far apart as they are long.
    """

    d: int
    start: int = 0
    apart: int = 3
    tokens: int = 5
    heads: int = 3

    def __str__(self) -> str:
        return f"{self.d}" + (f" from element {self.start}" if self.start else "")


ROPE_SIZES = (
    Heads(128),
    Heads(64, heads=70),
    Heads(2),
    Heads(66),
    Heads(68),
    Heads(72),
    Heads(80, 1),
    Heads(128, 4),
    Heads(96, 7, 1),
)
ROPE_LARGE = Heads(128, 0, 1, 2**15, 32)
ROPE_BYTES = ROPE_LARGE.tokens * ROPE_LARGE.d * (2 * 2 * ROPE_LARGE.heads + 4)


def rope_inputs(size: Heads, generator: torch.Generator) -> tuple[torch.Tensor, ...]:
    """x bfloat16, a view of a packed buffer; cos and sin of random angles, float32."""
    import torch

    device, tokens = generator.device, size.tokens
    stride = size.apart * size.heads * size.d
    room = torch.randn(size.start + tokens * stride, generator=generator, device=device, dtype=torch.bfloat16)
    x = room.as_strided((tokens, size.heads, size.d), (stride, size.d, 1), size.start)
    angles = 6.28 * torch.rand(tokens, size.d // 2, generator=generator, device=device)
    return x, angles.cos(), angles.sin()


def rope_reference(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """The specification, in float64."""
    return turned(x, cos, sin, 1).to(x.dtype)


def rope_allowed(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """One unit in the last place of bfloat16, and a few roundings of what is added, without its signs."""
    from quack_lite.reference.compare import ulp

    sizes = turned(x.abs(), cos.abs(), sin.abs(), -1)
    return ulp(turned(x, cos, sin, 1), x.dtype) + ROPE_ROUNDINGS * 2.0**-24 * sizes


def turned(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, sign: int) -> torch.Tensor:
    """Both halves in float64; sign -1 makes the difference a sum."""
    import torch

    one, two = x.double().chunk(2, -1)
    cos, sin = cos.double()[:, None], sin.double()[:, None]
    return torch.cat((one * cos - sign * two * sin, two * cos + one * sin), -1)


def rope_shape(facts: Facts) -> str:
    """128-bit accesses for most heads, single elements for those that allow no more, and no spill."""
    for name, found in (("load", facts.ld_global), ("store", facts.st_global)):
        if max(found, default=0) != 128:
            raise GradeFailed(
                f"the widest {name} has {max(found, default=0)} bits: where half a head, strides and addresses allow "
                "it, take 8 elements in one 128-bit access"
            )
    if 16 not in facts.st_global:
        raise GradeFailed(
            f"the narrowest store has {min(facts.st_global)} bits: in a head of 66 elements the second half starts at "
            "element 33, so there must be a way that takes single elements"
        )
    if facts.spill_bytes:
        raise GradeFailed(
            f"{facts.spill_bytes} bytes of registers are spilled to memory: a thread takes more values than it can hold"
        )
    return f"accesses of {', '.join(map(str, sorted(facts.st_global, reverse=True)))} bits, no spill"


def rope_examples() -> tuple[torch.Tensor, ...]:
    """One tensor an argument: x bfloat16, cos and sin float32, y bfloat16."""
    import torch

    x, table = torch.empty(2, 2, 8, dtype=torch.bfloat16, device="meta"), torch.empty(2, 4, device="meta")
    return x, table, table, x


SCALE_TRIALS = Trials(
    sizes=(8, 13, 3, 64, 257, 1001),
    inputs=scale_inputs,
    reference=scale_reference,
    dtype="bfloat16",
    grid=lambda n: ROWS,
    block=SCALE_THREADS,
    between=(1, 1000),
)
ROPE_CASES = Cases(
    sizes=ROPE_SIZES,
    inputs=rope_inputs,
    reference=rope_reference,
    allowed=rope_allowed,
    letter="head size",
    advice="look at which two elements a thread turns, and at the sign of each sine",
)

TASKS = (
    Task(
        id="tails.width",
        kind="N",
        gates=(Gate("numbers", "model", judge_numbers),),
        hints=(
            "An access of w elements is allowed where every row starts at a multiple of it and every row is so many of "
            "them long. Which three numbers must w divide, if all are counted in elements?",
            "math.gcd takes as many numbers as you like. With 16 // itemsize among them, it gives a power of two of at "
            "most 16 bytes. For cut: -a % b is how far it is from a to the next multiple of b.",
            "width: math.gcd(16 // itemsize, n, stride, address // itemsize). cut: head = min(-(address // itemsize) % "
            "vector, n); what is behind it, divided by vector, gives the other two.",
        ),
    ),
    Task(
        id="tails.scale",
        kind="P",
        trials=SCALE_TRIALS,
        gates=gates(SCALE_TRIALS, scale_traffic),
        hints=(
            "x and y begin at a 16-byte boundary. At which element of the whole matrix does row b.ctaid begin, and how "
            "many elements is it from there to the next multiple of 8?",
            "Three plain arrays are enough: head, the end of the whole vectors, and each thread's edge element: thread "
            "t takes element t of the head, or, from t = head on, element t + body of the row.",
            "start = b.ctaid * n; head = np.minimum(-start % 8, n); body = (n - head) // 8 * 8; edge = np.where(b.tid "
            "< head, b.tid, b.tid + body). Vectors: head + 8 * b.tid, where below head + body. Edges: where edge < n.",
        ),
    ),
    Task(
        id="tails.rope",
        kind="K",
        examples=rope_examples,
        align=2,
        gates=(
            compiles(),
            shape(rope_shape),
            values(ROPE_CASES, ROPE_TAIL),
            speed(ROPE_CASES, ROPE_LARGE, bytes_moved=ROPE_BYTES, share=ROPE_SHARE),
        ),
        hints=(
            "Start from the lesson's width_copy: the host function finds the widest access that fits everywhere, and "
            "launches the kernel that was compiled for it. What has to be a multiple of it here?",
            "Half a head, both strides of mX and of mY, and both addresses in elements, joined by |. In the kernel a "
            "block has a token; its threads go over heads and vectors: item // vectors is the head.",
            "A thread holds part(mX[token, head, None], first, width) and the same at first + half, and part(...) of "
            "the two tables at first. y1 = x1 * c - x2 * s goes to first, y2 = x2 * c + x1 * s to first + half.",
        ),
    ),
)
