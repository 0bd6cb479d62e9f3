"""Measured speeds side by side."""

from collections.abc import Mapping

from IPython.display import Image

from quack_lite.draw.picture import BLUE, RED, YELLOW, axes, picture


def speed_bars(reached: Mapping[str, float], ceiling: str, limit: float, guesses: Mapping[str, float]) -> Image:
    """A bar a name with its GB/s, the ceiling of that name as a line at `limit` GB/s, the reader's guesses as marks.

    reached: {name: GB/s}.  guesses: {name: GB/s} of the bars that have one.
    """
    names = list(reached)
    figure, plot = axes(6.4, 0.9 + 0.45 * len(names))
    bars = plot.barh(names, list(reached.values()), color=BLUE, height=0.6)
    plot.bar_label(bars, [f"{gbps:.0f}" for gbps in reached.values()], label_type="center", color="white")
    plot.axvline(limit, color=RED, label=f"{ceiling} ceiling, {limit:.0f}")
    if guesses:
        rows = [names.index(name) for name in guesses]
        plot.plot(list(guesses.values()), rows, "D", color=YELLOW, markeredgecolor="black", label="your guess")
    plot.invert_yaxis()
    plot.set(xlabel="GB/s", xlim=(0, 1.15 * max(limit, *reached.values(), *guesses.values())))
    plot.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, frameon=False)
    return picture(figure, f"bars of GB/s with the {ceiling} ceiling as a line")
