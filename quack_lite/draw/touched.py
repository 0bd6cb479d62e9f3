"""Who touches what in a piece of memory."""

import numpy as np

from quack_lite.draw.cells import NOBODY

COLUMNS = 32  # bytes of a sector; banks of shared memory


def touched(lanes: np.ndarray, addresses: np.ndarray, width: int, cell: int = 1) -> tuple[np.ndarray, ...]:
    """(row ids, first, last): the first and the last of the lanes that touch each cell, (rows, 32); NOBODY: none does.

    lanes (k,) ask for `width` bytes at addresses (k,).  cell: bytes of a cell.  A row is 32 cells, its id the address
    of its first byte over its size; rows that nobody touches are left out.
    """
    asked = (addresses[:, None] + np.arange(0, width, min(cell, width))) // cell
    ids = np.unique(asked // COLUMNS)
    place = np.searchsorted(ids, asked // COLUMNS), asked % COLUMNS
    first = np.full((len(ids), COLUMNS), np.iinfo(np.int64).max)
    last = np.full((len(ids), COLUMNS), NOBODY)
    np.minimum.at(first, place, np.broadcast_to(lanes[:, None], asked.shape))
    np.maximum.at(last, place, np.broadcast_to(lanes[:, None], asked.shape))
    return ids, np.where(last == NOBODY, NOBODY, first), last
