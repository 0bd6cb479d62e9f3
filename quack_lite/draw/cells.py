"""Cells in rows and columns: what drawings of layouts, requests and plans are made of."""

from collections.abc import Sequence

import numpy as np
from matplotlib.colors import to_rgb
from matplotlib.patches import Rectangle

from quack_lite.draw.picture import CYCLE, GREY, SMALL

NOBODY = -1  # the owner of a cell that nobody has
HATCH = "//////"
LEAST = 0.85 * SMALL  # points
LUMINANCE = (0.2126, 0.7152, 0.0722)  # of red, green and blue (Rec. 709)


def shades(owners: np.ndarray, levels: np.ndarray | None = None) -> np.ndarray:
    """(rows, columns, 3): a colour an owner, from a cycle; white for NOBODY. levels 0 .. 1: paler towards 1."""
    colours = np.array([to_rgb(colour) for colour in CYCLE])[owners % len(CYCLE)]
    if levels is not None:
        colours = colours + 0.65 * levels[..., None] * (1 - colours)
    return np.where((owners == NOBODY)[..., None], 1.0, colours)


def fill_cells(plot, colours: np.ndarray) -> None:
    """Cell (row, column) has its centre at x = column, y = row; row 0 on top."""
    plot.imshow(colours, aspect="auto", interpolation="nearest")
    plot.tick_params(length=0, labelsize=SMALL)


def hatch_runs(plot, marked: np.ndarray) -> None:
    """Hatches the marked cells (rows, columns), each run of neighbours in one piece."""
    for row, line in enumerate(marked):
        edges = np.flatnonzero(np.diff(np.concatenate([[False], line, [False]]).astype(np.int8)))
        for first, end in zip(edges[::2], edges[1::2], strict=True):
            hatch_bar(plot, first - 0.5, row - 0.5, end - first, 1)


def hatch_bar(plot, left: float, top: float, width: float, height: float) -> None:
    """A hatched rectangle: there is something, and nobody has use of it."""
    plot.add_patch(Rectangle((left, top), width, height, facecolor="white", edgecolor=GREY, hatch=HATCH, linewidth=0.6))


def grid_lines(plot, rows: int, columns: int, every: int = 1, **style) -> None:
    """Lines between cells, over all rows; between columns each `every` columns."""
    style = {"color": "white", "linewidth": 0.6} | style
    plot.vlines(np.arange(every, columns, every) - 0.5, -0.5, rows - 0.5, **style)
    plot.hlines(np.arange(1, rows) - 0.5, -0.5, columns - 0.5, **style)


def write_cells(plot, texts: Sequence[Sequence[str]], colours: np.ndarray) -> None:
    """A text in the middle of each cell, black or white by its colour; none where the longest does not fit."""
    longest = max(len(part) for line in texts for text in line for part in text.split("\n"))
    if size := print_size(plot, len(texts[0]), longest):
        for row, line in enumerate(texts):
            for column, text in enumerate(line):
                ink = "black" if np.dot(colours[row, column], LUMINANCE) > 0.42 else "white"
                plot.text(column, row, text, ha="center", va="center", fontsize=size, color=ink)


def write_runs(plot, owners: np.ndarray, prefix: str = "") -> None:
    """The owner's number in the middle of each run of an owner's cells in a row, where it fits; none for NOBODY."""
    for row, line in enumerate(owners):
        starts = np.flatnonzero(np.diff(line, prepend=line[0] - 1))
        for first, end in zip(starts, [*starts[1:], len(line)], strict=True):
            text = f"{prefix}{line[first]}"
            if line[first] != NOBODY and (size := print_size(plot, len(line) / (end - first), len(text))):
                plot.text((first + end - 1) / 2, row, text, ha="center", va="center", fontsize=size)


def print_size(plot, cells: float, longest: int) -> float:
    """The print (points) in which `longest` characters fit a cell, with so many in a row, at most SMALL; 0: in none."""
    width = plot.figure.get_figwidth() * 72 * 0.9 / cells  # points
    size = min(SMALL, 0.95 * width / (0.62 * longest))
    return size if size >= LEAST else 0
