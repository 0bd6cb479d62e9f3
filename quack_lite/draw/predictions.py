"""A reader's guesses beside what was measured."""

from collections.abc import Mapping
from typing import Any

from IPython.display import Image
from matplotlib.ticker import FuncFormatter, NullFormatter, NullLocator

from quack_lite.draw.picture import BLUE, GREY, LIGHT, NORMAL, SMALL, WIDTH, YELLOW, axes, picture

LEAST_SPAN = 4  # times too low or too high that the axis shows at least
FACTORS = (1 / 100, 1 / 10, 1 / 4, 1 / 2, 1, 2, 4, 10, 100)


def guesses(given: Mapping[str, Mapping[str, Any]]) -> Image:
    """A line a guess: how many times the measured value it was, on a logarithmic axis; a band for factors up to two.

    given: {title: {"guess": number, "unit": "GB/s", "measured": number}}, as work/progress.json keeps them; titles
    without a measured value are counted below. Where one of the two is not positive, the line has words and no mark.
    ValueError if no title has a measured value.
    """
    known = {title: entry for title, entry in given.items() if "measured" in entry}
    if not known:
        raise ValueError("no guess has been measured yet: give predict a number, then run the cell that measures")
    ratios = {title: entry["guess"] / entry["measured"] for title, entry in known.items() if has_ratio(entry)}
    figure, plot = axes(WIDTH, 1.1 + 0.42 * len(known))
    plot.axvspan(0.5, 2, color=LIGHT, alpha=0.5, lw=0)
    plot.axvline(1, color=BLUE)
    for line, (title, entry) in enumerate(known.items()):
        if title in ratios:
            plot.plot([1, ratios[title]], [line, line], color=GREY, linewidth=1)
            plot.plot(ratios[title], line, "D", color=YELLOW, markeredgecolor="black", markersize=8)
        write_line(plot, line - 0.35, sentence(title, entry))
    scale_axes(plot, list(ratios.values()), len(known))
    waiting = len(given) - len(known)
    note = f"; {waiting} more wait for their measurement" if waiting else ""
    plot.set_xlabel(f"guess / measured{note}", fontsize=NORMAL)
    return picture(figure, ". ".join(sentence(title, entry) for title, entry in known.items()) + ".")


def has_ratio(entry: Mapping[str, Any]) -> bool:
    """Whether a logarithmic axis has a place for guess / measured."""
    return entry["guess"] > 0 and entry["measured"] > 0


def sentence(title: str, entry: Mapping[str, Any]) -> str:
    """One guess in words."""
    return f"{title}: guessed {entry['guess']:g}, measured {entry['measured']:.4g} {entry['unit']}"


def write_line(plot, height: float, text: str) -> None:
    """A text in the middle, which lines behind it do not cross."""
    ground = {"facecolor": "white", "edgecolor": "none", "pad": 0.5}
    middle = {"ha": "center", "va": "center", "transform": plot.get_yaxis_transform()}
    plot.text(0.5, height, text, fontsize=SMALL, bbox=ground, **middle)


def scale_axes(plot, ratios: list[float], lines: int) -> None:
    """A logarithmic axis with the right guess in its middle."""
    span = 1.3 * max([LEAST_SPAN, *ratios, *(1 / ratio for ratio in ratios)])
    plot.set(xscale="log", xlim=(1 / span, span), ylim=(lines - 0.5, -0.7), yticks=[])
    plot.spines["left"].set_visible(False)
    plot.set_xticks([factor for factor in FACTORS if 1 / span < factor < span])
    plot.xaxis.set_major_formatter(
        FuncFormatter(lambda factor, _: f"{factor:g}" if factor >= 1 else f"1/{1 / factor:g}")
    )
    plot.xaxis.set_minor_locator(NullLocator())
    plot.xaxis.set_minor_formatter(NullFormatter())
    plot.tick_params(labelsize=SMALL)
