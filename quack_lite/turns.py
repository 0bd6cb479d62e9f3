"""Turns: a group of blocks (a cluster, or a block with its rows) goes on over the rows of a matrix, a turn each.

The rows of later turns are on their way to shared memory while one is worked on: each thread sends its own vectors
and reads no others, so no barrier is needed. Weights stay in registers, and so do the sums over the group's rows;
where a plan is lean there is no room for either. All rows that a thread gets start at the same place in a vector.
"""

import cutlass
import cutlass.cute as cute
from cutlass import Float32
from cutlass.memory import SmemAllocator

from quack_lite import copies, grid


def groups_go_on(mX: cute.Tensor, plan) -> dict:
    """The launch of a kernel whose groups, `plan.groups` at most, go on over the rows of mX (m, n)."""
    launch = grid.a_group_a_row(mX, plan)
    blocks, _, _ = launch["grid"]
    return {**launch, "grid": (cutlass.min(blocks, plan.groups * plan.cluster), 1, 1)}


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


def tile(mX: cute.Tensor, place: grid.Place, turn, plan):
    """This thread's Tile of mX (m, n) in a turn; place: in the first. Empty behind the last row."""
    return copies.row_tile(mX, place._replace(row=place.row + turn * stride(plan)), plan)


def open_stages(dtype, plan):
    """A ring of stages (vector, vectors, stages) in shared memory, this thread's own, for as many turns ahead.

    Filled with 0, which stays where no row has an element.
    """
    sX = own_shared(dtype, (plan.vector, plan.vectors, plan.stages), plan)
    sX.fill(dtype(0.0))
    return sX


@cute.jit
def send(sX: cute.Tensor, mX: cute.Tensor, tile: copies.Tile, turn, plan):
    """Starts to copy this thread's vectors of a row of mX (m, n) into the stage of its turn, and does not wait.

    Nothing is sent for an empty tile. The edge is not sent: receive loads it.
    """
    tXgX, tXsX, tXpX = copies.vectors_of(mX[tile.row, None], sX[None, None, turn % plan.stages], tile, plan)
    atom = cute.make_copy_atom(cute.nvgpu.cpasync.CopyG2SOp(), mX.element_type, num_bits_per_copy=copies.ACCESS_BITS)
    cute.copy(atom, tXgX, tXsX, pred=tXpX)


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
    rX = copies.empty_part(mX.element_type, plan)
    stage = sX[None, None, turn % plan.stages]
    rX.vectors.store(cute.make_tensor(stage.iterator.align(copies.ACCESS_BITS // 8), stage.layout).load())
    if tile.n == 0:
        rX.vectors.fill(mX.element_type(0.0))
    rX.edge.fill(mX.element_type(0.0))
    if tile.edge < tile.n:
        rX.edge[0] = mX[tile.row, tile.edge]
    return copies.widened(rX, plan)


def columns_again(values, mW: cute.Tensor, tile: copies.Tile, plan):
    """values (elements), as load_columns gave them; a lean plan has not kept them, and loads anew."""
    return copies.load_columns(mW, tile, plan) if plan.lean else values


def open_sums(plan):
    """Sums over rows, 0 at first, one for each of this thread's columns: registers (elements).

    If the plan is lean, shared memory (4, elements / 4 rounded up), the edge in the last four.
    """
    shape = (4, plan.vector * plan.vectors // 4 + 1)
    sums = own_shared(Float32, shape, plan) if plan.lean else copies.registers(plan)
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
