"""Which lane touches which word of shared memory, by bank.

Source: shared memory has 32 banks; neighbouring words of 4 bytes lie in neighbouring banks, and different words of one
bank are served one after the other (CUDA C++ Programming Guide, "Shared Memory").
"""

import numpy as np

from quack_lite.draw.cells import NOBODY, fill_cells, grid_lines, shades, write_cells
from quack_lite.draw.picture import RED, SMALL, panels
from quack_lite.simt.traffic import BANKS


def bank_figure(ids: np.ndarray, first: np.ndarray, last: np.ndarray):
    """(figure, axes): a column a bank, a line for each row of 32 words; below how many words each bank has to serve."""
    height = 0.24 if (first == last).all() else 0.36  # of one number, of two
    figure, plot = panels([1.15 + height * len(ids), 0.45])
    colours = shades(first)
    fill_cells(plot[0], colours)
    grid_lines(plot[0], *first.shape, color="#eeeeee")
    write_cells(plot[0], lane_names(first, last), colours)
    every = -(-len(ids) // 16)
    plot[0].set_yticks(range(0, len(ids), every), [f"row {row - ids[0]}" for row in ids[::every]])
    plot[0].xaxis.tick_top()
    plot[0].set_xticks(range(0, BANKS, 2))
    draw_load(plot[1], (first != NOBODY).sum(axis=0))
    return figure, plot[0]


def lane_names(first: np.ndarray, last: np.ndarray) -> list[list[str]]:
    """The lane of each word."""
    return [[lane_name(*pair) for pair in zip(*lines, strict=True)] for lines in zip(first, last, strict=True)]


def lane_name(first: int, last: int) -> str:
    """A lane's number; of several that touch the same word the first and the last."""
    if first == NOBODY:
        return ""
    return f"{first}" if first == last else f"{first}\n{last}"


def draw_load(plot, counts: np.ndarray) -> None:
    """Words of each bank; red frames where they are most, if it is not the same everywhere."""
    colours = np.ones((1, BANKS, 3))
    fill_cells(plot, colours)
    write_cells(plot, [[str(count) if count else "" for count in counts]], colours)
    uneven = counts.max() > max(1, counts.min())
    busiest = np.flatnonzero(counts == counts.max()) if uneven else []
    for bank in busiest:
        plot.vlines([bank - 0.5, bank + 0.5], -0.5, 0.5, color=RED)
        plot.hlines([-0.5, 0.5], bank - 0.5, bank + 0.5, color=RED)
    plot.set_yticks([0], ["words"])
    plot.set_xticks([])
    plot.set_xlabel("bank", fontsize=SMALL)
