"""Exercise 09: who meets in a bank, a tile of eleven rows turned without a conflict, and a quarter turn."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from quack_lite import simt
from quack_lite.grading.feedback import GradeFailed
from quack_lite.grading.kernel_gates import Cases, compiles, shape, values
from quack_lite.grading.program_gates import Trial, Trials, at_most, gates
from quack_lite.grading.speed_gate import speed
from quack_lite.grading.task import Gate, Submission, Task

if TYPE_CHECKING:
    import torch

    from quack_lite.facts import Facts

BANKS = 32
STRIDES = (1, 2, 3, 12, 32, 33, 40, 48, 100, 1024, 0)
TALL, NARROW = 32, 8  # the tile of `place`
FIELDS, COLUMNS = 11, 32  # the program's tile
SECTOR_FLOATS = 8
TURN_SHARE = 0.7  # of the copy ceiling
TURN_TAIL = "look at both conditions, of the load and of the store, and at the grid"


def wavefronts(stride: int) -> int:
    """Passes for one read of a warp whose lanes want words `stride` apart; one word for all is given once."""
    return math.gcd(stride, BANKS) if stride else 1


def place(row: int, column: int) -> int:
    """The word of a tile of 32 rows and 8 columns, so that 4 rows at once and each column lie in 32 banks."""
    return NARROW * row + (column ^ row // 4)


def judge_numbers(submission: Submission) -> str:
    """Tries (wavefronts, place)."""
    try:
        of_wavefronts, of_place = submission.answer
    except (TypeError, ValueError):
        raise GradeFailed("hand over the two functions: (wavefronts, place)") from None
    for stride in STRIDES:
        judge_wavefronts(of_wavefronts(stride), stride)
    judge_place({(row, column): of_place(row, column) for row in range(TALL) for column in range(NARROW)})
    return f"right for {len(STRIDES)} strides, and no conflict in the tile"


def judge_wavefronts(given: Any, stride: int) -> None:
    """Compares wavefronts, and names the slip where the number gives it away."""
    given, wanted = _whole("wavefronts", given), wavefronts(stride)
    if given == wanted:
        return
    slips = {
        BANKS // math.gcd(stride, BANKS): "that is in how many banks the words lie: how many of them does each hold?",
        math.gcd(stride, BANKS): "all lanes want the same word, and a word that several lanes want is given once",
        stride: "only the words that lie in one bank wait for one another: stride 33 is as good as 1",
    }
    why = slips.get(given, "lane l's word is in bank l * stride % 32: count the words of the fullest bank")
    raise GradeFailed(f"wavefronts({stride}) gave {given}: {why}")


def judge_place(given: dict[tuple[int, int], Any]) -> None:
    """A place for each element, none twice, none beyond the tile, no conflict by rows or by columns."""
    words = {at: _whole("place", word) for at, word in given.items()}
    for (row, column), word in words.items():
        if not 0 <= word < TALL * NARROW:
            raise GradeFailed(f"place({row}, {column}) gave {word}: the tile has the words 0 to {TALL * NARROW - 1}")
    if len(set(words.values())) < len(words):
        seen = {}
        for at, word in words.items():
            if word in seen:
                raise GradeFailed(f"place{seen[word]} and place{at} are both {word}: each element has its own word")
            seen[word] = at
    for first in range(0, TALL, BANKS // NARROW):
        lanes = [(first + lane // NARROW, lane % NARROW) for lane in range(BANKS)]
        _judge_banks(words, lanes, f"where a warp stores rows {first} to {first + BANKS // NARROW - 1}")
    for column in range(NARROW):
        _judge_banks(words, [(row, column) for row in range(TALL)], f"where a warp reads column {column}")


def _judge_banks(words: dict, lanes: list, where: str) -> None:
    banks = [words[at] % BANKS for at in lanes]
    most = max(banks, key=banks.count)
    if banks.count(most) > 1:
        one, other = [at for at, bank in zip(lanes, banks, strict=True) if bank == most][:2]
        raise GradeFailed(
            f"{where}, {banks.count(most)} lanes meet in bank {most}: place{one} is {words[one]} and place{other} is "
            f"{words[other]}"
        )


def _whole(name: str, given: Any) -> int:
    if isinstance(given, bool) or not hasattr(given, "__index__"):
        raise GradeFailed(f"{name} returned {given!r}: it returns a whole number")
    return int(given)


def records_inputs(n: int, random: np.random.Generator) -> tuple[simt.Tensor]:
    """Eleven rows of n numbers."""
    return (simt.tensor(random.standard_normal((FIELDS, n)), "float32"),)


def records_reference(x: np.ndarray) -> np.ndarray:
    """The specification."""
    return x.T


def records_grid(n: int) -> int:
    """A block for 32 columns."""
    return -(-n // COLUMNS)


def records_traffic(trial: Trial) -> str:
    """Each request as full as it can be on both sides, and no conflict in shared memory."""
    n, blocks = trial.size, records_grid(trial.size)
    spans = [(row * n + first, row * n + min(first + COLUMNS, n)) for row in range(FIELDS) for first in range(0, n, 32)]
    sectors = sum((last - 1) // SECTOR_FLOATS - first // SECTOR_FLOATS + 1 for first, last in spans)
    along = "let the lanes of a warp take neighbours in memory, and mask those past the end"
    at_most(trial, "ld.global", "sectors", sectors, along)
    at_most(trial, "st.global", "sectors", -(-FIELDS * n // SECTOR_FLOATS), along)
    for verb in ("ld.global", "st.global"):
        at_most(trial, verb, "requests", blocks * FIELDS, "a block's 352 elements fill eleven requests")
    apart = "some of their words lie in one bank: choose how the tile lies in shared memory, and how far apart its rows"
    at_most(trial, "st.shared", "conflicts", 0, apart)
    at_most(trial, "ld.shared", "conflicts", 0, apart)
    return f"{trial.run.total('ld.shared').wavefronts} wavefronts to read the tile, no conflict"


class Shape(NamedTuple):
    """Rows and columns."""

    m: int
    n: int

    def __str__(self) -> str:
        return f"{self.m} x {self.n}"


TURN_LARGE = Shape(8000, 8200)


def turn_inputs(size: Shape, generator: torch.Generator) -> tuple[torch.Tensor]:
    """Float32."""
    import torch

    return (torch.randn(size, generator=generator, device=generator.device),)


def turn_reference(x: torch.Tensor) -> torch.Tensor:
    """The specification."""
    import torch

    return torch.rot90(x).contiguous()


def turn_examples() -> tuple[torch.Tensor, torch.Tensor]:
    """One tensor an argument: x and y float32."""
    import torch

    return torch.empty(2, 8, device="meta"), torch.empty(8, 2, device="meta")


def turn_shape(facts: Facts) -> str:
    """A barrier, and no spill."""
    if not facts.barriers:
        raise GradeFailed(
            "there is no barrier: what one thread puts into shared memory another may read only behind one"
        )
    if facts.spill_bytes:
        raise GradeFailed(
            f"{facts.spill_bytes} bytes of registers are spilled to memory: a thread takes too many elements"
        )
    return f"{facts.barriers} barrier, no spill"


RECORDS_TRIALS = Trials(
    sizes=(64, 32, 1, 31, 33, 100),
    inputs=records_inputs,
    reference=records_reference,
    dtype="float32",
    grid=records_grid,
    block=FIELDS * COLUMNS,
)
TURN_CASES = Cases(
    sizes=(Shape(64, 64), Shape(1, 1), Shape(7, 33), Shape(100, 31), Shape(33, 1000), Shape(1000, 4097)),
    inputs=turn_inputs,
    reference=turn_reference,
    letter="shape",
    advice="look at which element of y a thread stores: y[i, j] is x[j, n - 1 - i]",
)

TASKS = (
    Task(
        id="shared_memory.place",
        kind="N",
        gates=(Gate("numbers", "model", judge_numbers),),
        hints=(
            "wavefronts: after how many lanes does l * stride % 32 come back to 0? place: without a swizzle, which "
            "rows of a column share a bank?",
            "A row has 8 words, so 4 rows fill the 32 banks, and rows r, r + 4, r + 8, ... lie in the same eight. Give "
            "each of those groups of rows another order of its columns.",
            "wavefronts: math.gcd(stride, 32), and 1 for stride 0. place: 8 * row + (column ^ row // 4), since row // "
            "4 is another number from 0 to 7 for each group of four rows.",
        ),
    ),
    Task(
        id="shared_memory.records",
        kind="P",
        trials=RECORDS_TRIALS,
        gates=gates(RECORDS_TRIALS, records_traffic),
        hints=(
            "A thread has two parts to play. Reading, its warp is a row: row = b.tid // 32, column = b.tid % 32. "
            "Writing, neighbours are neighbours in y: row = b.tid % 11, column = b.tid // 11.",
            "With the tile field by field, thread e reads word stride * (e % 11) + e // 11. It would be best if that "
            "were some number times e, modulo 32: for which stride? Or let the tile lie as y does, particle by "
            "particle: which words does each side want then?",
            "11 * stride has to be 1 more than a multiple of 32: 11 * 35 = 385 = 12 * 32 + 1. Or lay the tile out as "
            "(32, 11), particle by particle: thread e reads word e, and the stores go in steps of 11, which is odd.",
        ),
    ),
    Task(
        id="shared_memory.quarter_turn",
        kind="K",
        examples=turn_examples,
        gates=(
            compiles(),
            shape(turn_shape),
            values(TURN_CASES, TURN_TAIL),
            speed(TURN_CASES, TURN_LARGE, bytes_moved=8 * TURN_LARGE.m * TURN_LARGE.n, share=TURN_SHARE),
        ),
        hints=(
            "A quarter turn is a transpose and a mirror. Draw a matrix of 2 x 3 and its turn: in which row of y does "
            "column c of x end?",
            "Column c of x becomes row n - 1 - c of y, read from top to bottom. Only the place of the store differs "
            "from the lesson's tile_kernel; its condition is still about the element of x that is stored.",
            "mY[n - 1 - (32 * j + y + 8 * k), 32 * i + x] = sX[x, y + 8 * k] where 32 * j + y + 8 * k < n and 32 * i + "
            "x < m. Let the rows of sX lie 33 words apart, and keep the barrier.",
        ),
    ),
)
