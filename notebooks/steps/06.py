"""Lesson 06: the kernels between arithmetic and the tiled copy."""

from typing import NamedTuple

import cutlass.cute as cute

THREADS = 256


class Plan(NamedTuple):
    """The rows and columns of a tile, and its TV layout, (thread, value) -> index down the tile's columns."""

    rows: int
    columns: int
    shape: tuple
    stride: tuple


ALONG = Plan(16, 128, ((16, 16), 8), ((128, 1), 16))
DOWN = Plan(16, 128, ((16, 16), 8), ((1, 128), 16))
STEEP = Plan(256, 8, (256, 8), (1, 256))
SPREAD = Plan(16, 128, ((128, 2), 8), ((16, 1), 2))


@cute.kernel
def composed_copy_kernel(mX: cute.Tensor, mY: cute.Tensor, tv: cute.Layout):
    i, j, _ = cute.arch.block_idx()
    thread, _, _ = cute.arch.thread_idx()
    gX = cute.local_tile(mX, (16, 128), (i, j))  # (16, 128)
    gY = cute.local_tile(mY, (16, 128), (i, j))  # (16, 128)
    tXgX = cute.composition(gX, tv)[thread, None]  # (8)
    tYgY = cute.composition(gY, tv)[thread, None]  # (8)
    tYgY.store(tXgX.load())


@cute.jit
def composed_copy(mX: cute.Tensor, mY: cute.Tensor, stream):
    m, n = mX.shape
    tv = cute.make_layout(((16, 16), 8), stride=((128, 1), 16))
    composed_copy_kernel(mX, mY, tv).launch(grid=(m // 16, n // 128, 1), block=(256, 1, 1), stream=stream)


def promised(mX: cute.Tensor) -> cute.Tensor:
    """mX (m, n) with the promise that its rows are multiples of 8 elements apart."""
    stride = (cute.assume(mX.stride[0], 8), 1)
    return cute.make_tensor(mX.iterator, cute.make_layout(mX.shape, stride=stride))


@cute.jit
def narrow_loads_copy(mX: cute.Tensor, mY: cute.Tensor, stream):
    m, n = mX.shape
    tv = cute.make_layout(((16, 16), 8), stride=((128, 1), 16))
    kernel = composed_copy_kernel(mX, promised(mY), tv)
    kernel.launch(grid=(m // 16, n // 128, 1), block=(256, 1, 1), stream=stream)


@cute.jit
def narrow_stores_copy(mX: cute.Tensor, mY: cute.Tensor, stream):
    m, n = mX.shape
    tv = cute.make_layout(((16, 16), 8), stride=((128, 1), 16))
    kernel = composed_copy_kernel(promised(mX), mY, tv)
    kernel.launch(grid=(m // 16, n // 128, 1), block=(256, 1, 1), stream=stream)


@cute.jit
def promised_copy(mX: cute.Tensor, mY: cute.Tensor, stream):
    m, n = mX.shape
    tv = cute.make_layout(((16, 16), 8), stride=((128, 1), 16))
    kernel = composed_copy_kernel(promised(mX), promised(mY), tv)
    kernel.launch(grid=(m // 16, n // 128, 1), block=(256, 1, 1), stream=stream)


@cute.kernel
def planned_copy_kernel(mX: cute.Tensor, mY: cute.Tensor, tv: cute.Layout, tile: cute.Shape):
    i, j, _ = cute.arch.block_idx()
    thread, _, _ = cute.arch.thread_idx()
    gX = cute.local_tile(mX, tile, (i, j))  # (rows, columns)
    gY = cute.local_tile(mY, tile, (i, j))  # (rows, columns)
    tXgX = cute.composition(gX, tv)[thread, None]  # (values)
    tYgY = cute.composition(gY, tv)[thread, None]  # (values)
    tYgY.store(tXgX.load())


def copy_with(plan: Plan):
    """A host function that copies tiles as `plan` says."""

    @cute.jit
    def planned_copy(mX: cute.Tensor, mY: cute.Tensor, stream):
        m, n = mX.shape
        tv = cute.make_layout(plan.shape, stride=plan.stride)
        kernel = planned_copy_kernel(promised(mX), promised(mY), tv, (plan.rows, plan.columns))
        grid = (m // plan.rows, n // plan.columns, 1)
        kernel.launch(grid=grid, block=(THREADS, 1, 1), stream=stream)

    return planned_copy


@cute.kernel
def tiled_copy_kernel(mX: cute.Tensor, mY: cute.Tensor, tiled: cute.TiledCopy):
    i, j, _ = cute.arch.block_idx()
    thread, _, _ = cute.arch.thread_idx()
    gX = cute.local_tile(mX, (16, 512), (i, j))  # (16, 512)
    gY = cute.local_tile(mY, (16, 512), (i, j))  # (16, 512)
    mine = tiled.get_slice(thread)
    tXgX = mine.partition_S(gX)  # ((8, 1), 1, 4)
    tYgY = mine.partition_D(gY)  # ((8, 1), 1, 4)
    rX = cute.make_fragment_like(tXgX)  # ((8, 1), 1, 4)
    cute.copy(tiled, tXgX, rX)
    cute.copy(tiled, rX, tYgY)


def wide_copy(dtype) -> cute.TiledCopy:
    """128 bits a thread: 16 rows of 16 threads, each with 8 elements of a row."""
    atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), dtype, num_bits_per_copy=128)
    threads = cute.make_layout((16, 16), stride=(16, 1))  # (row, column) -> thread
    values = cute.make_layout((1, 8), stride=(8, 1))  # (row, column) -> value
    return cute.make_tiled_copy_tv(atom, threads, values)


@cute.jit
def tiled_copy(mX: cute.Tensor, mY: cute.Tensor, stream):
    m, n = mX.shape
    kernel = tiled_copy_kernel(promised(mX), promised(mY), wide_copy(mX.element_type))
    kernel.launch(grid=(m // 16, n // 512, 1), block=(256, 1, 1), stream=stream)


@cute.jit
def refused_copy(mX: cute.Tensor, mY: cute.Tensor, stream):
    m, n = mX.shape
    kernel = tiled_copy_kernel(mX, mY, wide_copy(mX.element_type))
    kernel.launch(grid=(m // 16, n // 512, 1), block=(256, 1, 1), stream=stream)
