"""Access patterns as programs, for which a GPU's counters are known: records/simt/counters.json.

One warp each, so that counts are read request by request; block_sum alone has four. Every program reads x and writes y,
both float32 unless the pattern says otherwise; its kernel, quack_lite/bench/counters/twins.py, does the same.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from quack_lite import simt

TILE = 32  # rows and columns of the tile in shared memory


def strided(b, x, y, stride, offset):
    b.st_global(y, b.tid, b.ld_global(x, b.tid * stride + offset))


def strided_store(b, x, y, stride, offset):
    b.st_global(y, b.tid * stride + offset, b.ld_global(x, b.tid))


def tail(b, x, y, count):
    inside = b.tid < count
    b.st_global(y, b.tid, b.ld_global(x, b.tid, where=inside), where=inside)


def vector(b, x, y, width):
    b.st_global(y, b.tid * width, b.ld_global(x, b.tid * width, vec=width))


def fields(b, x, y, fields):
    """An array of structs of so many floats; a lane reads the fields of its struct one by one."""
    total = b.ld_global(x, b.tid * fields)
    for field in range(1, fields):
        total = total + b.ld_global(x, b.tid * fields + field)
    b.st_global(y, b.tid, total)


def neighbours(b, x, y, count, width):
    """A lane adds up `count` neighbours, `width` of them a load."""
    i = b.ctaid * b.ntid + b.tid
    total = np.float32(0)
    for j in range(0, count, width):
        loaded = b.ld_global(x, i * count + j, vec=width)
        total = total + loaded.reshape(len(i), width).sum(1, dtype=np.float32)
    b.st_global(y, i, total)


def shared_tile(b, x, y, row, column, read):
    """A tile goes to shared memory row by row, its rows and columns so many floats apart; then each lane reads one."""
    s = b.shared(TILE * max(row, column), "float32")
    for k in range(TILE):
        b.st_shared(s, k * row + b.tid * column, b.ld_global(x, k * TILE + b.tid))
    b.bar_sync()
    b.st_global(y, b.tid, b.ld_shared(s, b.tid * read))


def swizzled(b, x, y, column):
    """In row k of the tile, column c lies at c ^ k; then a column is read."""
    s = b.shared(TILE * TILE, "float32")
    for k in range(TILE):
        b.st_shared(s, k * TILE + (b.tid ^ k), b.ld_global(x, k * TILE + b.tid))
    b.bar_sync()
    b.st_global(y, b.tid, b.ld_shared(s, b.tid * TILE + (column ^ b.tid)))


def shared_vector(b, x, y, width, stride, share, period):
    """Vectors in shared memory, `stride` vectors apart; `share` neighbours read one, from lane `period` on again."""
    s = b.shared(32 * stride * width, "float32")
    b.st_shared(s, b.tid * stride * width, b.ld_global(x, b.tid * width, vec=width))
    b.bar_sync()
    source = b.tid % period // share
    b.st_global(y, b.tid * width, b.ld_shared(s, source * stride * width, vec=width))


def block_sum(b, x, y):
    s = b.shared(4, "float32")
    total = b.ld_global(x, b.tid)
    for mask in (16, 8, 4, 2, 1):
        total = total + b.shfl_bfly(total, mask)
    b.st_shared(s, b.warpid, total, where=b.laneid == 0)
    b.bar_sync()
    total = b.ld_shared(s, b.laneid % 4)
    for mask in (2, 1):
        total = total + b.shfl_bfly(total, mask)
    b.st_global(y, b.tid, total)


class Pattern(NamedTuple):
    """numbers: what the program takes behind x and y.  x, y: elements.  dtype: of x."""

    name: str
    program: Callable
    numbers: Mapping[str, int]
    x: int
    y: int = 32
    dtype: str = "float32"
    block: int = 32


def load_of(name: str, stride: int, offset: int) -> Pattern:
    return Pattern(name, strided, {"stride": stride, "offset": offset}, 31 * stride + offset + 1)


def store_of(name: str, stride: int, offset: int) -> Pattern:
    return Pattern(name, strided_store, {"stride": stride, "offset": offset}, 32, 31 * stride + offset + 1)


def tile_of(name: str, row: int, column: int, read: int) -> Pattern:
    return Pattern(name, shared_tile, {"row": row, "column": column, "read": read}, TILE * TILE)


def vector_of(name: str, width: int, stride: int = 1, share: int = 1, period: int = 32) -> Pattern:
    numbers = {"width": width, "stride": stride, "share": share, "period": period}
    return Pattern(name, shared_vector, numbers, 32 * width, 32 * width)


def neighbours_of(name: str, width: int) -> Pattern:
    return Pattern(name, neighbours, {"count": 8, "width": width}, 32 * 8, dtype="bfloat16")


ONE_BY_ONE = neighbours_of("8 neighbours one by one", 1)
AT_ONCE = neighbours_of("8 neighbours at once", 8)

PATTERNS = (
    load_of("coalesced", 1, 0),
    *(load_of(f"stride {stride}", stride, 0) for stride in (2, 4, 8, 16, 32)),
    load_of("misaligned by one element", 1, 1),
    load_of("broadcast", 0, 0),
    Pattern("tail of 20 lanes", tail, {"count": 20}, 20),
    Pattern("64-bit", vector, {"width": 2}, 64, 64),
    Pattern("128-bit", vector, {"width": 4}, 128, 128),
    Pattern("array of structs", fields, {"fields": 3}, 96),
    store_of("store, stride 2", 2, 0),
    store_of("store, stride 8", 8, 0),
    store_of("store, misaligned by one element", 1, 1),
    tile_of("shared row", 32, 1, 1),
    tile_of("shared column", 32, 1, 32),
    tile_of("shared column, padded", 33, 1, 33),
    Pattern("shared column, swizzled", swizzled, {"column": 5}, TILE * TILE),
    tile_of("shared broadcast", 32, 1, 0),
    tile_of("shared stride 2", 32, 1, 2),
    tile_of("store to a shared column", 2, 64, 2),
    tile_of("store to a shared column, padded", 2, 65, 2),
    vector_of("shared 64-bit", 2),
    vector_of("shared 64-bit, stride 2", 2, stride=2),
    vector_of("shared 64-bit, column", 2, stride=16),
    vector_of("shared 64-bit, pairs share", 2, share=2),
    vector_of("shared 64-bit, halves share", 2, period=16),
    vector_of("shared 64-bit, broadcast", 2, share=32),
    vector_of("shared 128-bit", 4),
    vector_of("shared 128-bit, stride 2", 4, stride=2),
    vector_of("shared 128-bit, column", 4, stride=8),
    vector_of("shared 128-bit, pairs share", 4, share=2),
    vector_of("shared 128-bit, quarters share", 4, period=8),
    vector_of("shared 128-bit, broadcast", 4, share=32),
    Pattern("block sum", block_sum, {}, 128, 128, block=128),
    ONE_BY_ONE,
    AT_ONCE,
)


def source(pattern: Pattern) -> np.ndarray:
    """The values of x: small integers, which every dtype and every order of adding up keeps exact."""
    return (np.arange(pattern.x) % 61).astype(np.float32)


def run(pattern: Pattern) -> simt.Run:
    """The pattern's program on the Model; y starts as zeros and is the last of the run's arrays."""
    x = simt.tensor(source(pattern), pattern.dtype)
    y = np.zeros(pattern.y, np.float32)
    return simt.run(pattern.program, x, y, *pattern.numbers.values(), grid=1, block=pattern.block)
