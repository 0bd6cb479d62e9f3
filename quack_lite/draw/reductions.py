"""The steps of a reduction on the Model, with the values that are exchanged."""

from typing import TYPE_CHECKING

from IPython.display import Image

from quack_lite.draw.exchanges import GAP, SHUFFLES, UNIT, Exchange, draw_arrows, draw_row, exchange
from quack_lite.draw.picture import GREY, RED, SMALL, caption, panels, picture
from quack_lite.simt.order import WARP

if TYPE_CHECKING:
    from quack_lite.simt import Event, Run

BARRIERS = ("bar.warp.sync", "bar.sync", "barrier.cluster.wait", "mbarrier.try_wait")
MOST = 24  # steps
PLACES = {"lane": "lane", "slot": "slot", "got": "lane"}


def reduction(run: "Run", warp: int = 0, steps: int | None = None) -> Image:
    """Draws who gives what to whom: shuffles of a warp, then what its CTA stores and loads, then what peers send.

    run: what simt.run gave; its first cluster is drawn.  warp: numbered through the cluster.  steps: so many exchanges
    from the first on, at most 24, which is the default.  ValueError if the warp exchanges nothing.
    """
    found = exchanges_of(run, warp)
    if not found:
        raise ValueError(f"warp {warp} exchanges nothing: the program has no shuffle and no shared memory that it uses")
    shown = found[: MOST if steps is None else min(steps, MOST)]
    more = f" ({len(shown)} of {len(found)} steps)" if len(shown) < len(found) else ""
    return draw_exchanges(shown, f"exchanges of warp {warp} and its CTA{more}", warp)


def draw_exchanges(steps: list[tuple["Event", Exchange | None]], title: str, warp: int) -> Image:
    """One below the other."""
    figure, [plot] = panels([1.0])
    bottom = draw_steps(plot, steps)
    figure.set_figheight(UNIT * (bottom + 0.5) + 0.55)
    plot.set(xlim=(0, WARP), ylim=(bottom, -0.5), xticks=[], yticks=[])
    caption(plot, f"{title}\nblue: lanes, orange: shared memory, green: from a shuffle")
    return picture(figure, describe(steps, warp))


def reduction_step(event: "Event", warp: int) -> Image:
    """Draws one exchange. ValueError if the warp takes no part in it."""
    given = exchange(event, warp)
    if given is None:
        raise ValueError(f"warp {warp} exchanges nothing in line {event.line.number}")
    return draw_exchanges([(event, given)], f"{event.verb}, warp {warp}", warp)


def exchanges_of(run: "Run", warp: int) -> list[tuple["Event", Exchange | None]]:
    """The exchanges of the first cluster that this warp sees, and the barriers between them, which have none."""
    first = [event for event in run.events if event.cta == 0]
    pairs = [(event, exchange(event, warp)) for event in first]
    kept = [pair for pair in pairs if pair[1] or pair[0].verb in BARRIERS]
    while kept and kept[-1][1] is None:
        kept.pop()
    return kept


def draw_steps(plot, steps: list[tuple["Event", Exchange | None]]) -> float:
    """Draws downwards; what a shuffle gave is not drawn where the same lanes shuffle again. Returns the lower end."""
    top, names = 0.0, None
    for place, (event, given) in enumerate(steps):
        name = f"{event.verb}, line {event.line.number}"
        if given is None:
            plot.hlines(top, 0, WARP, color=RED, linewidth=3)
            write_name(plot, name, top + 0.55)
            top, names = top + 1.5, None
            continue
        top = draw_row(plot, given.above, top, named=given.above.names != names) + GAP
        draw_arrows(plot, given, top - GAP, top - (0.1 if given.below.names == given.above.names else 0.4))
        write_name(plot, name, top - 0.6 * GAP)
        names = given.above.names
        if not goes_on(steps, place):
            top, names = draw_row(plot, given.below, top, named=given.below.names != names) + 0.6, None
    return top


def goes_on(steps: list[tuple["Event", Exchange | None]], place: int) -> bool:
    """Whether a shuffle is followed by a shuffle."""
    return place + 1 < len(steps) and all(event.verb in SHUFFLES for event, _ in steps[place : place + 2])


def write_name(plot, name: str, height: float) -> None:
    """A verb and its line, on white."""
    ground = {"facecolor": "white", "edgecolor": GREY, "linewidth": 0.5, "pad": 1.5}
    plot.text(WARP / 2, height, name, ha="center", va="center", fontsize=SMALL, bbox=ground)


def describe(steps: list[tuple["Event", Exchange | None]], warp: int) -> str:
    """The steps in words: how each comes about, and the first value that arrives."""
    words = []
    for event, given in steps:
        end = f": {PLACES[given.below.kind]} {given.below.names[0]} gets {given.below.values[0]}" if given else ""
        words.append(f"line {event.line.number} {event.verb}{end}")
    return f"Exchanges of warp {warp} and its CTA, step by step: {'; '.join(words)}."
