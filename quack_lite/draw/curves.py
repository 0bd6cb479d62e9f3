"""Measured speed as a curve."""

from collections.abc import Mapping, Sequence

from IPython.display import Image
from matplotlib.ticker import ScalarFormatter

from quack_lite.draw.picture import GREY, RED, axes, picture


def speed_curve(points: Mapping[str, Sequence[tuple[float, float]]], ceiling: float, latency: float, sms: int) -> Image:
    """GB/s of copies against the bytes that one SM has in flight, with the ceiling and Little's bound.

    points: {name: [(bytes in flight on an SM, GB/s)]}.  ceiling: GB/s of a copy.  latency: ns of one access.
    """
    figure, plot = axes(7.0, 4.2)
    for (name, pairs), marker in zip(points.items(), "osD^vP*X", strict=False):
        plot.plot(*zip(*pairs, strict=True), marker, markersize=7, alpha=0.75, label=name)
    plot.axhline(ceiling, color=RED, label="copy ceiling")
    ends = [min(size for pairs in points.values() for size, _ in pairs), ceiling / 2 * latency / sms]
    plot.plot(ends, [2 * size * sms / latency for size in ends], "--", color=GREY, label="Little's bound")
    plot.set_xscale("log", base=2)
    plot.set_yscale("log", base=2)
    plot.yaxis.set_major_formatter(ScalarFormatter())
    plot.set(xlabel="bytes in flight on one SM", ylabel="GB/s")
    plot.legend(frameon=False, fontsize=9)
    return picture(figure, "GB/s of copies against the bytes that an SM has in flight, with the ceiling and a bound.")
