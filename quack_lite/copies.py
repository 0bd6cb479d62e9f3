"""A row tile: who holds which elements, and how they travel between global memory and registers."""

from typing import NamedTuple

import cutlass
import cutlass.cute as cute


class Place(NamedTuple):
    """Where a thread works: on which row, in which block of the row's cluster, as which thread of that block's row."""

    row: cutlass.Int32
    rank: cutlass.Int32
    thread: cutlass.Int32


def row_place(plan):
    """This thread's Place: blocks of a cluster share a row, or a block's threads share `plan.rows` rows."""
    block, _, _ = cute.arch.block_idx()
    thread, _, _ = cute.arch.thread_idx()
    row = block // plan.cluster * plan.rows + thread // plan.threads
    return Place(row, block % plan.cluster, thread % plan.threads)


def partition(gX: cute.Tensor, place: Place, plan):
    """This thread's part of a row gX (n) in global memory: ((vector, 1), vectors)."""
    tv_layout = cute.make_layout(plan.shape, stride=plan.stride)
    return cute.composition(gX, tv_layout)[(place.thread, place.rank), (None, None)]


@cute.jit
def row_length(mX: cute.Tensor, place: Place):
    """The elements of this thread's row of mX (m, n): n, or none for a row past the last."""
    m, n = mX.shape
    length = 0
    if place.row < m:
        length = n
    return length


def predicate(length, place: Place, plan):
    """Which of this thread's vectors lie inside a row of `length` elements: Booleans (1, vectors)."""
    tv_layout = cute.make_layout(plan.shape, stride=plan.stride)
    tXpX = cute.make_rmem_tensor((1, plan.vectors), cutlass.Boolean)
    for j in range(plan.vectors):
        tXpX[0, j] = tv_layout(((place.thread, place.rank), (0, j))) < length
    return tXpX


def load(tXgX: cute.Tensor, tXpX: cute.Tensor, fill: float = 0.0):
    """The vectors that tXpX allows, in registers ((vector, 1), vectors); `fill` in the others."""
    tXrX = cute.make_rmem_tensor(tXgX.shape, tXgX.element_type)
    tXrX.fill(tXgX.element_type(fill))
    cute.copy(vector_atom(tXgX), tXgX, tXrX, pred=tXpX)
    return tXrX.load()


def store(values, tYgY: cute.Tensor, tYpY: cute.Tensor):
    """Rounds values ((vector, 1), vectors) to the dtype of tYgY and stores the vectors that tYpY allows."""
    tYrY = cute.make_rmem_tensor(tYgY.shape, tYgY.element_type)
    tYrY.store(values.to(tYgY.element_type))
    cute.copy(vector_atom(tYgY), tYrY, tYgY, pred=tYpY)


def vector_atom(tXgX: cute.Tensor):
    """One load or store of a whole vector."""
    bits = tXgX.element_type.width * cute.size(tXgX, mode=[0])
    return cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), tXgX.element_type, num_bits_per_copy=bits)
