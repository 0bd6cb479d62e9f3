"""Layouts and TV layouts as pictures: where an element lies, which thread holds it, its sector or bank.

The algebra is tensor_layouts'. Sectors of 32 bytes: CUDA C++ Programming Guide, "Device Memory Accesses"; 32 banks of
4 bytes: the same, "Shared Memory".
"""

import numpy as np
from IPython.display import Image
from matplotlib import colormaps
from tensor_layouts import Layout, mode, rank, size

from quack_lite.counted import counted
from quack_lite.draw.cells import NOBODY, fill_cells, grid_lines, print_size, shades, write_cells, write_runs
from quack_lite.draw.picture import RED, SMALL, WIDTH, caption, panels, picture
from quack_lite.simt.traffic import BANKS, SECTOR, WORD

MOST_ROWS, MOST_COLUMNS = 64, 128


def layout(given: Layout, element_bytes: int, *, parts: str = "sectors") -> Image:
    """Draws a layout, (column) or (row, column) -> element, with its sectors or with its banks.

    parts: "sectors", each cell has its element's offset and the sector's colour, with lines where the sector changes
    from one column to the next; or "banks", each cell has its bank's number and colour.  element_bytes: the size of an
    element.  ValueError for other parts, and for what is too large to read.
    """
    if parts not in PARTS:
        raise ValueError(f'parts is {parts!r}; it is "sectors" or "banks"')
    offsets = offsets_of(given)
    figure, plot = grid_figure(offsets.shape)
    found = counted(PARTS[parts](plot, offsets, element_bytes), parts)
    title = f"{given}, elements of {counted(element_bytes, 'bytes')}"
    caption(plot, f"{title}\n{found}")
    name_axes(plot, offsets.shape)
    return picture(figure, f"Layout {title}: offsets {offsets.min()} to {offsets.max()} in {found}.")


def draw_sectors(plot, offsets: np.ndarray, element_bytes: int) -> int:
    """Offsets on the colours of their sectors; how many sectors there are."""
    sectors = sectors_of(offsets, element_bytes)
    fill_cells(plot, shades(sectors))
    write_cells(plot, offsets.astype(str), shades(sectors))
    mark_changes(plot, sectors)
    return len(np.unique(sectors))


def draw_banks(plot, offsets: np.ndarray, element_bytes: int) -> int:
    """Banks on a scale of colours; how many there are."""
    banks = offsets * element_bytes // WORD % BANKS
    colours = colormaps["cividis"](banks / (BANKS - 1))[..., :3]
    fill_cells(plot, colours)
    write_cells(plot, banks.astype(str), colours)
    grid_lines(plot, *banks.shape)
    return len(np.unique(banks))


PARTS = {"sectors": draw_sectors, "banks": draw_banks}


def tv_layout(given: Layout, tile: Layout, element_bytes: int, *, name: str = "") -> Image:
    """Draws who holds each element of a tile: thread and value, with the sectors of the tile in memory.

    given: (thread, value) -> index into the tile, counted down its columns.  tile: (row, column) -> element in memory.
    The colour is that of the thread, paler with each value; red lines where the sector changes from one column to the
    next.  name: stands in the title and the description, where the layout itself should not.  ValueError where an index
    lies outside the tile, and where two threads or values share one.
    """
    threads, values = holders(given, tile)
    sectors = sectors_of(offsets_of(tile), element_bytes)
    figure, plot = grid_figure(threads.shape)
    count = int(size(mode(given, 1)))
    fill_cells(plot, shades(threads, np.maximum(values, 0) / max(count, 2)))
    write_holders(plot, threads, values)
    mark_changes(plot, sectors)
    held = f"{counted(count, 'values')} of {counted(element_bytes, 'bytes')} each"
    title = f"{counted(size(mode(given, 0)), 'threads')}, {held}"
    caption(plot, f"{name or given}\n{title}; red lines: sectors")
    name_axes(plot, threads.shape)
    return picture(figure, f"{name or f'TV layout {given}'}: {title}; thread 0 holds {held_by_first(threads)}.")


def offsets_of(given: Layout) -> np.ndarray:
    """(rows, columns) of offsets; a layout of rank 1 is one row. ValueError for another rank, or too many cells."""
    if rank(given) > 2:
        raise ValueError(f"{given} has rank {rank(given)}; a picture has rows and columns: give rank 1 or 2")
    rows, columns = (1, size(given)) if rank(given) == 1 else (size(mode(given, 0)), size(mode(given, 1)))
    if not (1 <= rows <= MOST_ROWS and 1 <= columns <= MOST_COLUMNS):
        most = f"at most {MOST_ROWS} x {MOST_COLUMNS} can be read"
        raise ValueError(f"{given} has {rows} x {columns} cells; {most}, and at least 1 x 1: take a part")
    offsets = np.array([given(i) for i in range(rows * columns)]).reshape(columns, rows).T
    if offsets.dtype.kind != "i" or offsets.min() < 0:
        raise ValueError(f"{given} has offsets that are no whole numbers from 0 on: give strides that are")
    return offsets


def holders(given: Layout, tile: Layout) -> tuple[np.ndarray, np.ndarray]:
    """(rows, columns) of the thread that holds an element of the tile, and of its value; NOBODY where none does."""
    rows, columns = offsets_of(tile).shape
    count = size(mode(given, 0))
    threads, values = np.full(rows * columns, NOBODY), np.full(rows * columns, NOBODY)
    for i in range(size(given)):
        index = given(i)
        if not 0 <= index < rows * columns:
            raise ValueError(
                f"thread {i % count}, value {i // count} has index {index}; the tile ends at {rows * columns - 1}"
            )
        if threads[index] != NOBODY:
            raise ValueError(f"index {index} is held by thread {threads[index]} and by thread {i % count}")
        threads[index], values[index] = i % count, i // count
    return threads.reshape(columns, rows).T, values.reshape(columns, rows).T


def sectors_of(offsets: np.ndarray, element_bytes: int) -> np.ndarray:
    """The sector in which each element begins."""
    return offsets * element_bytes // SECTOR


def write_holders(plot, threads: np.ndarray, values: np.ndarray) -> None:
    """Thread and value in each cell; where that does not fit, the thread over its neighbouring values."""
    rows, columns = threads.shape
    if print_size(plot, columns, len(f"T{threads.max()}")) == 0:
        return write_runs(plot, threads, "T")
    names = [f"T{t}\nV{v}" if t != NOBODY else "" for t, v in zip(threads.flat, values.flat, strict=True)]
    write_cells(plot, np.reshape(names, (rows, columns)), np.ones((rows, columns, 3)))


def grid_figure(shape: tuple[int, int]):
    """(figure, axes) for so many rows and columns: cells as high as wide, within reason."""
    rows, columns = shape
    cell = min(max((WIDTH - 0.5) / columns, 0.16), 0.36)
    figure, [plot] = panels([0.85 + cell * rows])
    return figure, plot


def mark_changes(plot, owners: np.ndarray) -> None:
    """Lines between cells, red ones where the owner changes from one column to the next."""
    rows, columns = owners.shape
    grid_lines(plot, rows, columns)
    row, column = np.nonzero(owners[:, 1:] != owners[:, :-1])
    plot.vlines(column + 0.5, row - 0.5, row + 0.5, color=RED, linewidth=1.6)


def name_axes(plot, shape: tuple[int, int]) -> None:
    """Numbers of columns above, of rows on the left."""
    rows, columns = shape
    plot.xaxis.tick_top()
    plot.set_xticks(range(0, columns, -(-columns // 16)))
    plot.set_yticks(range(0, rows, -(-rows // 16)))
    plot.tick_params(labelsize=SMALL)


def held_by_first(threads: np.ndarray) -> str:
    """The elements of thread 0, as (row, column)."""
    return ", ".join(f"({row}, {column})" for row, column in np.argwhere(threads == 0))
