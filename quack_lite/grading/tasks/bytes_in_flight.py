"""Exercise 05: how many bytes must be in flight, and a mean and a cast that keep them there."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from quack_lite import simt
from quack_lite.grading.feedback import GradeFailed
from quack_lite.grading.given import number
from quack_lite.grading.kernel_gates import Cases, compiles, shape, values
from quack_lite.grading.program_gates import Trial, Trials, at_most, gates, in_flight_at_least
from quack_lite.grading.speed_gate import speed
from quack_lite.grading.task import Gate, Submission, Task

if TYPE_CHECKING:
    import torch

    from quack_lite.facts import Facts

LOAD_BYTES = 16
MEAN_THREADS = 128  # of a block
GROUP, GROUPS = 8, 2  # bfloat16 in 128 bits; groups of a thread
TOLERANCE = 0.01
CAST_SHARE = 0.85  # of the copy ceiling
CAST_ELEMENTS = 2**27 - 3  # 512 MB of float32
CAST_TAIL = "look at the last vector, which may hold fewer elements than the others, and at the number of blocks"


class Machine(NamedTuple):
    """copy: GB/s, read and written.  latency: ns.  sms.  threads: resident on one SM."""

    copy: float
    latency: float
    sms: int
    threads: int


MACHINES = (
    Machine(4100.0, 780.0, 132, 2048),
    Machine(1350.0, 560.0, 108, 2048),
    Machine(930.0, 610.0, 128, 1536),
    Machine(270.0, 640.0, 58, 1536),
    Machine(7000.0, 900.0, 148, 256),
)
ELEMENT_BYTES = (1, 2, 4, 8)


def bytes_needed(machine: Machine) -> float:
    """Little's law for the reads of a copy, which are half of its bytes, on one SM."""
    return machine.copy / 2 * machine.latency / machine.sms


def loads_needed(machine: Machine) -> int:
    """128-bit loads a thread, at least one."""
    return math.ceil(bytes_needed(machine) / (LOAD_BYTES * machine.threads))


def judge_numbers(submission: Submission) -> str:
    """Tries (bytes_needed, loads_needed, naive_is_enough) on numbers other than those of the notebook."""
    try:
        of_bytes, of_loads, is_enough = submission.answer
    except (TypeError, ValueError):
        raise GradeFailed("hand over the three functions: (bytes_needed, loads_needed, naive_is_enough)") from None
    for machine in MACHINES:
        judge_bytes(of_bytes(machine.copy, machine.latency, machine.sms), machine)
    for machine in MACHINES:
        judge_loads(of_loads(*machine), machine)
    for machine in MACHINES:
        for size in ELEMENT_BYTES:
            judge_naive(is_enough(*machine, size), machine, size)
    return f"right on {len(MACHINES)} machines"


def judge_bytes(given: Any, machine: Machine) -> None:
    """Compares bytes_needed to within TOLERANCE, and names the slip where the factor gives it away."""
    given = number("bytes_needed", given)
    ratio = given / bytes_needed(machine)
    if _close(ratio, 1):
        return
    slips = {
        2: "that is twice too much: a copy's GB/s count reads and writes, and only the reads are waited for",
        machine.sms: "that is what the whole GPU needs: each SM has to hold its share only",
        2 * machine.sms: "that is for the whole GPU and for reads and writes: take the reads, on one SM",
        8: "that is in bits: GB/s are bytes already",
        1 / 8: "that is divided by 8: GB/s are bytes already",
        1e9: "that is 10^9 too much: a GB is 10^9 bytes, a ns is 10^-9 s, and the two cancel",
        1e-9: "that is 10^9 too little: a GB is 10^9 bytes, a ns is 10^-9 s, and the two cancel",
    }
    for factor, sentence in slips.items():
        if _close(ratio, factor):
            raise GradeFailed(f"bytes_needed: {sentence}")
    raise GradeFailed(
        f"bytes_needed(copy={machine.copy:g}, latency={machine.latency:g}, sms={machine.sms}) gave {given:g}: Little's "
        "law is bytes in flight = bytes a second times seconds, here for the reads of one SM"
    )


def judge_loads(given: Any, machine: Machine) -> None:
    """Compares loads_needed exactly."""
    given, wanted = number("loads_needed", given), loads_needed(machine)
    exact = bytes_needed(machine) / (LOAD_BYTES * machine.threads)
    if given == wanted:
        return
    if given != int(given):
        raise GradeFailed(f"loads_needed gave {given:g}: a thread makes a whole number of loads, so round up")
    slips = {
        math.ceil(2 * exact): "that counts the writes too: only the reads are waited for",
        math.ceil(exact * LOAD_BYTES): "that is bytes a thread: a load brings 16 of them",
        math.floor(exact): "that leaves too few bytes in flight: round up, not down",
        math.ceil(exact * machine.threads): "that is for all threads of the SM together: each of them makes its share",
        math.ceil(exact / 8): "that takes a load for 128 bytes: it is 128 bits",
    }
    why = slips.get(int(given), "a 128-bit load brings 16 bytes, and every resident thread makes its share of them")
    raise GradeFailed(f"loads_needed gave {given:g} for {machine.threads} threads: {why}")


def judge_naive(given: Any, machine: Machine, size: int) -> None:
    """Compares naive_is_enough."""
    held = machine.threads * size
    wanted = held >= bytes_needed(machine)
    if type(given).__name__ not in ("bool", "bool_"):
        raise GradeFailed(f"naive_is_enough gave {given!r}: it answers True or False")
    if bool(given) != wanted:
        raise GradeFailed(
            f"naive_is_enough{(*machine, size)} said {bool(given)}: compare what all resident threads of an SM hold, "
            "one element each, with what the SM needs"
        )


def _close(ratio: float, factor: float) -> bool:
    return abs(ratio - factor) <= TOLERANCE * factor


def mean_inputs(n: int, random: np.random.Generator) -> tuple[simt.Tensor, simt.Tensor]:
    """Two arrays of n bfloat16 whose means are bfloat16 too, so that nothing is rounded."""
    x, y = random.integers(-127, 128, size=(2, n)) / 64
    return simt.tensor(x, "bfloat16"), simt.tensor(y, "bfloat16")


def mean_reference(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The specification."""
    return (x + y) / 2


def mean_grid(n: int) -> int:
    """Blocks for n elements."""
    return math.ceil(n / (MEAN_THREADS * GROUPS * GROUP))


def mean_traffic(trial: Trial) -> str:
    """128-bit accesses and one more for the rest, no sector for nothing, all loads of a thread before its stores."""
    groups, rest = divmod(trial.size, GROUP)
    requests = math.ceil(groups / 32) + bool(rest)
    sectors = math.ceil(groups * LOAD_BYTES / 32) + bool(rest)
    wide = "take 8 neighbours in one access with vec=8, and the few elements of the rest in one more"
    near = "let neighbouring lanes take neighbouring groups, so that a request fills the sectors that it moves"
    for verb, arrays in (("ld.global", 2), ("st.global", 1)):
        at_most(trial, verb, "requests", arrays * requests, wide)
        at_most(trial, verb, "sectors", arrays * sectors, near)
    first = "load all groups of a thread, of both arrays, before you store the first"
    in_flight_at_least(trial, 2 * groups * LOAD_BYTES / mean_grid(trial.size), first)
    return f"{3 * requests} requests, no sector too many, all loads before the stores"


def cast_shape(facts: Facts) -> str:
    """128-bit loads, 64- or 128-bit stores, and no spill; scalar accesses are allowed beside them, for the tail."""
    loads, stores = max(facts.ld_global, default=0), max(facts.st_global, default=0)
    if loads != 128:
        raise GradeFailed(
            f"the widest load has {loads} bits: take neighbours in one 128-bit load, 4 float32 of it, at an address "
            "that the compiler knows to be a multiple of 16"
        )
    between = sorted(set(facts.ld_global) - {32, 128})
    if between:
        raise GradeFailed(f"there are {between[0]}-bit loads beside the 128-bit ones: the main path takes only 128")
    if stores < 64:
        raise GradeFailed(
            f"the widest store has {stores} bits: the bfloat16 of one 128-bit load fill 64 bits, store them at once"
        )
    if facts.spill_bytes:
        raise GradeFailed(
            f"{facts.spill_bytes} bytes of registers are spilled to memory: a thread takes more values than it can hold"
        )
    return f"128-bit loads, {stores}-bit stores, no spill"


def cast_inputs(n: int, generator: torch.Generator) -> tuple[torch.Tensor]:
    """n float32 of many magnitudes; from 100 elements on also NaN, infinities, zeros, overflow and ties."""
    import torch

    x = torch.randn(n, generator=generator, device=generator.device)
    x *= torch.exp2(torch.randn(n, generator=generator, device=generator.device) * 20)
    special = torch.tensor([math.nan, math.inf, -math.inf, 0.0, -0.0, 3.4e38, 1 + 2**-8, 1 + 3 * 2**-8, 70000.0])
    if n >= 100:
        places = torch.randint(n, special.shape, generator=generator, device=generator.device)
        x[places] = special.to(generator.device)
    return (x,)


def cast_reference(x: torch.Tensor) -> torch.Tensor:
    """The specification."""
    import torch

    return x.to(torch.bfloat16)


def cast_examples() -> tuple[torch.Tensor, torch.Tensor]:
    """One tensor an argument: x float32, y bfloat16."""
    import torch

    x = torch.empty(16, device="meta")
    return x, cast_reference(x)


MEAN_TRIALS = Trials(
    sizes=(8, 15, 1, 1000, 4099, 16384),
    inputs=mean_inputs,
    reference=mean_reference,
    dtype="bfloat16",
    grid=mean_grid,
    block=MEAN_THREADS,
    between=(1, 12_000),
)
CAST_CASES = Cases(
    sizes=(1, 7, 1000, 4097, 2**20, 1_000_003),
    inputs=cast_inputs,
    reference=cast_reference,
    between=(1, 2**20),
)

TASKS = (
    Task(
        id="bytes_in_flight.needed",
        kind="N",
        gates=(Gate("numbers", "model", judge_numbers),),
        hints=(
            "Little's law: what is in flight = rate times waiting time. A copy's rate counts each byte twice, once "
            "read and once written.",
            "GB/s times ns is bytes, of the whole GPU; each SM has its share. How many bytes does one 128-bit load "
            "bring, and how many all resident threads with one load each?",
            "bytes: copy / 2 * latency / sms. loads: that over 16 * threads, rounded up with math.ceil. naive: is "
            "threads * element_bytes at least that many bytes?",
        ),
    ),
    Task(
        id="bytes_in_flight.mean",
        kind="P",
        trials=MEAN_TRIALS,
        gates=gates(MEAN_TRIALS, mean_traffic),
        hints=(
            "Count the threads of the whole grid through. Which group does each of them take first, and how far away "
            "is its second, if in both turns neighbouring lanes are to take neighbouring groups?",
            "A list of two group numbers, then a list of what is loaded from x for each, the same of y, and only then "
            "the stores. Every access of a group has where=group < n // 8 and starts at element 8 * group.",
            "groups = [thread, thread + b.ntid * b.nctaid]. The rest: the threads below n % 8 take element "
            "n - 1 - thread, with where=thread < n % 8 in both loads and in the store.",
        ),
    ),
    Task(
        id="bytes_in_flight.cast",
        kind="K",
        examples=cast_examples,
        gates=(
            compiles(),
            shape(cast_shape),
            values(CAST_CASES, CAST_TAIL),
            speed(CAST_CASES, CAST_ELEMENTS, bytes_moved=6 * CAST_ELEMENTS, share=CAST_SHARE),
        ),
        hints=(
            "Start from the lesson's vector_copy_kernel: a thread takes one group, the first few threads take what is "
            "left behind the last whole group. What is different when the two sides have two dtypes?",
            "Between load and store stands the conversion: vector.to(mY.element_type), and the same for an element of "
            "the rest. Groups of 8 float32 take two 128-bit loads and leave by one 128-bit store.",
            "gY[None, group].store(gX[None, group].load().to(mY.element_type)) if group < n // 8, and one element, "
            "mY[n - 1 - group], if group < n % 8. The grid rounds up: cute.ceil_div(n, THREADS * 8).",
        ),
    ),
)
