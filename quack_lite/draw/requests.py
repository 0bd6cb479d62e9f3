"""What one request of a warp touches in global memory.

Source: a GPU moves global memory in sectors of 32 bytes (CUDA C++ Programming Guide, "Device Memory Accesses").
"""

import numpy as np
from IPython.display import Image
from tensor_layouts import Layout, size
from tensor_layouts.analysis import segment_analysis

from quack_lite.draw.picture import axes, picture

SECTOR = 32
LANES = 32


def warp_request(layout: Layout, element_bytes: int) -> Image:
    """Draws the sectors that one load of a warp touches: a line a sector, a colour and a number a lane.

    layout: (lane) or (lane, value) -> element.  element_bytes: the size of an element.
    """
    owner = byte_owners(layout, element_bytes)
    counts = segment_analysis(layout, element_bytes=element_bytes)
    figure, plot = axes(7.0, 0.8 + 0.19 * len(owner))
    plot.imshow(np.ma.masked_less(owner, 0), cmap="turbo", vmin=0, vmax=LANES - 1, aspect="auto", alpha=0.55)
    for sector, line in enumerate(owner):
        for lane in np.unique(line[line >= 0]):
            plot.text(np.flatnonzero(line == lane).mean(), sector, str(lane), ha="center", va="center", fontsize=7)
    plot.set(xlabel="byte of the sector", ylabel="sector", yticks=range(len(owner)))
    used = f"{counts['unique_bytes']} bytes asked for, {counts['transferred_bytes']} moved"
    plot.set_title(f"{counts['segments']} sectors: {used}", fontsize=9)
    return picture(figure, f"One request of a warp: {counts['segments']} sectors, {used}.")


def byte_owners(layout: Layout, element_bytes: int) -> np.ndarray:
    """(sectors, 32): the lane that asked for each byte, -1 where none did."""
    elements = np.array([layout(i) for i in range(size(layout))]).reshape(-1, LANES).T  # (lane, value)
    owner = np.full(-(-(elements.max() + 1) * element_bytes // SECTOR) * SECTOR, -1)
    for lane, held in enumerate(elements):
        for byte in range(element_bytes):
            owner[held * element_bytes + byte] = lane
    return owner.reshape(-1, SECTOR)
