"""A roofline: what the memory and the arithmetic units allow, and where kernels lie under it.

The model is that of Williams, Waterman and Patterson, "Roofline: an insightful visual performance model" (2009).
"""

from collections.abc import Mapping

import numpy as np
from IPython.display import Image

from quack_lite.counted import counted
from quack_lite.draw.picture import BLUE, CYCLE, GREY, NORMAL, RED, SMALL, WIDTH, axes, caption, picture

STYLES = ((RED, "-"), (GREY, "--"), (GREY, ":"))
MARKS = tuple(zip("osD^vP*X", (*CYCLE, BLUE, "white"), strict=True))


def roofline(kernels: Mapping[str, tuple[float, float, float]], ceilings: Mapping[str, float], peak: float) -> Image:
    """Operations a second against operations a byte, both axes logarithmic.

    kernels: {name: (operations, useful bytes, seconds)} of a call, at most eight.  ceilings: {name: GB/s} of memory, at
    most three, the slanted lines.  peak: operations a second of the arithmetic units, the flat line.
    ValueError for a number that is not positive, for too many, or without a kernel or a ceiling.
    """
    check(kernels, ceilings, peak)
    figure, plot = axes(WIDTH, 4.0)
    ridge = peak / (max(ceilings.values()) * 1e9)
    intensities = [operations / moved for operations, moved, _ in kernels.values()]
    span = np.geomspace(min(*intensities, ridge) / 3, max(*intensities, ridge) * 3, 200)
    for (name, gbps), (colour, style) in zip(ceilings.items(), STYLES, strict=False):
        plot.plot(span, np.minimum(span * gbps * 1e9, peak), style, color=colour, label=f"{name}, {gbps:.0f} GB/s")
    for (name, work), (marker, colour) in zip(kernels.items(), MARKS, strict=False):
        label = f"{name}: {share(work, ceilings, peak):.0%}"
        style = {"color": colour, "markeredgecolor": "black", "markersize": 8, "label": label}
        plot.plot(work[0] / work[1], work[0] / work[2], marker, **style)
    plot.set(xscale="log", yscale="log")
    plot.set_xlabel("operations a byte", fontsize=NORMAL)
    plot.set_ylabel("operations a second", fontsize=NORMAL)
    plot.tick_params(labelsize=SMALL)
    plot.legend(frameon=False, fontsize=SMALL, loc="lower right")
    caption(plot, "share of what the fastest ceiling allows")
    return picture(figure, describe(kernels, ceilings, peak))


def check(kernels: Mapping, ceilings: Mapping, peak: float) -> None:
    """ValueError, in a sentence, for what cannot be drawn."""
    if not 1 <= len(kernels) <= len(MARKS) or not 1 <= len(ceilings) <= len(STYLES):
        given = f"{counted(len(kernels), 'kernels')} and {counted(len(ceilings), 'ceilings')}"
        most = f"1 to {len(MARKS)} kernels and 1 to {len(STYLES)} ceilings"
        raise ValueError(f"{given} were given; draw {most}")
    for name, numbers in {**kernels, **{name: (gbps,) for name, gbps in ceilings.items()}, "peak": (peak,)}.items():
        if not all(number > 0 for number in numbers):
            raise ValueError(f"{name}: {numbers} was given; a logarithmic axis shows positive numbers only")


def share(work: tuple[float, float, float], ceilings: Mapping[str, float], peak: float) -> float:
    """The kernel's speed over the roof above it."""
    operations, moved, seconds = work
    return operations / seconds / min(operations / moved * max(ceilings.values()) * 1e9, peak)


def describe(kernels: Mapping, ceilings: Mapping[str, float], peak: float) -> str:
    """The picture in words."""
    limits = ", ".join(f"{name} {gbps:.0f} GB/s" for name, gbps in ceilings.items())
    points = ", ".join(f"{name} at {share(work, ceilings, peak):.0%} of its roof" for name, work in kernels.items())
    return f"Roofline with ceilings {limits} and a peak of {peak:.3g} operations a second: {points}."
