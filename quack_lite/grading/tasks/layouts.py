"""Exercise 04: sectors of a request counted, structs taken apart, and one field of them summed."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from quack_lite import simt
from quack_lite.grading.feedback import GradeFailed
from quack_lite.grading.given import number
from quack_lite.grading.kernel_gates import Cases, compiles, values
from quack_lite.grading.program_gates import Trial, Trials, at_most, gates
from quack_lite.grading.speed_gate import speed
from quack_lite.grading.task import Gate, Submission, Task

if TYPE_CHECKING:
    import torch

LANES, SECTOR = 32, 32
FIELDS = 8  # float32 of a struct: one sector
FIELD, GROUP = 5, 16  # the field that is summed, structs of a sum
SPLIT_THREADS = 128
FIELD_SHARE = 0.55  # of the copy ceiling, sectors counted: an H200 reached 0.61, with lanes 512 bytes apart
FIELD_GROUPS = 2**20 - 3  # 512 MB of structs
FIELD_TAIL = "look at the last groups: at the guard, and at the number of blocks"

# first element, stride, bytes of an element
REQUESTS = ((0, 1, 4), (0, 1, 2), (0, 3, 4), (0, 40, 4), (1, 1, 4), (0, 0, 4), (0, 8, 4), (5, 8, 4), (7, 2, 2))
REQUESTS += ((0, 1, 16), (31, -1, 4), (3, 5, 8))
WALKS = ((1, 4), (2, 4), (5, 4), (8, 4), (12, 4), (16, 2), (64, 2), (3, 8), (1, 1), (1000, 1))  # stride, element bytes
TOLERANCE = 1e-6


def request_sectors(first: int, stride: int, element_bytes: int) -> int:
    """Sectors that a warp's request touches whose lane l takes element first + l * stride."""
    return len({(first + lane * stride) * element_bytes // SECTOR for lane in range(LANES)})


def walk_share(stride: int, element_bytes: int) -> float:
    """Share of a long array's sectors that move when elements 0, stride, 2 stride, ... are read."""
    return min(1.0, SECTOR / (stride * element_bytes))


def judge_sectors(submission: Submission) -> str:
    """Tries (request_sectors, walk_share) on requests other than those of the notebook."""
    try:
        of_request, of_walk = submission.answer
    except (TypeError, ValueError):
        raise GradeFailed("hand over the two functions: (request_sectors, walk_share)") from None
    for request in REQUESTS:
        judge_request(of_request(*request), request)
    for walk in WALKS:
        judge_walk(of_walk(*walk), walk)
    return f"right for {len(REQUESTS)} requests and {len(WALKS)} walks"


def judge_request(given: Any, request: tuple[int, int, int]) -> None:
    """Compares request_sectors exactly, and names the slip where the number gives it away."""
    first, stride, size = request
    given, wanted = number("request_sectors", given), request_sectors(*request)
    if given == wanted:
        return
    span = (LANES - 1) * abs(stride) * size + size
    slips = (
        (
            request_sectors(max(0, -stride * (LANES - 1)), stride, size),
            "that is where the first element begins a sector: elsewhere the request may cut one sector more",
        ),
        (request_sectors(first, stride, 4), "that is right for elements of 4 bytes: multiply by element_bytes"),
        (LANES * size / SECTOR, "that is what 32 neighbours need: the stride spreads them"),
        (
            math.ceil(span / SECTOR),
            "that counts all sectors from the first lane's to the last one's: some between them nobody touches",
        ),
        (LANES, "that is one sector a lane: a sector that several lanes touch counts once"),
    )
    why = next((why for value, why in slips if given == value), "a lane's sector is its byte address // 32")
    raise GradeFailed(f"request_sectors{request} gave {given:g} and should be {wanted}: {why}")


def judge_walk(given: Any, walk: tuple[int, int]) -> None:
    """Compares walk_share to within TOLERANCE."""
    stride, size = walk
    given, wanted = number("walk_share", given), walk_share(*walk)
    if abs(given - wanted) <= TOLERANCE:
        return
    slips = (
        (1 / stride, "that is the share of the elements: sectors move as a whole"),
        (SECTOR / (stride * size), "no more than the whole array can move"),
        (min(1.0, 8 / stride), "that is right for elements of 4 bytes: a sector has 32 bytes"),
    )
    fits = (why for value, why in slips if abs(given - value) <= TOLERANCE)
    why = next(fits, "how many bytes lie from one to the next?")
    raise GradeFailed(f"walk_share{walk} gave {given:g} and should be {wanted:g}: {why}")


def split_inputs(n: int, random: np.random.Generator) -> tuple[simt.Tensor]:
    """n structs of FIELDS small whole numbers, one behind the other."""
    return (simt.tensor(random.integers(-999, 1000, size=FIELDS * n), "float32"),)


def split_reference(x: np.ndarray) -> np.ndarray:
    """The specification."""
    return x.reshape(-1, FIELDS).T.reshape(-1)


def split_grid(n: int) -> int:
    """Blocks for n structs, two threads a struct."""
    return math.ceil(2 * n / SPLIT_THREADS)


def split_traffic(trial: Trial) -> str:
    """Each sector in once, each sector out once, and half a struct a load."""
    n = trial.size
    wide = "a thread takes half a struct in one load, with vec=4"
    at_most(trial, "ld.global", "requests", math.ceil(2 * n / LANES), wide)
    near = "let neighbouring lanes take neighbouring halves, so that no sector is asked for twice"
    at_most(trial, "ld.global", "sectors", n, near)
    at_most(trial, "st.global", "requests", 4 * math.ceil(2 * n / LANES), "a thread has four numbers to store")
    full = "the lanes with the same half should store to neighbours: then a request fills the sectors that it touches"
    at_most(trial, "st.global", "sectors", n, full)
    return f"{n} sectors in, {n} sectors out"


def field_inputs(n: int, generator: torch.Generator) -> tuple[torch.Tensor]:
    """n groups of GROUP structs of FIELDS small whole numbers as float32, whose sums are exact in any order."""
    import torch

    size = (n * GROUP * FIELDS,)
    return (torch.randint(-999, 1000, size, generator=generator, device=generator.device, dtype=torch.float32),)


def field_reference(x: torch.Tensor) -> torch.Tensor:
    """The specification."""
    return x.view(-1, GROUP, FIELDS)[:, :, FIELD].sum(1)


def field_examples() -> tuple[torch.Tensor, torch.Tensor]:
    """One tensor an argument: x and y, float32."""
    import torch

    return torch.empty(GROUP * FIELDS, device="meta"), torch.empty(1, device="meta")


SPLIT_TRIALS = Trials(
    sizes=(8, 64, 72, 1000, 4104),
    inputs=split_inputs,
    reference=split_reference,
    dtype="float32",
    grid=split_grid,
    block=SPLIT_THREADS,
)
FIELD_CASES = Cases(sizes=(1, 7, 256, 257, 10_001), inputs=field_inputs, reference=field_reference, between=(1, 10_000))

TASKS = (
    Task(
        id="layouts.sectors",
        kind="N",
        gates=(Gate("numbers", "model", judge_sectors),),
        hints=(
            "Do not look for a formula for the first function. Where does lane l's element begin, in bytes? In which "
            "sector does that byte lie?",
            "Sectors are counted once, however many lanes touch them: a set of 32 numbers. For the second: how many "
            "bytes lie between two elements that are read, and what if that is more than a sector?",
            "len({(first + lane * stride) * element_bytes // 32 for lane in range(32)}), and "
            "min(1, 32 / (stride * element_bytes)).",
        ),
    ),
    Task(
        id="layouts.split",
        kind="P",
        trials=SPLIT_TRIALS,
        gates=gates(SPLIT_TRIALS, split_traffic),
        hints=(
            "Number the threads of the whole grid. Thread t takes half t: which struct is that of, and which four "
            "fields are in it?",
            "struct = t // 2, and the half's first field is 4 * (t % 2). What was loaded has shape (lanes, 4); its "
            "column c is field 4 * (t % 2) + c of the struct. Where does that lie in y?",
            "half = b.ld_global(x, 4 * t, vec=4, where=t < 2 * n); then for c in range(4): store half[:, c] at "
            "(4 * (t % 2) + c) * n + t // 2, with the same where=.",
        ),
    ),
    Task(
        id="layouts.field",
        kind="K",
        examples=field_examples,
        gates=(
            compiles(),
            values(FIELD_CASES, FIELD_TAIL),
            speed(
                FIELD_CASES,
                FIELD_GROUPS,
                bytes_moved=FIELD_GROUPS * (GROUP * SECTOR + 4),
                share=FIELD_SHARE,
            ),
        ),
        hints=(
            "Draw the memory: 8 numbers a struct, 16 structs a group. How far is it from one struct's field to the "
            "next one's, how far from one group to the next, and how far is the first one from the beginning?",
            "gX is a tensor (16, groups) over mX's memory, and a thread adds up one column of it. Its layout has two "
            "strides; the field's own place goes to the iterator: mX.iterator + FIELD.",
            "cute.make_tensor(mX.iterator + FIELD, cute.make_layout((16, groups), stride=(8, 128))). Then "
            "total = gX[0, k], and total += gX[j, k] for j from 1 to 15, if k < groups.",
        ),
    ),
)
