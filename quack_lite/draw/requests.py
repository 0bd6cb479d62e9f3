"""What one request of a warp touches in global memory, from a layout."""

import numpy as np
from IPython.display import Image
from tensor_layouts import Layout, size
from tensor_layouts.analysis import segment_analysis

from quack_lite.counted import counted
from quack_lite.draw.picture import caption, picture
from quack_lite.draw.sectors import sector_figure
from quack_lite.draw.touched import touched
from quack_lite.simt.order import WARP


def warp_request(layout: Layout, element_bytes: int) -> Image:
    """Draws the sectors that one load of a warp touches: a line a sector, with its colour; the lanes' numbers in it.

    layout: (lane) or (lane, value) -> element.  element_bytes: the size of an element.
    """
    counts = segment_analysis(layout, element_bytes=element_bytes)
    figure, plot = sector_figure(*byte_owners(layout, element_bytes))
    sectors = counted(counts["segments"], "sectors")
    used = f"{counted(counts['unique_bytes'], 'bytes')} asked for, {counts['transferred_bytes']} moved"
    caption(plot, f"{sectors}: {used}")
    return picture(figure, f"One request of a warp: {sectors}, {used}.")


def byte_owners(layout: Layout, element_bytes: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """touched() for the lanes of a layout."""
    elements = np.array([layout(i) for i in range(size(layout))])  # the lane counts fastest
    return touched(np.arange(len(elements)) % WARP, elements * element_bytes, element_bytes)
