"""Where an array is wrong, a row a block: the pattern says which line of a kernel to look at."""

import numpy as np
from IPython.display import Image
from matplotlib.colors import to_rgb

from quack_lite.draw.cells import fill_cells, hatch_bar
from quack_lite.draw.picture import LIGHT, NORMAL, RED, SMALL, WIDTH, axes, caption, picture

MOST_ROWS, LEAST_ROWS = 24, 4  # of a picture; more blocks share a row


def wrong_elements(got, wanted, threads: int = 256) -> Image:
    """Draws which elements of `got` differ from `wanted` (arrays or CPU tensors, NaN equals NaN), a row a block.

    threads: elements of a block, in the order of its threads. Where blocks are many, neighbours share a row, which is
    red where any of them is wrong.
    """
    got, wanted = np.asarray(got).ravel(), np.asarray(wanted).ravel()
    wrong = (got != wanted) & ~((got != got) & (wanted != wanted))
    blocks = -(-len(wrong) // threads)
    shared = -(-blocks // MOST_ROWS)
    marks = rows_of(wrong, threads, shared)
    figure, plot = axes(WIDTH, 0.9 + 0.13 * max(len(marks), LEAST_ROWS))
    fill_cells(plot, np.where(seen(marks == 1)[..., None], to_rgb(RED), to_rgb(LIGHT)))
    for row, line in enumerate(marks):
        if (line < 0).any():
            left = int((line < 0).argmax())
            hatch_bar(plot, left - 0.5, row - 0.5, threads - left, 1)
    plot.set_xlabel("thread in its block", fontsize=NORMAL)
    plot.set_ylabel("block" if shared == 1 else f"{shared} blocks", fontsize=NORMAL)
    plot.set_yticks([0, len(marks) - 1] if len(marks) > 1 else [0])
    plot.set_yticklabels([str(row * shared) for row in plot.get_yticks().astype(int)], fontsize=SMALL)
    first = f", the first is element {int(wrong.argmax())}" if wrong.any() else ""
    said = f"{int(wrong.sum())} of {len(wrong)} elements are wrong{first}\n{extent(marks, shared)}"
    caption(plot, said)
    return picture(figure, f"{said.replace(chr(10), '; ')}.")


def rows_of(wrong: np.ndarray, threads: int, shared: int) -> np.ndarray:
    """(rows, threads): 1 where one of a row's blocks is wrong, 0 where none is, -1 behind the end."""
    rows = -(-len(wrong) // (threads * shared))
    padded = np.full(rows * shared * threads, -1, dtype=np.int8)
    padded[: len(wrong)] = wrong
    return padded.reshape(rows, shared, threads).max(1)


def seen(red: np.ndarray) -> np.ndarray:
    """A single red thread is drawn three wide, or it could not be seen."""
    wide = red.copy()
    wide[:, 1:] |= red[:, :-1]
    wide[:, :-1] |= red[:, 1:]
    alone = red.sum(1, keepdims=True) <= red.shape[1] // 8
    return np.where(alone, wide, red)


def extent(marks: np.ndarray, shared: int) -> str:
    """Which blocks and threads have something wrong, in words."""
    rows, threads = (np.flatnonzero((marks == 1).any(axis)) for axis in (1, 0))
    if not len(rows):
        return "nothing is red"
    blocks = rows[0] * shared, rows[-1] * shared + shared - 1
    return f"{span('block', *blocks)}, {span('thread', threads[0], threads[-1])}"


def span(what: str, first: int, last: int) -> str:
    """As "block 3" or "blocks 3 to 5"."""
    return f"{what} {first}" if first == last else f"{what}s {first} to {last}"
