"""Exercise 16: what an mbarrier does, a program with three faults, and a kernel that keeps its factors."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from quack_lite import simt
from quack_lite.counted import counted
from quack_lite.grading.feedback import GradeFailed
from quack_lite.grading.given import whole
from quack_lite.grading.kernel_gates import Cases, compiles, shape, values
from quack_lite.grading.program_gates import Trial, Trials, at_most, gates
from quack_lite.grading.speed_gate import speed
from quack_lite.grading.task import Gate, Submission, Task

if TYPE_CHECKING:
    import torch

    from quack_lite.facts import Facts

SEQUENCES = 60  # of events, drawn anew for each check
COUNTS = (1, 2, 5)
MOST_PIECES = 3  # in which the bytes of a phase come
COLUMNS, THREADS, GRID = 256, 64, 2  # the program's row and launch
ROW_BYTES = 4 * COLUMNS
SHARE = 0.65  # of the copy ceiling
TAIL = "look at rows behind the last and at vectors behind the end of a row: neither is sent nor stored"

Event = tuple[str, int]


def phases(count: int, events: list[Event]) -> list[int]:
    """How many phases are over after each event."""
    over, missing, to_come, found = 0, count, 0, []
    for kind, number in events:
        if kind == "arrive":
            missing -= 1
        else:
            to_come += number if kind == "expect" else -number
        if missing == 0 and to_come == 0:
            over, missing = over + 1, count
        found.append(over)
    return found


def sequences(random: np.random.Generator) -> list[tuple[int, list[Event]]]:
    """(count, events) of whole phases, whose bytes may come early; in the second half two expect may share a phase."""
    found = [(1, [("expect", 2048), ("arrive", 1), ("bytes", 1024), ("bytes", 1024)] * 2), (3, [("arrive", 1)] * 7)]
    for number in range(SEQUENCES):
        count = COUNTS[number % len(COUNTS)]
        twice = number >= SEQUENCES // 2
        whole_phases = [_one_phase(count, random, twice) for _ in range(random.integers(2, 5))]
        found.append((count, [event for phase in whole_phases for event in phase]))
    return found


def _one_phase(count: int, random: np.random.Generator, twice: bool) -> list[Event]:
    """Events that end one phase, at the last of them, with the bytes expected at once or in two parts."""
    pieces = [16 * int(piece) for piece in random.integers(1, 9, size=random.integers(1, MOST_PIECES + 1))]
    parts = [pieces[0], sum(pieces[1:])] if twice and len(pieces) > 1 else [sum(pieces)]
    events = [("arrive", 1)] * count + [("bytes", piece) for piece in pieces] + [("expect", part) for part in parts]
    while True:
        order = [events[k] for k in random.permutation(len(events))]
        last = max(place for place, event in enumerate(order) if event[0] == "arrive")
        never_early = all(to_come(order[:some]) >= 0 for some in range(last + 1, len(order)))
        if never_early and phases(count, order) == [0] * (len(order) - 1) + [1]:
            return order


def to_come(events: list[Event]) -> int:
    """Bytes that are expected and have not come, over whole phases and the one that runs."""
    return sum({"expect": number, "bytes": -number}.get(kind, 0) for kind, number in events)


def judge_numbers(submission: Submission) -> str:
    """Tries (phases, passes)."""
    try:
        of_phases, of_passes = submission.answer
    except (TypeError, ValueError):
        raise GradeFailed("hand over the two functions: (phases, passes)") from None
    tried = sequences(np.random.default_rng())
    for count, events in tried:
        judge_phases(of_phases(count, list(events)), count, events)
    for over in range(6):
        for parity in (0, 1):
            judge_passes(of_passes(over, parity), over, parity)
    return f"right for {len(tried)} sequences of events"


def judge_phases(given: object, count: int, events: list[Event]) -> None:
    """Compares phases, and says at which event it goes wrong."""
    wanted = phases(count, events)
    if not isinstance(given, list) or len(given) != len(events):
        raise GradeFailed(
            f"phases({count}, ...) gave {given!r} for {len(events)} events: it returns a list, a number an event"
        )
    for place, right in enumerate(wanted):
        got = whole("phases", given[place])
        if got == right:
            continue
        so_far = events[: place + 1]
        arrivals = sum(kind == "arrive" for kind, _ in so_far)
        if given == replacing(count, events):
            why = "expect says how many bytes more are to come: two of them in a phase add up"
        elif got > right:
            why = (
                "a phase is over when its arrivals and its bytes have come, both, and the next needs all of them again"
            )
        elif any(to_come(so_far[:some]) < 0 for some in range(len(so_far))):
            why = "bytes may come before they are expected, and are counted all the same"
        else:
            why = "a phase ends with what comes last, arrival or byte, and the next begins with all arrivals missing"
        raise GradeFailed(
            f"phases({count}, {so_far}) ends with {got} and should end with {right}, after "
            f"{counted(arrivals, 'arrivals')}: {why}"
        )


def replacing(count: int, events: list[Event]) -> list[int]:
    """What phases gives where a second expect of a phase replaces the first."""
    over, missing, expected, came, found = 0, count, 0, 0, []
    for kind, number in events:
        missing -= kind == "arrive"
        came += number if kind == "bytes" else 0
        expected = number if kind == "expect" else expected
        if missing == 0 and came == expected:
            over, missing, expected, came = over + 1, count, 0, 0
        found.append(over)
    return found


def judge_passes(given: object, over: int, parity: int) -> None:
    """Compares passes."""
    if type(given).__name__ not in ("bool", "bool_"):
        raise GradeFailed(f"passes gave {given!r}: it answers True or False")
    if bool(given) != (over % 2 != parity):
        raise GradeFailed(
            f"passes({over}, {parity}) said {bool(given)}: phase 0 has parity 0, phase 1 parity 1, and who waits for a "
            "parity goes on if the last phase that is over has it; before the first, only a wait for parity 1 goes on"
        )


def columns_inputs(m: int, random: np.random.Generator) -> tuple[simt.Tensor, simt.Tensor]:
    """Whole numbers, so that nothing is rounded."""
    x, w = random.integers(-1000, 1000, (m, COLUMNS)), random.integers(-9, 10, COLUMNS)
    return simt.tensor(x, "float32"), simt.tensor(w, "float32")


def columns_reference(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    """The specification."""
    return x * w


def columns_traffic(trial: Trial) -> str:
    """Rows by bulk copies, each once, two on their way; the factors once a block."""
    m, warps = trial.size, THREADS // 32
    kept = "load the factors before the first turn, with vec=4, and the rows by bulk_load only"
    at_most(trial, "ld.global", "requests", GRID * warps, kept)
    at_most(trial, "cp.async.bulk", "requests", m, "one thread sends a row, once")
    ahead = trial.run.total("cp.async.bulk").in_flight
    if m > GRID and ahead < 2 * ROW_BYTES:
        raise GradeFailed(
            f"{trial.name}: at most {ahead} bytes of a block are on their way, and two rows of {ROW_BYTES} can be: "
            "send for two rows before the loop"
        )
    return f"{m} rows, each sent once, the factors loaded once a block"


class Shape(NamedTuple):
    """Rows and columns."""

    m: int
    n: int

    def __str__(self) -> str:
        return f"{self.m} x {self.n}"


LARGE = Shape(8192, 16384)


def scaled_inputs(size: Shape, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """x bfloat16, rows of many magnitudes; w float32."""
    import torch

    x = torch.randn(size, generator=generator, device=generator.device)
    x *= torch.exp2(torch.randn(size.m, 1, generator=generator, device=generator.device) * 4)
    w = torch.rand(size.n, generator=generator, device=generator.device) + 0.5
    return x.to(torch.bfloat16), w


def scaled_reference(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """The specification."""
    import torch

    r = x.float() * w
    return (r / r.abs().amax(-1, keepdim=True)).to(torch.bfloat16)


def scaled_allowed(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """One ulp of bfloat16: float32 on both sides may round to either side of a tie."""
    return (2**-7 + 2**-18) * scaled_reference(x, w).double().abs() + 1e-30


def scaled_examples() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """One tensor an argument: x bfloat16, w float32, y bfloat16."""
    import torch

    x = torch.empty(2, 8, device="meta", dtype=torch.bfloat16)
    return x, torch.empty(8, device="meta"), x


def scaled_shape(facts: Facts) -> str:
    """Bulk copies, 128-bit loads of the factors, no spill."""
    if not facts.bulk_copies:
        raise GradeFailed("there is no bulk copy: one thread sends with cute.copy and the atom of CopyBulkG2SOp")
    widest = max(facts.ld_global, default=0)
    if widest != 128 or len(facts.ld_global) > 1:
        raise GradeFailed(
            f"loads from global memory: {sorted(facts.ld_global)} bits; only the factors are loaded, by four in 128"
        )
    if max(facts.st_global, default=0) != 128:
        raise GradeFailed(
            f"the widest store has {max(facts.st_global, default=0)} bits: eight bfloat16 leave in one of 128"
        )
    if facts.spill_bytes:
        raise GradeFailed(f"{facts.spill_bytes} bytes of registers are spilled to memory: keep rows in bfloat16")
    return f"{facts.bulk_copies} bulk copies, no spill"


COLUMNS_TRIALS = Trials(
    sizes=(9, 1, 2, 3, 8),
    inputs=columns_inputs,
    reference=columns_reference,
    dtype="float32",
    grid=lambda m: GRID,
    block=THREADS,
    between=(1, 12),
    letter="m",
)
SCALED_CASES = Cases(
    sizes=(Shape(900, 16384), Shape(1, 1024), Shape(131, 5120), Shape(133, 16384), Shape(1000, 3072)),
    inputs=scaled_inputs,
    reference=scaled_reference,
    allowed=scaled_allowed,
    letter="shape",
    advice="look at when a stage is read and sent again, at the phase, and of what the largest is taken",
)

TASKS = (
    Task(
        id="mbarrier_bulk.phases",
        kind="N",
        gates=(Gate("numbers", "model", judge_numbers),),
        hints=(
            "Keep three numbers: how many phases are over, how many arrivals are missing, how many bytes are still to "
            "come. Which of them does each event change, and when are you done with a phase?",
            "Bytes to come may fall below zero for a while: a copy was quicker than the thread that expects it. The "
            "phase is over when no arrival is missing and exactly 0 bytes are to come; then all arrivals are missing.",
            "if missing == 0 and to_come == 0: over, missing = over + 1, count, behind each event. passes: the last "
            "phase that is over is number over - 1, so over % 2 != parity.",
        ),
    ),
    Task(
        id="mbarrier_bulk.columns",
        kind="P",
        trials=COLUMNS_TRIALS,
        gates=gates(COLUMNS_TRIALS, columns_traffic),
        hints=(
            "Each of the three missing lines answers a question. How many threads arrive at an mbarrier? How many "
            "bytes has a row? And which turns of a block use the same mbarrier?",
            "One thread arrives. expect_tx counts bytes, and a float32 has four. Turns 0 and 1 are the first phase of "
            "their mbarriers, 2 and 3 the second.",
            "b.mbarrier(count=1), twice; came[stage].expect_tx(1024, where=there); "
            "came[stage].wait(turn // 2 % 2, where=row < m).",
        ),
    ),
    Task(
        id="mbarrier_bulk.scaled",
        kind="K",
        examples=scaled_examples,
        gates=(
            compiles(),
            shape(scaled_shape),
            replace(values(SCALED_CASES, TAIL), place="hopper"),
            replace(speed(SCALED_CASES, LARGE, bytes_moved=4 * LARGE.m * LARGE.n, share=SHARE), place="hopper"),
        ),
        hints=(
            "It is the lesson's weight_kept_kernel with another reduction, and with a row that comes in pieces. All "
            "pieces of a row belong to one phase: one arrival, one number of bytes, several copies.",
            "send: cute.arch.mbarrier_arrive_and_expect_tx(came, 2 * n), then for piece in cutlass.range(n // PIECE) a "
            "cute.copy with mbar_ptr=came, from cute.zipped_divide(promised(mX[row, None]), (PIECE,))[None, piece] to "
            "that piece of sX, all by thread 0 and only if row < m. In turn t stage t % STAGES is waited for with "
            "parity t // STAGES % 2.",
            "Load rW before the loop, 0 where there is no vector. In it: wait, rX from sX, both tensors of registers, "
            "(VECTOR, VECTORS), block_max(greatest(rX * rW)), then send row + STAGES * BLOCKS, since the barrier in "
            "block_max has seen everybody take the old row out; last rX[None, j] * rW[None, j] / best.",
        ),
    ),
)
