"""Who works where: the blocks and clusters that a launch has for rows, and what a thread finds itself to be in them."""

from typing import NamedTuple

import cutlass
import cutlass.cute as cute
from cutlass import Int32

WARP = 32


class Place(NamedTuple):
    """Where a thread works: on which row, in which of the row's blocks, as which of that block's threads on the row.

    row: may lie past the last.  rank: of `ranks` blocks.  thread: of `threads`.
    """

    row: Int32
    rank: Int32
    ranks: Int32
    thread: Int32
    threads: Int32


def row_place(plan):
    """This thread's Place under a_group_a_row: a cluster has a row, or a block `plan.rows` rows."""
    block, _, _ = cute.arch.block_idx()
    thread, _, _ = cute.arch.thread_idx()
    if plan.rows > 1:
        return Place(block * plan.rows + thread // plan.threads, 0, 1, thread % plan.threads, plan.threads)
    if plan.cluster > 1:
        return Place(block // plan.cluster, block % plan.cluster, plan.cluster, thread, plan.threads)
    threads, _, _ = cute.arch.block_dim()
    return Place(block, 0, 1, thread, threads)


@cute.jit
def piece_place(mX: cute.Tensor, plan):
    """This thread's Place under a_block_a_piece, for rows of mX (m, n)."""
    place = row_place(plan)
    if cutlass.const_expr(plan.rows == 1):
        pieces = row_pieces(mX.shape[1], plan)
        place = place._replace(row=place.row // pieces, rank=place.row % pieces, ranks=pieces)
    return place


def a_group_a_row(mX: cute.Tensor, plan) -> dict:
    """The launch of a kernel in which a cluster takes a row of mX (m, n), or a block takes `plan.rows` rows."""
    m, n = mX.shape
    return {
        "grid": (cute.ceil_div(m, plan.rows) * plan.cluster, 1, 1),
        "block": (row_threads(n, plan), 1, 1),
        "cluster": (plan.cluster, 1, 1),
        "max_number_threads": (plan.block, 1, 1),
    }


def a_block_a_piece(mX: cute.Tensor, plan) -> dict:
    """The launch of a kernel in which a block takes a piece of a row of mX (m, n), or `plan.rows` short rows."""
    m, n = mX.shape
    return {
        "grid": (cute.ceil_div(m, plan.rows) * row_pieces(n, plan), 1, 1),
        "block": (row_threads(n, plan), 1, 1),
        "max_number_threads": (plan.block, 1, 1),
    }


@cute.jit
def row_threads(n, plan):
    """Threads of a block on rows of n elements: of a block with a row to itself, as many warps as it has work for."""
    threads = Int32(plan.block)
    if cutlass.const_expr(plan.rows == 1 and plan.cluster == 1):
        needed = cute.ceil_div(n, plan.vector * plan.vectors * WARP) * WARP
        threads = min(threads, max(needed, WARP))
    return threads


def row_pieces(n, plan):
    """Blocks for a row of n elements under a_block_a_piece."""
    return 1 if plan.rows > 1 else cute.ceil_div(n, plan.capacity)
