"""Lesson 09: the kernels between a transpose without shared memory and one without a bank conflict."""

import cutlass
import cutlass.cute as cute
from cutlass.memory import SmemAllocator

TILE, ROWS = 32, 8  # a block has 32 x 8 threads and moves a tile of 32 x 32
STEPS = TILE // ROWS


def grid_of(mX: cute.Tensor) -> tuple:
    """A block a tile."""
    return (cute.ceil_div(mX.shape[0], TILE), cute.ceil_div(mX.shape[1], TILE), 1)


@cute.kernel
def stores_along_kernel(mX: cute.Tensor, mY: cute.Tensor):
    i, j, _ = cute.arch.block_idx()
    x, y, _ = cute.arch.thread_idx()
    m, n = mX.shape
    row, column = TILE * i + x, TILE * j + y
    rX = cute.make_rmem_tensor(STEPS, mX.element_type)  # (4)
    for k in cutlass.range_constexpr(STEPS):
        if row < m and column + ROWS * k < n:
            rX[k] = mX[row, column + ROWS * k]
    for k in cutlass.range_constexpr(STEPS):
        if row < m and column + ROWS * k < n:
            mY[column + ROWS * k, row] = rX[k]


@cute.jit
def stores_along(mX: cute.Tensor, mY: cute.Tensor, stream):
    stores_along_kernel(mX, mY).launch(grid=grid_of(mX), block=(TILE, ROWS, 1), stream=stream)


@cute.kernel
def hasty_kernel(mX: cute.Tensor, mY: cute.Tensor, layout):
    i, j, _ = cute.arch.block_idx()
    x, y, _ = cute.arch.thread_idx()
    m, n = mX.shape
    sX = SmemAllocator().allocate_tensor(mX.element_type, layout)  # (32, 32)
    rX = cute.make_rmem_tensor(STEPS, mX.element_type)  # (4)
    for k in cutlass.range_constexpr(STEPS):
        if TILE * i + y + ROWS * k < m and TILE * j + x < n:
            rX[k] = mX[TILE * i + y + ROWS * k, TILE * j + x]
    for k in cutlass.range_constexpr(STEPS):
        sX[y + ROWS * k, x] = rX[k]
    for k in cutlass.range_constexpr(STEPS):
        if TILE * j + y + ROWS * k < n and TILE * i + x < m:
            mY[TILE * j + y + ROWS * k, TILE * i + x] = sX[x, y + ROWS * k]


@cute.jit
def hasty(mX: cute.Tensor, mY: cute.Tensor, stream):
    layout = cute.make_layout((TILE, TILE), stride=(TILE, 1))
    hasty_kernel(mX, mY, layout).launch(grid=grid_of(mX), block=(TILE, ROWS, 1), stream=stream)


@cute.kernel
def tile_kernel(mX: cute.Tensor, mY: cute.Tensor, layout):
    i, j, _ = cute.arch.block_idx()
    x, y, _ = cute.arch.thread_idx()
    m, n = mX.shape
    sX = SmemAllocator().allocate_tensor(mX.element_type, layout)  # (32, 32)
    rX = cute.make_rmem_tensor(STEPS, mX.element_type)  # (4)
    for k in cutlass.range_constexpr(STEPS):
        if TILE * i + y + ROWS * k < m and TILE * j + x < n:
            rX[k] = mX[TILE * i + y + ROWS * k, TILE * j + x]
    for k in cutlass.range_constexpr(STEPS):
        sX[y + ROWS * k, x] = rX[k]
    cute.arch.barrier()
    for k in cutlass.range_constexpr(STEPS):
        if TILE * j + y + ROWS * k < n and TILE * i + x < m:
            mY[TILE * j + y + ROWS * k, TILE * i + x] = sX[x, y + ROWS * k]


@cute.jit
def plain(mX: cute.Tensor, mY: cute.Tensor, stream):
    layout = cute.make_layout((TILE, TILE), stride=(TILE, 1))
    tile_kernel(mX, mY, layout).launch(grid=grid_of(mX), block=(TILE, ROWS, 1), stream=stream)


@cute.jit
def padded(mX: cute.Tensor, mY: cute.Tensor, stream):
    layout = cute.make_layout((TILE, TILE), stride=(TILE + 1, 1))
    tile_kernel(mX, mY, layout).launch(grid=grid_of(mX), block=(TILE, ROWS, 1), stream=stream)


@cute.jit
def swizzled(mX: cute.Tensor, mY: cute.Tensor, stream):
    rows = cute.make_layout((TILE, TILE), stride=(TILE, 1))
    layout = cute.make_composed_layout(cute.make_swizzle(5, 0, 5), 0, rows)
    tile_kernel(mX, mY, layout).launch(grid=grid_of(mX), block=(TILE, ROWS, 1), stream=stream)


def with_stride(stride: int):
    """A host function whose tile has its rows `stride` words apart in shared memory."""

    @cute.jit
    def strided(mX: cute.Tensor, mY: cute.Tensor, stream):
        layout = cute.make_layout((TILE, TILE), stride=(stride, 1))
        tile_kernel(mX, mY, layout).launch(grid=grid_of(mX), block=(TILE, ROWS, 1), stream=stream)

    return strided
