"""How a plan cuts a row among vectors, CTAs, warps and threads, with the parts that hold nothing.

The cut is that of quack_lite.copies: vector j of all threads of all CTAs lies before vector j + 1 of the first. What
does not fill a vector, before the first 16-byte boundary or behind the last, goes to the first threads, one each.
"""

from typing import NamedTuple

import numpy as np
from IPython.display import Image
from matplotlib.colors import to_rgb
from matplotlib.patches import Rectangle

from quack_lite import tiling
from quack_lite.counted import counted
from quack_lite.draw.cells import fill_cells, grid_lines, hatch_bar, hatch_runs
from quack_lite.draw.picture import BLUE, SKY, SMALL, caption, panels, picture
from quack_lite.simt.order import WARP
from quack_lite.tiling import RowPlan

COLOURS = SKY, BLUE  # of a CTA and the next
MOST_WARPS = 128  # of a row, for lines between them


class Cut(NamedTuple):
    """A row of n elements among `ctas` CTAs of `threads` threads, which hold `vectors` vectors each.

    held: threads, counted over all CTAs, that hold a vector, for each of the vectors: the first so many do.
    edges: elements outside the vectors.
    """

    n: int
    ctas: int
    threads: int
    held: list[int]
    edges: int

    def idle(self, group: int, vector: int) -> int:
        """Groups of so many threads in which nobody holds this vector."""
        return self.ctas * -(-self.threads // group) - -(-self.held[vector] // group)


def cut(n: int, row_plan: RowPlan, head: int = 0) -> Cut:
    """Cuts a row whose first 16-byte boundary comes after `head` elements. ValueError if the plan does not hold it."""
    if not 1 <= n <= row_plan.capacity:
        holds = f"this plan holds rows of 1 to {row_plan.capacity}: take plan_row(n, ...)"
        raise ValueError(f"a row has {counted(n, 'elements')}; {holds}")
    threads = row_plan.threads
    if row_plan.rows == 1 and row_plan.cluster == 1:  # a launch takes as many warps as its rows need
        threads = min(threads, -(-n // (row_plan.vector * row_plan.vectors * WARP)) * WARP)
    whole = (n - min(head, n)) // row_plan.vector
    step = threads * row_plan.cluster
    held = [min(max(whole - j * step, 0), step) for j in range(row_plan.vectors)]
    return Cut(n, row_plan.cluster, threads, held, n - whole * row_plan.vector)


def plan(n: int, row_plan: RowPlan | None = None, *, head: int = 0) -> Image:
    """Draws how a plan cuts a row of n elements; hatched: threads that hold nothing there.

    Above a line a vector, all CTAs side by side; below the CTA in which the row ends, a line a warp, a cell a lane.
    row_plan: softmax's for elements of 16 bits, if none is given.  head: elements before the row's first 16-byte
    boundary.  ValueError for a row that the plan does not hold.
    """
    if row_plan is None:
        row_plan = tiling.plan_row(n, tiling.plans(16, tiling.SOFTMAX))
    parts = cut(n, row_plan, head)
    last = last_vector(parts)
    warps = -(-parts.threads // WARP)
    lines = len(parts.held) + (parts.edges > 0)
    figure, (row, block) = panels([0.75 + 0.23 * lines, 0.7 + 0.15 * max(warps, 2)])
    draw_vectors(row, parts)
    draw_block(block, parts, last)
    caption(row, headline(parts, row_plan))
    return picture(figure, f"{headline(parts, row_plan)}; {summary(parts)}.".replace("\n", " "))


def last_vector(parts: Cut) -> int:
    """The last of the vectors that a thread holds; the first where none does."""
    return max([j for j, held in enumerate(parts.held) if held], default=0)


def headline(parts: Cut, row_plan: RowPlan) -> str:
    """Who shares the row."""
    room = row_plan.vector * len(parts.held) * parts.ctas * parts.threads
    vectors = counted(len(parts.held), "vectors")
    shape = f"{parts.ctas} x {counted(parts.threads, 'threads')} x {vectors} of {row_plan.vector}"
    return f"{counted(parts.n, 'elements')}, room for {room}:\n{shape}"


def summary(parts: Cut) -> str:
    """What holds nothing, in words."""
    vector = len(parts.held) - 1
    groups = {"threads": 1, "warps": min(WARP, parts.threads), "CTAs": parts.threads}
    idle = {what: parts.idle(group, vector) for what, group in groups.items()}
    nothing = ", ".join(counted(parts.idle(group, 0), what) for what, group in groups.items())
    there = f"{idle['CTAs']} of {counted(parts.ctas, 'CTAs')} and {counted(idle['warps'], 'warps')}"
    return f"vector {vector}: {there} hold nothing there; no vector at all: {nothing}"


def draw_vectors(plot, parts: Cut) -> None:
    """A line a vector: full from the left as far as the row goes; one more for the edges."""
    step = parts.ctas * parts.threads
    names = [f"vector {j}" for j in range(len(parts.held))] + ["edge"] * (parts.edges > 0)
    for line, held in enumerate([*parts.held, parts.edges][: len(names)]):
        for first in range(0, held, parts.threads):
            colour = COLOURS[first // parts.threads % 2]
            plot.add_patch(Rectangle((first, line - 0.42), min(parts.threads, held - first), 0.84, color=colour, lw=0))
        if held < step:
            hatch_bar(plot, held, line - 0.42, step - held, 0.84)
    if step <= MOST_WARPS * WARP:
        plot.vlines(np.arange(WARP, step, WARP), -0.42, len(names) - 0.58, color="white", linewidth=0.3)
    plot.vlines(np.arange(0, step + 1, parts.threads), -0.5, len(names) - 0.5, color="black", linewidth=0.8)
    plot.set(xlim=(0, step), ylim=(len(names) - 0.5, -0.5), yticks=range(len(names)))
    plot.set_yticklabels(names, fontsize=SMALL)
    plot.set_xticks((np.arange(parts.ctas) + 0.5) * parts.threads, [str(rank) for rank in range(parts.ctas)])
    plot.set_xlabel(f"CTA\n{summary(parts)}".replace("; ", "\n"), fontsize=SMALL)


def draw_block(plot, parts: Cut, vector: int) -> None:
    """The CTA in which this vector ends: a line a warp, a cell a lane."""
    rank = max(parts.held[vector] - 1, 0) // parts.threads
    inside = parts.held[vector] - rank * parts.threads
    lanes = min(WARP, parts.threads)
    full = (np.arange(parts.threads) < inside).reshape(-1, lanes)
    warps = len(full)
    fill_cells(plot, np.where(full[..., None], to_rgb(COLOURS[rank % 2]), 1.0))
    hatch_runs(plot, ~full)
    grid_lines(plot, warps, lanes)
    every = max(1, warps // 4)
    plot.set(xticks=range(0, lanes, 4), yticks=range(0, warps, every))
    plot.set_yticklabels([f"warp {warp}" for warp in range(0, warps, every)], fontsize=SMALL)
    plot.set_xlabel("lane", fontsize=SMALL)
    caption(plot, f"vector {vector} of CTA {rank}")
