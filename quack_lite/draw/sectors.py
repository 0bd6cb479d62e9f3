"""Which lane touches which byte of the sectors that a request moves.

Source: a GPU moves global memory in sectors of 32 bytes (CUDA C++ Programming Guide, "Device Memory Accesses").
"""

import numpy as np
from matplotlib.patches import Rectangle

from quack_lite.draw.cells import NOBODY, fill_cells, hatch_runs, print_size, shades
from quack_lite.draw.picture import SMALL, panels
from quack_lite.simt.traffic import SECTOR


def sector_figure(ids: np.ndarray, first: np.ndarray, last: np.ndarray):
    """(figure, axes): a line a sector in its colour, a column a byte, with the lanes' numbers; hatched: for nobody."""
    figure, [plot] = panels([0.95 + 0.19 * len(ids)])
    asked = first != NOBODY
    fill_cells(plot, shades(np.where(asked, np.arange(len(ids))[:, None], NOBODY)))
    hatch_runs(plot, ~asked)
    write_lanes(plot, first, last)
    plot.set_xticks(range(0, SECTOR, 4))
    every = -(-len(ids) // 16)
    plot.set_yticks(range(0, len(ids), every), [str(sector - ids[0]) for sector in ids[::every]])
    plot.set_xlabel("byte of the sector; hatched: moved, and nobody asked for it", fontsize=SMALL)
    plot.set_ylabel("sector", fontsize=SMALL)
    return figure, plot


def write_lanes(plot, first: np.ndarray, last: np.ndarray) -> None:
    """A frame round each run of bytes that the same lanes touch, and their numbers in it."""
    for row, pairs in enumerate(np.stack([first, last], axis=-1)):
        starts = [0, *(np.flatnonzero((pairs[1:] != pairs[:-1]).any(axis=1)) + 1)]
        for start, end in zip(starts, [*starts[1:], SECTOR], strict=True):
            low, high = pairs[start]
            if low != NOBODY:
                frame = Rectangle(
                    (start - 0.5, row - 0.5), end - start, 1, fill=False, edgecolor="white", linewidth=0.8
                )
                plot.add_patch(frame)
                text = f"{low}" if low == high else f"{low}-{high}"
                if size := print_size(plot, SECTOR / (end - start), len(text)):
                    middle = (start + end - 1) / 2
                    plot.text(middle, row, text, ha="center", va="center", fontsize=size)
