"""Turns: a group of blocks (a cluster, or a block with its rows) goes on over the rows of a matrix, a turn each.

The rows of later turns are on their way to shared memory while one is worked on. Weights stay in registers, and so do
the sums over the group's rows; where a plan is lean there is no room for either. All rows that a thread gets start at
the same place in a vector.
"""

import cutlass.cute as cute
from cutlass import Float32, Int32

from quack_lite import copies, grid, staged


def groups_go_on(mX: cute.Tensor, groups, plan) -> dict:
    """The launch of a kernel whose groups, as many as are given, go on over the rows of mX (m, n)."""
    return {**grid.a_group_a_row(mX, plan), "grid": (groups * plan.cluster, 1, 1)}


def a_group_a_sum(mX: cute.Tensor, mdW: cute.Tensor, plan) -> dict:
    """As groups_go_on, with a group for each `plan.rows` rows of the partial sums mdW (p, n)."""
    return {**grid.a_group_a_row(mX, plan), "grid": (cute.ceil_div(mdW.shape[0], plan.rows) * plan.cluster, 1, 1)}


def count(mX: cute.Tensor, plan):
    """Turns of this block's group over the rows of mX (m, n)."""
    block, _, _ = cute.arch.block_idx()
    return cute.ceil_div(mX.shape[0] - block // plan.cluster * plan.rows, stride(plan))


def stride(plan):
    """Rows from one turn of a group to its next."""
    blocks, _, _ = cute.arch.grid_dim()
    return blocks // plan.cluster * plan.rows


@cute.jit
def tile(first: copies.Tile, mX: cute.Tensor, turn, plan):
    """This thread's Tile of mX (m, n) in a turn; first: in turn 0. Empty behind the last row."""
    row = first.row + turn * stride(plan)
    end, n = Int32(0), Int32(0)
    if row < mX.shape[0]:
        end, n = first.end, first.n
    return first._replace(row=row, end=end, n=n)


def open_stages(dtype, plan):
    """A ring of stages (vector, vectors, stages) in shared memory, this thread's own, for as many turns ahead."""
    return staged.open_stages(dtype, plan, plan.stages)


def send(sX: cute.Tensor, mX: cute.Tensor, tile: copies.Tile, turn, plan):
    """Starts to copy this thread's vectors of a row of mX (m, n) into the stage of its turn, and does not wait.

    Nothing is sent for an empty tile. The edge is not sent: receive loads it.
    """
    staged.send_vectors(sX[None, None, turn % plan.stages], mX, tile, plan)


def sent():
    """Closes a turn: all that was sent since the last call. Called for empty turns too, since turns are counted."""
    cute.arch.cp_async_commit_group()


def oldest_has_come(plan):
    """Waits until what this thread sent for the oldest turn has come; later turns stay on their way."""
    cute.arch.cp_async_wait_group(plan.stages - 1)


@cute.jit
def receive(sX: cute.Tensor, mX: cute.Tensor, tile: copies.Tile, turn, plan):
    """This thread's part (elements) of a row of mX (m, n) in float32, the vectors from the stage of a turn.

    0 where there is no element, and throughout for an empty tile.
    """
    rX = cute.make_rmem_tensor((plan.vector, plan.vectors), mX.element_type)
    rX.store(copies.on_boundary(sX[None, None, turn % plan.stages]).load())
    if tile.n == 0:
        rX.fill(mX.element_type(0.0))
    return copies.widened(copies.Part(rX, staged.fetch_edge(mX, tile)), plan)


def columns_again(values, mW: cute.Tensor, tile: copies.Tile, plan):
    """values (elements), as load_columns gave them; a lean plan has not kept them, and loads anew."""
    return copies.load_columns(mW, tile, plan) if plan.lean else values


def open_sums(plan):
    """Sums over rows, 0 at first, one for each of this thread's columns: registers (elements).

    If the plan is lean, shared memory (4, elements / 4 rounded up), the edge in the last four.
    """
    shape = (4, plan.vector * plan.vectors // 4 + 1)
    sums = staged.own_shared(Float32, shape, plan) if plan.lean else copies.registers(plan)
    sums.fill(0.0)
    return sums


def add_to(sums: cute.Tensor, values, plan):
    """Adds values (elements), float32, to sums of open_sums."""
    if not plan.lean:
        sums.store(sums.load() + values)
        return
    rV, quads = copies.registers(plan), plan.vector * plan.vectors // 4
    rV.store(values)
    for j in range(quads):
        sums[None, j].store(sums[None, j].load() + quads_in(rV, quads)[None, j].load())
    sums[0, quads] = sums[0, quads] + rV[4 * quads]


def total(sums: cute.Tensor, plan):
    """The sums of open_sums, as values (elements), float32."""
    if not plan.lean:
        return sums.load()
    rV, quads = copies.registers(plan), plan.vector * plan.vectors // 4
    for j in range(quads):
        quads_in(rV, quads)[None, j].store(sums[None, j].load())
    rV[4 * quads] = sums[0, quads]
    return rV.load()


def quads_in(rV: cute.Tensor, quads: int):
    """Registers (elements), float32, without the edge, by four as shared memory moves them: (4, quads)."""
    return cute.make_tensor(rV.iterator, cute.make_layout((4, quads)))
