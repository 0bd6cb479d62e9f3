"""Rows in shared memory: sent there by cp.async, and read as often as a kernel needs them, a piece at a time.

A row that waits there takes no registers, so that an SM holds more blocks, and with them more bytes on their way. Each
thread sends its own vectors and reads no others, so no barrier is needed.
"""

import cutlass.cute as cute
from cutlass import Int32
from cutlass.memory import SmemAllocator

from quack_lite import copies


def send(mX: cute.Tensor, tile: copies.Tile, plan) -> copies.Part:
    """Starts to copy this thread's Part of a row of mX (m, n), and does not wait; 0 where there is no element."""
    sX = open_stages(mX.element_type, plan, 1)[None, None, 0]
    send_vectors(sX, mX, tile, plan)
    cute.arch.cp_async_commit_group()
    return copies.Part(sX, fetch_edge(mX, tile))


def put_aside(tile: copies.Tile, plan) -> cute.Tensor:
    """Puts this thread's Tile into shared memory, (1, fields): where a row fills the registers, it is in their way."""
    sT = own_shared(Int32, (1, len(tile)), plan)
    for i, field in enumerate(tile):
        sT[0, i] = Int32(field)
    return sT


def taken_back(sT: cute.Tensor, tile: copies.Tile) -> copies.Tile:
    """The Tile that was put aside, but for its step, which the compiler has to know as a whole number of vectors."""
    return copies.Tile(*(sT[0, i] for i in range(len(tile))))._replace(step=tile.step)


def have_come():
    """Waits until all that this thread sent has come."""
    cute.arch.cp_async_wait_group(0)


def open_stages(dtype, plan, stages: int) -> cute.Tensor:
    """Shared memory for a thread's vectors of as many rows: (vector, vectors, stages), filled with 0."""
    sX = own_shared(dtype, (plan.vector, plan.vectors, stages), plan)
    sX.fill(dtype(0.0))
    return sX


def send_vectors(sX: cute.Tensor, mX: cute.Tensor, tile: copies.Tile, plan):
    """Starts to copy this thread's vectors of a row of mX (m, n) into sX (vector, vectors)."""
    tXgX, tXsX, tXpX = copies.vectors_of(mX[tile.row, None], sX, tile, plan)
    atom = cute.make_copy_atom(cute.nvgpu.cpasync.CopyG2SOp(), mX.element_type, num_bits_per_copy=copies.ACCESS_BITS)
    cute.copy(atom, tXgX, tXsX, pred=tXpX)


@cute.jit
def fetch_edge(mX: cute.Tensor, tile: copies.Tile):
    """This thread's edge element of a row of mX (m, n) in registers (1); 0 without one."""
    edge = cute.make_rmem_tensor(1, mX.element_type)
    edge.fill(mX.element_type(0.0))
    if tile.edge < tile.n:
        edge[0] = mX[tile.row, tile.edge]
    return edge


def own_shared(dtype, shape: tuple, plan):
    """This thread's own tensor of this shape in shared memory.

    shape[0] elements lie together, and beside them those of the next thread: a warp's accesses have no bank conflicts.
    """
    vector, *counts = shape
    strides = [vector, vector * plan.block]
    for size in counts:
        strides.append(strides[-1] * size)
    layout = cute.make_layout((vector, plan.block, *counts), stride=(1, *strides[: len(counts) + 1]))
    whole = SmemAllocator().allocate_tensor(dtype, layout, byte_alignment=copies.ACCESS_BITS // 8)
    thread, _, _ = cute.arch.thread_idx()
    return whole[(None, thread, *[None] * len(counts))]
