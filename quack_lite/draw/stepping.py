"""A program on the Model, verb by verb."""

import html
import linecache
from typing import TYPE_CHECKING

import ipywidgets
from IPython.display import Image

from quack_lite import simt
from quack_lite.draw.accesses import access_map
from quack_lite.draw.exchanges import PEERS, SHUFFLES, WARP, exchange
from quack_lite.draw.explorer import Explorer, field
from quack_lite.draw.reductions import reduction_step
from quack_lite.draw.timelines import timeline, warps_of

if TYPE_CHECKING:
    from quack_lite.simt import Event, Run

CONTEXT = 6  # lines of the program above and below


def step_through(program, *args, grid: int, block: int, cluster: int = 1, order: int | None = None, warp: int = 0):
    """Runs a program on the Model; a slider goes through the verbs of its first cluster. Returns the widget.

    Shown are the program's lines round the verb, what the checks say about its line, and the verb's picture.
    program, args, grid, block, cluster, order: as of simt.run.  warp: whose requests and shuffles are drawn, and whose
    CTA; numbered through the cluster.  ValueError if that CTA does nothing.
    """
    run = simt.run(program, *args, grid=grid, block=block, cluster=cluster, order=order)
    rank = warp * WARP // block
    events = [event for event in run.events if event.cta == 0 and warps_of(event, rank).any()]
    if not events:
        raise ValueError(f"CTA {rank} of the first cluster does nothing that can be shown")
    slider = field(ipywidgets.IntSlider, "verb", 0, min=0, max=len(events) - 1)
    return Explorer(
        {"place": slider},
        lambda place: event_picture(run, events[place], warp, place),
        lambda place: source_html(events[place], [r.sentence for r in run.reports if r.line == events[place].line]),
    )


def event_picture(run: "Run", event: "Event", warp: int, place: int) -> Image:
    """An access map, a step of a reduction, or, for barriers and waits, the timeline up to there."""
    rank = warp * WARP // run.block
    asks = event.active[warp * WARP : (warp + 1) * WARP].any()
    if event.verb in SHUFFLES + PEERS and exchange(event, warp):
        return reduction_step(event, warp)
    if event.space in ("global", "shared") and asks:
        return access_map(event.request(warp))
    return timeline(run, rank, first=max(0, place - 20), marked=place)


def source_html(event: "Event", sentences: list[str]) -> str:
    """The lines around the event's, that one marked, and below them what is wrong with it."""
    number, source = event.line.number, linecache.getlines(event.line.file)
    rows = []
    for line in range(max(1, number - CONTEXT), min(number + CONTEXT, len(source)) + 1):
        text = html.escape(source[line - 1].rstrip("\n"))
        style = "background:#fff3bf;" if line == number else ""
        rows.append(f'<div style="{style}color:#202124">{line:4d}  {text or " "}</div>')
    wrong = "".join(f"<p>{html.escape(sentence)}</p>" for sentence in sentences)
    return f'<pre style="background:#fff;line-height:1.3;margin:0">{"".join(rows)}</pre>{wrong}'
