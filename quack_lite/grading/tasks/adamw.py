"""The project of part A: what fusing saves, and an AdamW that moves 28 bytes a parameter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from quack_lite.grading.feedback import GradeFailed
from quack_lite.grading.kernel_gates import Cases, compiles, shape, values
from quack_lite.grading.speed_gate import speed
from quack_lite.grading.task import Gate, Submission, Task

if TYPE_CHECKING:
    import torch

    from quack_lite.facts import Facts

STEP_SHARE = 0.85  # of the copy ceiling
STEP_ELEMENTS = 2**26 - 1  # 256 MB of float32, four tensors of them
STEP_BYTES = 28  # of a parameter: p, g, m, v read, p, m, v written
STEP_ROUNDINGS = 8
STEP_TAIL = "look at the last vector, which may hold fewer elements than the others, and at the number of blocks"
UPDATED = (("p", 0), ("m", 2), ("v", 3))

# (operations, what has to be in memory afterwards): other programs than the notebook's.
PROGRAMS = (
    ([(("x",), "y")], ("y",)),
    ([(("x",), "y"), (("y",), "z")], ("y", "z")),
    ([(("x",), "t"), (("x",), "y")], ("y",)),
    ([(("x", "w"), "y")], ("y", "w")),
    ([(("x", "y"), "x"), (("x", "y"), "x")], ("x",)),
    ([(("x", "x"), "t"), (("t", "y"), "t"), (("t", "x"), "z")], ("z",)),
    ([(("p",), "p"), (("g", "m"), "m"), (("p", "m"), "p")], ("p", "m")),
    ([(("a",), "b"), (("b",), "c"), (("c", "a"), "d"), (("d",), "a")], ("a", "c")),
    ([(("x",), "t"), (("t", "w"), "y")], ("y", "w")),
    ([((), "z"), (("z", "x"), "z")], ("z",)),
)


def eager_count(operations: list) -> int:
    """Tensors moved if each operation reads its inputs and writes its result."""
    return sum(len(set(inputs)) + 1 for inputs, _ in operations)


def fused_count(operations: list, kept: tuple) -> int:
    """Tensors moved if one kernel reads once what it does not make, and writes what is kept of what it makes."""
    read, made = set(), set()
    for inputs, output in operations:
        read |= set(inputs) - made
        made.add(output)
    return len(read) + len(made & set(kept))


def judge_numbers(submission: Submission) -> str:
    """Tries (eager, fused) on programs other than that of the notebook."""
    try:
        of_eager, of_fused = submission.answer
    except (TypeError, ValueError):
        raise GradeFailed("hand over the two functions: (eager, fused)") from None
    for operations, _ in PROGRAMS:
        judge_eager(of_eager(list(operations)), operations)
    for operations, kept in PROGRAMS:
        judge_fused(of_fused(list(operations), kept), operations, kept)
    return f"right for {len(PROGRAMS)} programs"


def judge_eager(given: Any, operations: list) -> None:
    """Compares eager, and names the slip where the number gives it away."""
    wanted = eager_count(operations)
    if given == wanted:
        return
    slips = {
        sum(len(inputs) + 1 for inputs, _ in operations): "a tensor that one operation takes twice is read once by it",
        sum(len(set(inputs)) for inputs, _ in operations): "each operation also writes its result",
        sum(len({*inputs, output}) for inputs, output in operations): "a tensor that is read and then overwritten is "
        "moved twice",
        4 * wanted: "that is in bytes of float32: count tensors",
    }
    raise GradeFailed(
        f"eager({operations}) gave {given!r}: {slips.get(given, 'count what each operation of this list moves alone')}"
    )


def judge_fused(given: Any, operations: list, kept: tuple) -> None:
    """Compares fused, and names the slip where the number gives it away."""
    wanted = fused_count(operations, kept)
    if given == wanted:
        return
    inputs = {name for names, _ in operations for name in names}
    made = {output for _, output in operations}
    written = made & set(kept)
    slips = (
        (len(inputs) + len(written), "what the kernel has made itself is in its registers, and is not read"),
        (wanted - len(written) + len(made), "what is not kept need not be written"),
        (wanted - len(written) + len(kept), "what is kept and was not changed need not be written"),
        (len((inputs - made) | written), "a tensor that is read and then overwritten is moved twice"),
        (wanted - len(written), "what is kept has to be written"),
    )
    general = "read once what comes from memory, write once what has to be there afterwards"
    why = next((sentence for value, sentence in slips if value == given), general)
    raise GradeFailed(f"fused({operations}, {kept}) gave {given!r}: {why}")


def step_inputs(n: int, generator: torch.Generator) -> tuple:
    """p, g, m, v float32, v of many magnitudes and partly zero; then the eight numbers of a step."""
    import torch

    def normal():
        return torch.randn(n, generator=generator, device=generator.device)

    p, g, m, v = normal(), normal(), normal(), normal()
    v.square_().mul_(torch.exp2(normal() * 10)).mul_(normal() > -1)
    lr, decay, beta1, beta2, eps, step = (
        *torch.rand(2, generator=generator, device=generator.device).tolist(),
        0.9,
        0.99,
        1e-6,
        3,
    )
    numbers = (1 - lr * decay / 2, beta1, 1 - beta1, beta2, 1 - beta2)
    return p, g, m, v, *numbers, lr / (1 - beta1**step), (1 - beta2**step) ** 0.5, eps


def step_reference(p, g, m, v, *numbers) -> tuple[torch.Tensor, ...]:
    """The specification in float64, from the numbers as they arrive, in float32."""
    p, m, v = _step64(p, g, m, v, numbers, 1)
    return p.float(), m.float(), v.float()


def step_allowed(p, g, m, v, *numbers) -> tuple[torch.Tensor, ...]:
    """One unit in the last place of each result, and a few roundings of the sum of what is added, without its signs."""
    import torch

    from quack_lite.reference.compare import ulp

    exact = _step64(p, g, m, v, numbers, 1)
    sizes = _step64(p.abs(), g.abs(), m.abs(), v, numbers, -1)
    return tuple(
        ulp(right, torch.float32) + STEP_ROUNDINGS * 2.0**-24 * size for right, size in zip(exact, sizes, strict=True)
    )


def _step64(p, g, m, v, numbers, sign: int) -> tuple[torch.Tensor, ...]:
    import torch

    keep, beta1, rest1, beta2, rest2, rate, root, eps = torch.tensor(numbers, dtype=torch.float32).double().tolist()
    p, g, m, v = (tensor.double() for tensor in (p, g, m, v))
    m = beta1 * m + rest1 * g
    v = beta2 * v + rest2 * g * g
    return keep * p - sign * rate * m / (v.sqrt() / root + eps), m, v


def step_shape(facts: Facts) -> str:
    """128-bit loads and stores, a store of each of three tensors, and no spill; single elements for the tail."""
    for name, found in (("load", facts.ld_global), ("store", facts.st_global)):
        if max(found, default=0) != 128:
            raise GradeFailed(
                f"the widest {name} has {max(found, default=0)} bits: take 4 neighbouring float32 in one access"
            )
        between = sorted(set(found) - {32, 128})
        if between:
            raise GradeFailed(
                f"there are {between[0]}-bit {name}s beside the 128-bit ones: the main path takes only 128"
            )
    if facts.st_global[128] % 3:
        raise GradeFailed(f"there are {facts.st_global[128]} stores of 128 bits: p, m and v are stored, each of them")
    if facts.spill_bytes:
        raise GradeFailed(
            f"{facts.spill_bytes} bytes of registers are spilled to memory: a thread takes more values than it can hold"
        )
    return "128-bit loads and stores, no spill"


def step_examples() -> tuple:
    """p, g, m, v float32, and eight numbers."""
    import torch

    tensor = torch.empty(16, device="meta")
    return (tensor,) * 4 + (0.0,) * 8


STEP_CASES = Cases(
    sizes=(1, 3, 1000, 4097, 2**20, 1_000_003),
    inputs=step_inputs,
    reference=step_reference,
    between=(1, 2**20),
    updated=UPDATED,
    allowed=step_allowed,
    advice="go through the three lines of the specification, with m and v as they are after the step",
)

TASKS = (
    Task(
        id="adamw.bytes",
        kind="N",
        gates=(Gate("numbers", "model", judge_numbers),),
        hints=(
            "eager: what does one operation move that knows nothing of the others? fused: what must come from memory "
            "because nobody in the kernel has made it, and what must be there afterwards?",
            "Two sets, filled while you go through the operations in order: names that were read and not made before, "
            "and names that were made. A set holds a name once, however often it is used.",
            "eager: sum of len(set(inputs)) + 1. fused: read |= set(inputs) - made, then made.add(output), for each "
            "operation; at the end len(read) + len(made & set(kept)).",
        ),
    ),
    Task(
        id="adamw.step",
        kind="K",
        examples=step_examples,
        gates=(
            compiles(),
            shape(step_shape),
            values(STEP_CASES, STEP_TAIL),
            speed(STEP_CASES, STEP_ELEMENTS, bytes_moved=STEP_BYTES * STEP_ELEMENTS, share=STEP_SHARE),
        ),
        hints=(
            "The three lines of the specification work on whole vectors as they work on single numbers: write them "
            "once, as a function of p, g, m, v and the numbers that returns p, m, v.",
            "A thread takes group i of 4 of all four tensors: load them all, call the function, store three. The first "
            "n % 4 threads take one element each from the end, with the same function.",
            "gP, gG, gM, gV = (cute.zipped_divide(mT, (4,))[None, i] for mT in (mP, mG, mM, mV)); then p, m, v = "
            "update(gP.load(), ...) and gP.store(p). cute.math.sqrt takes vectors and numbers.",
        ),
    ),
)
