"""An exchange of values on the Model: by shuffle, through shared memory, between the CTAs of a cluster."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.patches import Rectangle

from quack_lite.draw.cells import LEAST, print_size
from quack_lite.draw.picture import BLUE, GREEN, GREY, LIGHT, SKY, SMALL, YELLOW
from quack_lite.simt.order import WARP

if TYPE_CHECKING:
    from quack_lite.simt import Event

SHUFFLES = ("shfl.sync.bfly", "shfl.sync.down", "shfl.sync.idx")
TO_MEMORY, FROM_MEMORY = ("st.shared", "st.async"), ("ld.shared", "ld.shared::cluster")
PEERS = ("st.async", "ld.shared::cluster")
COLOURS = {"lane": SKY, "slot": YELLOW, "got": GREEN}


class Row(NamedTuple):
    """Values side by side. kind: of a "lane", a "slot" of shared memory, or what a lane "got" from another.

    names: of what each value belongs to; both as printed.
    """

    kind: str
    names: list[str]
    values: list[str]


class Exchange(NamedTuple):
    """Where values come from and where they go. arrows: (place in `above`, place in `below`)."""

    above: Row
    below: Row
    arrows: list[tuple[int, int]]


def exchange(event: "Event", warp: int) -> Exchange | None:
    """What an event exchanges, as seen by a warp (numbered through the cluster) and its CTA; None: nothing there.

    A shuffle and a load: the warp's lanes. A store to shared memory: those lanes of the CTA that store, if at most 32
    do, else the warp's. st.async: what arrives in the CTA.
    """
    if event.verb in SHUFFLES:
        return shuffled(event, np.arange(warp * WARP, (warp + 1) * WARP))
    if event.verb not in TO_MEMORY + FROM_MEMORY:
        return None
    rank, lanes = warp * WARP // event.threads, np.arange(len(event.active))
    concerned = event.active & ((event.source == rank) if event.verb == "st.async" else lanes // event.threads == rank)
    if event.verb in FROM_MEMORY or concerned.sum() > WARP:
        concerned &= lanes // WARP == warp
    return through_memory(event, np.flatnonzero(concerned)) if concerned.any() else None


def shuffled(event: "Event", lanes: np.ndarray) -> Exchange | None:
    """Lanes give to lanes of their warp."""
    if not event.active[lanes].any():
        return None
    names = [str(lane % WARP) for lane in lanes]
    taking = lanes[event.active[lanes] & (event.source[lanes] >= 0)]
    arrows = [(int(event.source[lane]) % WARP, int(lane) % WARP) for lane in taking]
    given, got = (texts(values[lanes], event.active[lanes]) for values in (event.before, event.values))
    return Exchange(Row("lane", names, given), Row("got", names, got), arrows)


def through_memory(event: "Event", lanes: np.ndarray) -> Exchange:
    """Lanes store to, or load from, slots of shared memory; a vector is shown by its first element."""
    values = event.values[lanes] if event.values.ndim == 1 else event.values[lanes, 0]
    places = event.address[lanes] // event.itemsize
    if event.verb == "ld.shared::cluster":  # the same slot of each CTA is another slot
        places = places + event.source[lanes] * (places.max() + 1)
    slots, which = np.unique(places, return_inverse=True)
    shown = texts(values, np.ones(len(lanes), dtype=bool))
    held = {int(slot): text for slot, text in zip(which, shown, strict=True)}
    holders = Row("lane", names_of(event, lanes), shown)
    memory = Row("slot", slot_names(event, lanes, which, len(slots)), [held[slot] for slot in range(len(slots))])
    pairs = list(enumerate(which.tolist()))
    if event.verb in TO_MEMORY:
        return Exchange(holders, memory, pairs)
    return Exchange(memory, holders, [(slot, lane) for lane, slot in pairs])


def names_of(event: "Event", lanes: np.ndarray) -> list[str]:
    """Threads of one CTA by their number there; of several, by CTA and number."""
    if event.verb == "st.async":
        return [f"{lane // event.threads}:{lane % event.threads}" for lane in lanes]
    return [str(lane % event.threads) for lane in lanes]


def slot_names(event: "Event", lanes: np.ndarray, which: np.ndarray, count: int) -> list[str]:
    """Elements of the array, of a peer with the CTA in front."""
    names = [""] * count
    first = event.address[event.active].min() // event.itemsize
    for lane, slot in zip(lanes, which, strict=True):
        element = str(event.address[lane] // event.itemsize - first)
        names[slot] = f"{event.source[lane]}:{element}" if event.verb == "ld.shared::cluster" else element
    return names


def texts(values: np.ndarray, shown: np.ndarray) -> list[str]:
    """Three digits each; nothing for lanes that take no part."""
    return [f"{value:.3g}" if there else "" for value, there in zip(values, shown, strict=True)]


UNIT = 0.3  # inches, of heights
GAP = 1.3  # units, for arrows


def draw_row(plot, row: Row, top: float, named: bool) -> float:
    """Cells over the whole width: their names above, values inside, upright where they do not fit. Returns the foot."""
    count = len(row.names)
    width = WARP / count
    longest = max(1, *(len(text) for text in row.values))
    size = print_size(plot, count, longest)
    height = 1.0 if size else max(1.0, 0.2 + 0.62 * SMALL * longest / (72 * UNIT))
    for place, (name, value) in enumerate(zip(row.names, row.values, strict=True)):
        colour = COLOURS[row.kind] if value else LIGHT
        plot.add_patch(Rectangle((place * width, top), width, height, facecolor=colour, edgecolor="white"))
        middle = (place + 0.5) * width
        fits = {"fontsize": size} if size else {"fontsize": SMALL, "rotation": 90}
        plot.text(middle, top + height / 2, value, ha="center", va="center", **fits)
        if named and print_size(plot, count, len(name)):
            plot.text(middle, top - 0.18, name, ha="center", va="center", fontsize=LEAST, color=GREY)
    return top + height


def draw_arrows(plot, given: Exchange, top: float, bottom: float) -> None:
    """From above to below; the arrows into the first place below are heavier."""
    widths = [WARP / len(row.names) for row in (given.above, given.below)]
    lines = [[((start + 0.5) * widths[0], top), ((end + 0.5) * widths[1], bottom)] for start, end in given.arrows]
    heavy = [end == given.arrows[0][1] for _, end in given.arrows]
    styles = {"colors": [BLUE if one else GREY for one in heavy], "linewidths": [1.8 if one else 0.7 for one in heavy]}
    plot.add_collection(LineCollection(lines, **styles), autolim=False)
    plot.plot([end[0] for _, end in lines], [bottom] * len(lines), "v", color=GREY, markersize=3)
