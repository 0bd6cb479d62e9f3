"""From a matplotlib figure to a picture that a notebook shows and keeps.

Every picture brings its own white ground, so it is read on a dark page as on a light one. The colours are those of
Okabe and Ito ("Color Universal Design", 2008), which people with any colour vision tell apart; what a colour says, a
number, a hatch or a line says too. Pictures are WIDTH inches wide: at a phone's width SMALL print is still read.
"""

import io
import textwrap
from collections.abc import Sequence

import numpy as np
from IPython.display import Image
from matplotlib.figure import Figure
from matplotlib.image import imread, imsave

BLUE, RED, YELLOW, GREY = "#0072b2", "#d55e00", "#e69f00", "#767676"
SKY, GREEN, PURPLE, LIGHT = "#56b4e9", "#009e73", "#cc79a7", "#d9d9d9"
CYCLE = (SKY, YELLOW, GREEN, PURPLE, LIGHT, "#f0e442")  # neighbours' colours; black print is read on each

WIDTH = 5.6  # inches
SMALL, NORMAL = 8.5, 9.5  # points
CAPTION = 60  # characters in a line of a title
DPI = 110


def axes(width: float, height: float):
    """(figure, axes) of so many inches, without a frame on top and right."""
    figure = Figure(figsize=(width, height), layout="constrained", facecolor="white")
    plot = figure.subplots()
    plot.spines[["top", "right"]].set_visible(False)
    return figure, plot


def panels(heights: list[float]):
    """(figure, [axes]) of WIDTH inches, one below the other, each so many inches high, without frames and ticks."""
    figure = Figure(figsize=(WIDTH, sum(heights)), layout="constrained", facecolor="white")
    plots = list(figure.subplots(len(heights), squeeze=False, height_ratios=heights)[:, 0])
    for plot in plots:
        plot.spines[:].set_visible(False)
        plot.tick_params(length=0, labelsize=SMALL)
    return figure, plots


def caption(plot, text: str) -> None:
    """A title over the left edge, in lines that fit the width."""
    lines = [part for line in text.split("\n") for part in textwrap.wrap(line, CAPTION)]
    plot.set_title("\n".join(lines), fontsize=NORMAL, loc="left")


def picture(figure: Figure, description: str) -> Image:
    """A PNG of the figure; `description` is what a reader who cannot see it gets."""
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=DPI)
    return Image(file.getvalue(), format="png", alt=description)


def stacked(pictures: Sequence[Image]) -> Image:
    """PNGs one below the other, as one."""
    pixels = [imread(io.BytesIO(one.data), format="png") for one in pictures]
    width = max(each.shape[1] for each in pixels)
    rows = [np.pad(each, ((0, 0), (0, width - each.shape[1]), (0, 0)), constant_values=1.0) for each in pixels]
    file = io.BytesIO()
    imsave(file, np.concatenate(rows), format="png", dpi=DPI)
    return Image(file.getvalue(), format="png", alt="\n".join(one.alt for one in pictures))
