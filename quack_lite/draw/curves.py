"""Measured speed as a curve."""

from collections.abc import Mapping, Sequence

from IPython.display import Image
from matplotlib.ticker import ScalarFormatter

from quack_lite.draw.picture import BLUE, GREY, NORMAL, RED, SMALL, WIDTH, axes, picture


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


def size_curve(points: Sequence[tuple[int, float]], ceiling: float, cache: int) -> Image:
    """GB/s of reading an array over and over, against its size, with the memory's ceiling and the size of the cache.

    points: (bytes, GB/s).  ceiling: GB/s.  cache: bytes.
    """
    sizes, speeds = zip(*points, strict=True)
    figure, plot = axes(WIDTH, 3.4)
    plot.plot(sizes, speeds, "o-", color=BLUE, markersize=5, label="measured")
    plot.axhline(ceiling, color=RED, label=f"read ceiling, {ceiling:.0f}")
    plot.axvline(cache, color=GREY, linestyle="--", label=f"size of the L2, {megabytes(cache)}")
    plot.set_xscale("log", base=2)
    ticks = [size for size in (4**power for power in range(10, 20)) if min(sizes) <= size <= max(sizes)]
    plot.set_xticks(ticks, [megabytes(size) for size in ticks], fontsize=SMALL)
    plot.minorticks_off()
    plot.set_ylim(0, 1.1 * max(*speeds, ceiling))
    plot.set_xlabel("size of the array", fontsize=NORMAL)
    plot.set_ylabel("GB/s", fontsize=NORMAL)
    plot.legend(frameon=False, fontsize=SMALL, loc="lower left")
    ends = ", ".join(f"{megabytes(size)}: {speed:.0f} GB/s" for size, speed in (points[0], points[-1]))
    return picture(figure, f"GB/s of reading an array over and over, against its size; {ends}.")


def megabytes(size: int) -> str:
    """As "64 MB" or "4 GB", in powers of 1024."""
    return f"{size / 2**20:.3g} MB" if size < 2**30 else f"{size / 2**30:.3g} GB"
