"""Exercise 06: TV layouts from pictures, the pictures as layouts, and rows mirrored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tensor_layouts import Layout, mode, rank, right_inverse, size

from quack_lite.grading.feedback import GradeFailed
from quack_lite.grading.kernel_gates import Cases, compiles, shape, values
from quack_lite.grading.speed_gate import speed
from quack_lite.grading.task import Gate, Submission, Task

if TYPE_CHECKING:
    import torch
    from IPython.display import Image

    from quack_lite.facts import Facts

ELEMENT_BYTES = 2
MIRROR_ROWS, MIRROR_COLUMNS = 16, 128  # of a tile
MIRROR_SHARE = 0.75  # of the copy ceiling: an H200 reached 0.86
MIRROR_N = 2**14
MIRROR_TAIL = "look at the tile on the other side, and at the number of blocks"


class Picture(NamedTuple):
    """rows, columns: of the tile.  tv: (thread, value) -> index down the tile's columns."""

    rows: int
    columns: int
    tv: Layout

    @property
    def threads(self) -> int:
        return size(mode(self.tv, 0))

    @property
    def values(self) -> int:
        return size(mode(self.tv, 1))


PICTURES = {
    "a": Picture(4, 16, Layout(((2, 4), 8), ((32, 1), 4))),
    "b": Picture(8, 8, Layout((8, 8), (1, 8))),
    "c": Picture(8, 8, Layout(((4, 4), (2, 2)), ((16, 2), (8, 1)))),
    "d": Picture(4, 16, Layout(((4, 4), (2, 2)), ((8, 1), (4, 32)))),
}
INVERTED = ("a", "c", "d")


def picture(name: str) -> Image:
    """The picture that a task asks about; its title does not give the layout. KeyError for another name."""
    from quack_lite import draw

    asked = PICTURES[name]
    tile = Layout((asked.rows, asked.columns), (asked.columns, 1))
    return draw.tv_layout(asked.tv, tile, ELEMENT_BYTES, name=f"Picture {name}")


def judge_layouts(submission: Submission) -> str:
    """Compares {name: (shape, stride)} with the TV layouts of PICTURES, as functions."""
    for name, asked in PICTURES.items():
        judge_tv(_layout_of(submission.answer, name), name, asked)
    return f"right for {len(PICTURES)} pictures"


def judge_tv(given: Layout, name: str, asked: Picture) -> None:
    """GradeFailed at the first thread and value that lie elsewhere."""
    coordinates = [(t, v) for v in range(asked.values) for t in range(asked.threads)]
    if not _takes(given, asked.threads, asked.values):
        if _takes(given, asked.rows, asked.columns):
            raise GradeFailed(
                f"picture {name}: {given} takes (row, column), so it is the picture: a TV layout takes "
                f"(thread, value), here ({asked.threads}, {asked.values}) of them, and gives the element"
            )
        raise GradeFailed(
            f"picture {name}: {given} takes {_sizes(given)} and not (threads, values) = ({asked.threads}, "
            f"{asked.values}): the first coordinate counts the threads, the second a thread's values"
        )
    wrong = [at for at in coordinates if given(*at) != asked.tv(*at)]
    if not wrong:
        return
    t, v = wrong[0]
    raise GradeFailed(
        f"picture {name}: thread {t}, value {v} lies at {_cell(asked.tv(t, v), asked)} in the picture and at index "
        f"{given(t, v)}, {_cell(given(t, v), asked)}, by your layout: {_slip(given, asked, coordinates)}"
    )


def _slip(given: Layout, asked: Picture, coordinates: list[tuple[int, int]]) -> str:
    """What a wrong TV layout is, where it can be told."""
    along = [divmod(asked.tv(*at), asked.rows) for at in coordinates]
    if [given(*at) for at in coordinates] == [row * asked.columns + column for column, row in along]:
        return "that counts along the rows, and indices are counted down the columns"
    if all(given(t, 0) == asked.tv(t, 0) for t in range(asked.threads)):
        return "the threads begin where they should, so look at the strides of the values"
    if all(given(0, v) == asked.tv(0, v) for v in range(asked.values)):
        return "thread 0 is right, so look at the strides of the threads"
    return "find thread 0, then thread 1, and count the cells from one to the other, column by column"


def judge_inverses(submission: Submission) -> str:
    """Compares {name: (shape, stride)} with (row, column) -> thread + threads * value."""
    for name in INVERTED:
        judge_inverse(_layout_of(submission.answer, name), name, PICTURES[name])
    return f"right for {len(INVERTED)} pictures"


def judge_inverse(given: Layout, name: str, asked: Picture) -> None:
    """GradeFailed at the first element that is held by another."""
    if not _takes(given, asked.rows, asked.columns):
        raise GradeFailed(
            f"picture {name}: {given} takes {_sizes(given)} and not (rows, columns) = ({asked.rows}, {asked.columns}): "
            "here an element goes in and its holder comes out"
        )
    inverse = right_inverse(asked.tv)
    wanted = {(r, c): inverse(r + asked.rows * c) for c in range(asked.columns) for r in range(asked.rows)}
    wrong = [at for at in wanted if given(*at) != wanted[at]]
    if not wrong:
        return
    t, v = wanted[wrong[0]] % asked.threads, wanted[wrong[0]] // asked.threads
    found = {at: given(*at) for at in wanted}
    why = "go one step down and one step to the right in the picture, and see what changes"
    if found == {at: n % asked.threads * asked.values + n // asked.threads for at, n in wanted.items()}:
        why = "that is thread * values + value: the threads count fastest, so it is thread + threads * value"
    elif found == {at: n % asked.threads for at, n in wanted.items()}:
        why = "that is the thread alone: a value further on has to add the number of threads"
    raise GradeFailed(
        f"picture {name}: element {wrong[0]} is held as value {v} by thread {t}, which is {wanted[wrong[0]]}, and your "
        f"layout gives {given(*wrong[0])}: {why}"
    )


def _layout_of(answer: Any, name: str) -> Layout:
    if not isinstance(answer, dict) or name not in answer:
        raise GradeFailed(f"hand over a dict with a (shape, stride) for each picture: {name} is missing")
    try:
        shape, stride = answer[name]
        return Layout(shape, stride)
    except Exception as problem:
        raise GradeFailed(
            f"picture {name}: {answer[name]!r} is no (shape, stride) with the same brackets in both ({problem})"
        ) from None


def _takes(given: Layout, first: int, second: int) -> bool:
    return _sizes(given) == (first, second)


def _sizes(given: Layout) -> tuple[int, ...]:
    return tuple(size(mode(given, k)) for k in range(rank(given)))


def _cell(index: int, asked: Picture) -> str:
    column, row = divmod(index, asked.rows)
    return f"row {row}, column {column}" if 0 <= column < asked.columns else "outside the tile"


def mirror_shape(facts: Facts) -> str:
    """128-bit loads and stores only, and no spill."""
    for name, found in (("load", facts.ld_global), ("store", facts.st_global)):
        if max(found, default=0) != 128:
            raise GradeFailed(
                f"the widest {name} has {max(found, default=0)} bits: a thread's eight have to be neighbours, in "
                "rising order, at an address that the compiler knows to be a multiple of 16"
            )
        narrow = sorted(set(found) - {128})
        if narrow:
            raise GradeFailed(f"there are {narrow[0]}-bit {name}s beside the 128-bit ones: turn the order in registers")
    if facts.spill_bytes:
        raise GradeFailed(f"{facts.spill_bytes} bytes of registers are spilled: a thread takes too many values")
    return "128-bit loads and stores, no spill"


def mirror_inputs(n: int, generator: torch.Generator) -> tuple[torch.Tensor]:
    """A matrix of bfloat16 with n columns."""
    import torch

    rows = 2**13 if n == MIRROR_N else 3 * MIRROR_ROWS
    x = torch.randn(rows, n, generator=generator, device=generator.device)
    return (x.to(torch.bfloat16),)


def mirror_reference(x: torch.Tensor) -> torch.Tensor:
    """The specification."""
    return x.flip(1)


def mirror_examples() -> tuple[torch.Tensor, torch.Tensor]:
    """One tensor an argument: x and y, bfloat16 matrices."""
    import torch

    x = torch.empty(MIRROR_ROWS, MIRROR_COLUMNS, device="meta", dtype=torch.bfloat16)
    return x, x.clone()


MIRROR_CASES = Cases(sizes=(128, 256, 1024, 1920), inputs=mirror_inputs, reference=mirror_reference)

TASKS = (
    Task(
        id="tv_layout.written",
        kind="N",
        gates=(Gate("layouts", "model", judge_layouts),),
        hints=(
            "An element's index is row + rows * column. Find value 0 of thread 0, of thread 1, of thread 2, and write "
            "down their indices. Where do they stop growing by the same amount?",
            "Where the threads go along a row first and then down, their coordinate has two parts: (threads in a row, "
            "rows of threads), with a stride for each. The same holds for values in two directions.",
            "a: ((2, 4), 8) and ((32, 1), 4). b: (8, 8), the thread goes down. c: ((4, 4), (2, 2)), value 1 lies one "
            "column on, value 2 one row down. d: as c, but value 2 lies eight columns on.",
        ),
    ),
    Task(
        id="tv_layout.inverse",
        kind="N",
        gates=(Gate("layouts", "model", judge_inverses),),
        hints=(
            "Now an element goes in. Start at row 0, column 0, which holds 0. Go one row down: who is there, and as "
            "which value? thread + threads * value is the number that has to come out.",
            "Go to the right: as long as it is the same thread, each step adds the number of threads; where the next "
            "thread begins, that stops, and a new part of the coordinate begins.",
            "a: (4, (8, 2)) and (2, (8, 1)). In c the rows have two parts, (2, 4): inside a thread and from thread to "
            "thread. In d the columns have three.",
        ),
    ),
    Task(
        id="tv_layout.mirror",
        kind="K",
        examples=mirror_examples,
        gates=(
            compiles(),
            shape(mirror_shape),
            values(MIRROR_CASES, MIRROR_TAIL),
            speed(MIRROR_CASES, MIRROR_N, bytes_moved=4 * 2**13 * MIRROR_N, share=MIRROR_SHARE),
        ),
        hints=(
            "Three things are turned: the order of the tiles in a row, the order of the threads in a row of the tile, "
            "and the order of a thread's eight values. Which of the three can a layout of addresses not do?",
            "The tile of mY is (i, blocks - 1 - j), where blocks comes from cute.arch.grid_dim(). The place in it is "
            "that of another thread, the one as far from the right end of the row of threads as this is from the left.",
            "That thread is thread // 16 * 16 + 15 - thread % 16. Load eight, copy them to a second register tensor "
            "with rY[v] = rX[7 - v], and store that.",
        ),
    ),
)
