"""Exercise 15: where stages pay, and rows that come while others are worked on, on the Model and on the GPU."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from quack_lite import simt
from quack_lite.counted import counted
from quack_lite.grading.feedback import GradeFailed
from quack_lite.grading.given import number, whole
from quack_lite.grading.kernel_gates import Cases, compiles, shape, values
from quack_lite.grading.program_gates import Trial, Trials, at_most, gates, lanes_have_met
from quack_lite.grading.speed_gate import speed
from quack_lite.grading.task import Gate, Submission, Task

if TYPE_CHECKING:
    import torch

    from quack_lite.facts import Facts

RESERVED = 1024  # bytes of shared memory that the system keeps of each block
SHARED = (228 * 1024, 164 * 1024, 100 * 1024)
ROWS = (1024, 8192, 12_000, 32_768, 65_536)
RATES = (32, 12.5)  # bytes a ns of an SM, reads and writes
BUSY = (100, 500, 2000)  # ns
NEEDED = (2000, 15_000, 40_000)
JUST_ENOUGH = (6592, 8192, 1, 32, 100)  # needed, and row_bytes, blocks, rate and busy with as much on its way
COLUMNS, THREADS, GRID = 256, 64, 2  # the program's row and launch
ROW_BYTES = 4 * COLUMNS
SHARE = 0.8  # of the copy ceiling
TAIL = "look at rows behind the last and at vectors behind the end of a row: neither is sent nor stored"


def most_stages(row_bytes: int, blocks: int, shared: int) -> int:
    """Rows that fit into a block's part of an SM's shared memory."""
    return (shared // blocks - RESERVED) // row_bytes


def turn_time(row_bytes: int, blocks: int, rate: float) -> float:
    """ns of a turn at the ceiling: all blocks read a row and write one."""
    return 2 * row_bytes * blocks / rate


def on_its_way(row_bytes: int, blocks: int, rate: float, busy: float) -> float:
    """Bytes on their way to an SM without stages, on average over such a turn."""
    return row_bytes * blocks * max(0, 1 - busy / turn_time(row_bytes, blocks, rate))


def pays(needed: float, row_bytes: int, blocks: int, rate: float, busy: float) -> bool:
    """Whether too little is on its way without stages."""
    return on_its_way(row_bytes, blocks, rate, busy) < needed


def judge_numbers(submission: Submission) -> str:
    """Tries (most_stages, turn_time, on_its_way, pays)."""
    try:
        of_stages, of_time, of_bytes, of_pays = submission.answer
    except (TypeError, ValueError):
        raise GradeFailed("hand over the four functions: (most_stages, turn_time, on_its_way, pays)") from None
    cases = [(row, blocks) for row in ROWS for blocks in (1, 3, 2, 8, 16)]
    for row, blocks in cases:
        for shared in SHARED:
            judge_stages(whole("most_stages", of_stages(row, blocks, shared)), row, blocks, shared)
    turns = [(row, blocks, rate) for row, blocks in cases for rate in RATES]
    for turn in turns:
        judge_time(number("turn_time", of_time(*turn)), *turn)
    for turn in turns:
        for busy in BUSY:
            judge_bytes(number("on_its_way", of_bytes(*turn, busy)), *turn, busy)
    for turn in turns:
        for busy in BUSY:
            for needed in NEEDED:
                judge_pays(of_pays(needed, *turn, busy), needed, *turn, busy)
    judge_pays(of_pays(*JUST_ENOUGH), *JUST_ENOUGH)
    return f"right for {len(cases)} rows and numbers of blocks"


def judge_stages(given: int, row: int, blocks: int, shared: int) -> None:
    """Compares most_stages, and names the slip where the number gives it away."""
    wanted = most_stages(row, blocks, shared)
    if given == wanted:
        return
    slips = {
        wanted + 1: "a row that fits only in part does not fit: round down",
        shared // row: f"it is shared by {counted(blocks, 'blocks')}, each of which loses {RESERVED} bytes",
        (shared - RESERVED) // row: f"it is shared by {counted(blocks, 'blocks')}",
        shared // blocks // row: f"each block loses {RESERVED} bytes of its part",
        (shared - RESERVED) // blocks // row: f"the {RESERVED} bytes are lost once a block, not once an SM",
    }
    why = slips.get(given, f"a block has its part of the {shared} bytes less {RESERVED}: how many rows fit there?")
    raise GradeFailed(f"most_stages({row}, {blocks}, {shared}) gave {given}: {why}")


def judge_time(given: float, row: int, blocks: int, rate: float) -> None:
    """Compares turn_time, and names the slip where the number gives it away."""
    wanted = turn_time(row, blocks, rate)
    slips = {
        row / rate: f"each of {counted(blocks, 'blocks')} reads a row and writes one",
        2 * row / blocks / rate: f"the rate is shared by {counted(blocks, 'blocks')}, so that a turn takes longer",
        2 * row / rate: f"the rate is shared by {counted(blocks, 'blocks')}, so that in a turn each moves its two rows",
        row * blocks / rate: "a row is read and another is written, and the rate counts both",
    }
    if not close(given, wanted):
        why = named(given, slips, "in a turn each block reads a row and writes one, at the SM's rate")
        raise GradeFailed(f"turn_time({row}, {blocks}, {rate}) gave {given:g}: {why}")


def judge_bytes(given: float, row: int, blocks: int, rate: float, busy: float) -> None:
    """Compares on_its_way, and names the slip where the number gives it away."""
    wanted, turn = on_its_way(row, blocks, rate, busy), turn_time(row, blocks, rate)
    if close(given, wanted):
        return
    slips = {
        row * blocks * busy / turn: "in that part of a turn nothing is on its way; it is in the rest",
        row * (1 - busy / turn): f"there are {blocks} blocks on the SM",
        row * blocks: "while a block sums, its row is not on its way",
        row * (blocks - 1): "each block sums for a part of its turn only",
    }
    why = named(given, slips, "each block sums once a turn, and its row is on its way for the rest of it")
    if given < 0:
        why = "a sum that takes longer than the turn leaves 0 bytes, and never fewer"
    raise GradeFailed(f"on_its_way({row}, {blocks}, {rate}, {busy}) gave {given:.0f}, a turn takes {turn:.0f}: {why}")


def close(given: float, wanted: float) -> bool:
    """Equal but for the rounding of floats."""
    return math.isclose(given, wanted, rel_tol=1e-9, abs_tol=1e-6)


def named(given: float, slips: dict[float, str], otherwise: str) -> str:
    """The slip that gives this number."""
    return next((why for slip, why in slips.items() if close(given, slip)), otherwise)


def judge_pays(given: object, needed: int, row: int, blocks: int, rate: float, busy: float) -> None:
    """Compares pays."""
    if type(given).__name__ not in ("bool", "bool_"):
        raise GradeFailed(f"pays gave {given!r}: it answers True or False")
    if bool(given) != pays(needed, row, blocks, rate, busy):
        raise GradeFailed(
            f"pays{(needed, row, blocks, rate, busy)} said {bool(given)}: without stages "
            f"{on_its_way(row, blocks, rate, busy):.0f} bytes are on their way on average, and {needed} are needed"
        )


def rows_inputs(m: int, random: np.random.Generator) -> tuple[simt.Tensor]:
    """Whole numbers, so that nothing is rounded."""
    return (simt.tensor(random.integers(-1000, 1000, (m, COLUMNS)), "float32"),)


def rows_reference(x: np.ndarray) -> np.ndarray:
    """The specification."""
    return x - x.max(axis=1, keepdims=True)


def rows_traffic(trial: Trial) -> str:
    """Everything by cp.async and once, a row on its way behind a wait, one barrier a row."""
    lanes_have_met(trial)
    m = trial.size
    turns = -(-m // GRID)
    by_copy = "let every element come by b.cp_async, past the registers"
    at_most(trial, "ld.global", "requests", 0, by_copy)
    once = "send each row once, with vec=4, neighbouring lanes next to each other"
    at_most(trial, "cp.async", "requests", m * THREADS // 32, once)
    at_most(trial, "cp.async", "sectors", m * ROW_BYTES // 32, once)
    at_most(trial, "bar.sync", "barriers", turns * GRID * THREADS // 32, "one barrier a row is enough")
    if m == max(ROWS_TRIALS.sizes):
        maxima_are_of_warps(trial)
    ahead = trial.run.total("cp.async.wait_group").in_flight
    if turns > 1 and ahead < ROW_BYTES:
        raise GradeFailed(
            f"{trial.name}: behind the waits {ahead} bytes of a block are on their way, and a row of {ROW_BYTES} can "
            "be: send for two rows before the loop, and let one group be on its way behind the wait"
        )
    return f"{m} rows, each sent once, a row on its way behind the waits"


def maxima_are_of_warps(trial: Trial) -> None:
    """GradeFailed where the warps of each block leave one and the same number, row after row."""
    stores = [event for event in trial.run.events if event.verb == "st.shared" and event.active.sum() > 1]
    if stores and all(np.ptp(event.values[event.active]) == 0 for event in stores):
        raise GradeFailed(
            f"{trial.name}: in every row all warps leave the same number in shared memory, as if each knew the whole "
            "row: value.max(1) is of each thread's four, value.max() of all threads"
        )


class Shape(NamedTuple):
    """Rows and columns."""

    m: int
    n: int

    def __str__(self) -> str:
        return f"{self.m} x {self.n}"


LARGE = Shape(4096, 32768)


def below_inputs(size: Shape, generator: torch.Generator) -> tuple[torch.Tensor]:
    """bfloat16, all of a row below zero in some."""
    import torch

    x = torch.randn(size, generator=generator, device=generator.device)
    x[::3] -= 20
    return (x.to(torch.bfloat16),)


def below_reference(x: torch.Tensor) -> torch.Tensor:
    """The specification."""
    import torch

    return (x.float() - x.float().amax(-1, keepdim=True)).to(torch.bfloat16)


def below_examples() -> tuple[torch.Tensor, torch.Tensor]:
    """One tensor an argument: x and y bfloat16."""
    import torch

    x = torch.empty(2, 8, device="meta", dtype=torch.bfloat16)
    return x, x


def below_shape(facts: Facts) -> str:
    """cp.async instead of loads, 128-bit stores, no spill."""
    if not facts.cp_async:
        raise GradeFailed("there is no cp.async: start the copies with cute.copy and the atom of CopyG2SOp")
    if facts.ld_global:
        raise GradeFailed("there are loads from global memory beside cp.async: every element is to come by the latter")
    if max(facts.st_global, default=0) != 128:
        raise GradeFailed(
            f"the widest store has {max(facts.st_global, default=0)} bits: eight bfloat16 leave in one of 128"
        )
    if facts.spill_bytes:
        raise GradeFailed(f"{facts.spill_bytes} bytes of registers are spilled to memory: keep rows in bfloat16")
    return f"{facts.cp_async} cp.async, no load, no spill"


ROWS_TRIALS = Trials(
    sizes=(8, 1, 2, 3, 7),
    inputs=rows_inputs,
    reference=rows_reference,
    dtype="float32",
    grid=lambda m: GRID,
    block=THREADS,
    between=(1, 12),
    letter="m",
)
BELOW_CASES = Cases(
    sizes=(Shape(300, 32768), Shape(1, 8), Shape(3, 1000), Shape(131, 8200), Shape(265, 32760), Shape(1000, 512)),
    inputs=below_inputs,
    reference=below_reference,
    letter="shape",
    advice="look at the wait, at the stage that is read and at what lanes without a vector give to the maximum",
)

TASKS = (
    Task(
        id="async_copy.pays",
        kind="N",
        gates=(Gate("numbers", "model", judge_numbers),),
        hints=(
            "Draw a turn of one block as a line: a part in which its row comes, and a part in which it sums. Draw the "
            "other blocks below it. How many bytes does a turn move in all, and how fast may they?",
            "All blocks together move two rows each in a turn. A block's row is on its way for turn - busy of turn ns; "
            "add that up over the blocks. Shared memory is divided first, and then each block loses its 1024 bytes.",
            "(shared // blocks - 1024) // row_bytes; 2 * row_bytes * blocks / rate; row_bytes * blocks * max(0, 1 - "
            "busy / turn_time(row_bytes, blocks, rate)); on_its_way(row_bytes, blocks, rate, busy) < needed.",
        ),
    ),
    Task(
        id="async_copy.below_the_best",
        kind="P",
        trials=ROWS_TRIALS,
        gates=gates(ROWS_TRIALS, rows_traffic),
        hints=(
            "A block's turns are 0, 1, 2, ...; its row in a turn is b.ctaid + turn * b.nctaid, its stage turn % 2. "
            "Send turns 0 and 1 before the loop, and turn + 2 in it. How many groups may be on their way behind the "
            "wait?",
            "b.wait_group(1), take the row out with b.ld_shared, send turn + 2 into the same stage, where=row < m, "
            "and close the group also where nothing was sent. The maxima of the warps go to w at turn % 2, so that "
            "one barrier is enough.",
            "best = value.max(1); five shuffles with np.maximum; b.st_shared(w, (turn % 2, b.warpid), best, "
            "where=b.laneid == 0); b.bar_sync(); the greater of the two numbers in w; value - best[:, None].",
        ),
    ),
    Task(
        id="async_copy.below",
        kind="K",
        examples=below_examples,
        gates=(
            compiles(),
            shape(below_shape),
            values(BELOW_CASES, TAIL),
            speed(BELOW_CASES, LARGE, bytes_moved=4 * LARGE.m * LARGE.n, share=SHARE),
        ),
        hints=(
            "It is the lesson's staged_kernel with another reduction and another last line. The program of task 2 has "
            "the same lines in the same order.",
            "send: gX = row_vectors(mX[row, None]), cute.copy(atom, gX[None, k], sX[None, k]) for the k of this thread "
            "if row and k exist, then cute.arch.cp_async_commit_group(). The loop begins with "
            "cute.arch.cp_async_wait_group(STAGES - 1).",
            "rX.fill(-mX.element_type.inf) before the vectors that exist are taken from sX[None, k, stage]; then send "
            "row + STAGES * BLOCKS; best = block_max(greatest(rX.load().to(Float32)), sW[None, turn % 2]); store "
            "rX[None, j].load().to(Float32) - best.",
        ),
    ),
)
