"""The timeline of a block on the Model: what each warp does in which order, and who waits for whom."""

from typing import TYPE_CHECKING

import numpy as np
from IPython.display import Image

from quack_lite.draw.picture import (
    BLUE,
    CYCLE,
    GREEN,
    GREY,
    LIGHT,
    NORMAL,
    PURPLE,
    RED,
    SKY,
    SMALL,
    YELLOW,
    panels,
    picture,
)
from quack_lite.simt.order import WARP

if TYPE_CHECKING:
    from quack_lite.simt import Event, Run

MOST = 40  # verbs in a picture
MEETINGS = ("bar.sync", "barrier.cluster.arrive", "barrier.cluster.wait")
MARKS = (
    (("ld.global",), BLUE, "s", "load"),
    (("st.global",), GREEN, "D", "store"),
    (("ld.shared", "st.shared", "ld.shared::cluster"), YELLOW, "o", "shared"),
    (("shfl.sync.bfly", "shfl.sync.down", "shfl.sync.idx"), PURPLE, "X", "shuffle"),
    (("cp.async", "cp.async.bulk", "st.async"), SKY, ">", "asynchronous"),
    (("cp.async.wait_group", "mbarrier.try_wait"), RED, "h", "wait"),
)
OTHER = (GREY, ".", "other")


def timeline(run: "Run", rank: int = 0, first: int = 0, marked: int | None = None) -> Image:
    """Draws a CTA's verbs from left to right, a line a warp; the order is the program's, distances are not time.

    Red bars: the warps that meet at a barrier, a cross: one that does not come.  Arrows: from a start to its wait.
    run: what simt.run gave; its first cluster is drawn.  rank: of the CTA there.  first: the first verb drawn, 40 at
    most are.  marked: a verb on yellow ground.  ValueError if the CTA has none from there on.
    """
    events = [event for event in run.events if event.cta == 0 and warps_of(event, rank).any()]
    shown = events[first : first + MOST]
    if not shown:
        raise ValueError(f"CTA {rank} of the first cluster has {len(events)} verbs; first is {first}")
    warps = len(warps_of(shown[0], rank))
    names = [f"{event.line.number} {event.verb}" for event in shown]
    figure, [plot] = panels([1.4 + 0.075 * max(len(name) for name in names) + 0.24 * min(warps, 16)])
    used = draw_marks(plot, shown, rank)
    draw_waits(plot, waits(shown))
    if marked is not None:
        plot.axvspan(marked - first - 0.5, marked - first + 0.5, color=CYCLE[-1], alpha=0.5, lw=0, zorder=0)
    plot.set(xlim=(-0.7, len(shown) - 0.3), ylim=(warps - 0.4, -1.6))
    plot.set_xticks(range(len(shown)), names, rotation=90)
    every = -(-warps // 8)
    plot.set_yticks(range(0, warps, every), [f"warp {warp}" for warp in range(0, warps, every)])
    if used:
        plot.legend(ncols=min(len(used), 5), frameon=False, fontsize=SMALL, loc="lower left", bbox_to_anchor=(0, 1))
    part = f", verbs {first} to {first + len(shown) - 1} of {len(events)}" if len(shown) < len(events) else ""
    figure.suptitle(
        f"CTA {rank}{part}: line of the program, and verb; red: barriers and waits", fontsize=NORMAL, x=0.01, ha="left"
    )
    return picture(figure, describe(shown, rank))


def warps_of(event: "Event", rank: int) -> np.ndarray:
    """(warps of the CTA) whether each takes part."""
    lanes = event.active[rank * event.threads : (rank + 1) * event.threads]
    return lanes.reshape(-1, WARP).any(axis=1)


def draw_marks(plot, events: list["Event"], rank: int) -> list[str]:
    """A mark a warp and verb; barriers as bars. Returns the names in the legend."""
    used = []
    for x, event in enumerate(events):
        active = np.flatnonzero(warps_of(event, rank))
        if event.verb in MEETINGS:
            draw_meeting(plot, x, warps_of(event, rank))
            continue
        colour, marker, name = next((rest for verbs, *rest in MARKS if event.verb in verbs), OTHER)
        label = None if name in used else name
        used += [name] * (label is not None)
        edge = {"markersize": 5, "markeredgecolor": "black", "markeredgewidth": 0.4}
        plot.plot(np.full(len(active), x), active, marker, color=colour, label=label, **edge)
    for warp in range(len(warps_of(events[0], rank))):
        plot.axhline(warp, color=LIGHT, linewidth=0.6, zorder=0)
    return used


def draw_meeting(plot, x: int, there: np.ndarray) -> None:
    """A bar over the warps that come, a cross for each that does not."""
    plot.vlines([x] * there.sum(), np.flatnonzero(there) - 0.52, np.flatnonzero(there) + 0.52, color=RED, linewidth=4)
    plot.plot([x] * (~there).sum(), np.flatnonzero(~there), "x", color=RED, markersize=8, markeredgewidth=2)


def waits(events: list["Event"]) -> list[tuple[int, int]]:
    """(started, waited for) as places among the events: which verbs each wait completes."""
    found, groups, fresh = [], [], []
    counted: dict[int, list[int]] = {}
    arrived = 0
    for x, event in enumerate(events):
        match event.verb:
            case "cp.async":
                fresh.append(x)
            case "cp.async.commit_group":
                groups, fresh = [*groups, fresh], []
            case "cp.async.wait_group":
                kept = groups[max(0, len(groups) - event.size) :]
                found += [(start, x) for group in groups[: len(groups) - len(kept)] for start in group]
                groups = kept
            case "cp.async.bulk" | "st.async":
                counted.setdefault(event.mbarrier, []).append(x)
            case "mbarrier.try_wait":
                found += [(start, x) for start in counted.pop(event.mbarrier, [])]
            case "barrier.cluster.arrive":
                arrived = x
            case "barrier.cluster.wait":
                found.append((arrived, x))
    return found


def draw_waits(plot, pairs: list[tuple[int, int]]) -> None:
    """Arcs above the warps."""
    for start, end in pairs:
        bend = "arc3,rad=-0.25"
        style = {"arrowstyle": "-|>", "color": RED, "connectionstyle": bend, "linewidth": 1.2}
        plot.annotate("", (end, -0.5), (start, -0.5), arrowprops=style)


def describe(events: list["Event"], rank: int) -> str:
    """The timeline in words."""
    verbs = ", ".join(f"{event.verb} ({event.line.number})" for event in events)
    numbers = [(events[start].line.number, events[end].line.number) for start, end in waits(events)]
    ends = "; ".join(f"line {end} waits for line {start}" for start, end in numbers)
    return f"CTA {rank}, verbs with their lines in order: {verbs}." + (f" {ends}." if ends else "")
