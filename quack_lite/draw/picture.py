"""From a matplotlib figure to a picture that a notebook shows and keeps."""

import io

from IPython.display import Image
from matplotlib.figure import Figure

BLUE, RED, YELLOW, GREY = "#4878a8", "#b04030", "#d0a020", "#808080"


def axes(width: float, height: float):
    """(figure, axes) of so many inches, without a frame on top and right."""
    figure = Figure(figsize=(width, height), layout="constrained")
    plot = figure.subplots()
    plot.spines[["top", "right"]].set_visible(False)
    return figure, plot


def picture(figure: Figure, description: str) -> Image:
    """A PNG of the figure; `description` is what a reader who cannot see it gets."""
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=110)
    return Image(file.getvalue(), format="png", alt=description)
