"""A row tile: which elements of a row a thread holds, and how they travel between global memory and registers.

A row may start at any element. Between its first and its last 16-byte boundary it is cut into whole vectors; the few
elements before and behind them are its edges, one a thread. A thread's part of a row is `vectors` vectors, and behind
them its edge element, if it has one. Kernels compute with it in float32: values of shape (elements), which is
(vector * vectors + 1), the edge last.
"""

from typing import NamedTuple

import cutlass
import cutlass.cute as cute
from cutlass import Boolean, Float32, Int32

from quack_lite.grid import Place

ACCESS_BITS = 128


class Tile(NamedTuple):
    """The elements of a row that a thread holds: vectors that start at first, first + step, ... before end; one edge.

    Indices into the row.  edge: n or more for a thread without one.  n: elements of the row, 0 for a row past the last.
    """

    row: Int32
    first: Int32
    step: Int32
    end: Int32
    edge: Int32
    n: Int32


@cute.jit
def row_tile(mX: cute.Tensor, place: Place, plan):
    """This thread's Tile of a row of mX (m, n), and of each matrix whose rows start at the same place in a vector."""
    m, n = mX.shape
    length = Int32(0)
    if place.row < m:
        length = n
    head = min(elements_to_boundary(mX, place.row, plan.vector), length)
    body = (length - head) // plan.vector * plan.vector
    along = place.thread + place.rank * place.threads
    edge = along
    if along >= head:
        edge = along + body
    step = place.threads * place.ranks * plan.vector
    return Tile(place.row, head + along * plan.vector, step, head + body, edge, length)


def elements_to_boundary(mX: cute.Tensor, row, vector: int):
    """Elements of a row of mX (m, n) before its first 16-byte boundary, which the vectors start at."""
    address = mX[row, None].iterator.toint() // (mX.element_type.width // 8)
    return Int32((vector - address % vector) % vector)


def row_steps(tile: Tile, plan):
    """Steps of `plan.vectors` vectors, one at least, in which a thread streams through a row of any length."""
    return cutlass.max(cute.ceil_div(tile.end - tile.first, plan.vectors * tile.step), 1)


@cute.jit
def step_tile(tile: Tile, step, plan):
    """The Tile of one of row_steps; the edge belongs to the first."""
    edge = tile.edge
    if step > 0:
        edge = tile.n
    return tile._replace(first=tile.first + step * plan.vectors * tile.step, edge=edge)


def columns(tile: Tile, plan):
    """The indices of a thread's elements in their row: (elements), int32."""
    rC = cute.make_rmem_tensor(plan.vector * plan.vectors + 1, Int32)
    for j in range(plan.vectors):
        for i in range(plan.vector):
            rC[j * plan.vector + i] = tile.first + j * tile.step + i
    rC[plan.vector * plan.vectors] = tile.edge
    return rC.load()


def load(mX: cute.Tensor, tile: Tile, plan, fill: float = 0.0):
    """This thread's part of a row of mX (m, n), as float32 (elements); `fill` where there is no element."""
    return widened(fetch(mX, tile, plan, fill), plan)


@cute.jit
def store(values, mY: cute.Tensor, tile: Tile, plan):
    """Rounds values (elements), float32, to the dtype of mY (m, n), and stores those that are inside the row."""
    rY = rounded(values, mY.element_type, plan)
    tYgY, tYrY, tYpY = vectors_of(mY[tile.row, None], rY.vectors, tile, plan)
    cute.copy(vector_atom(mY), tYrY, tYgY, pred=tYpY)
    if tile.edge < tile.n:
        mY[tile.row, tile.edge] = rY.edge[0]


def load_vectors(mX: cute.Tensor, tile: Tile, plan, fill: float = 0.0):
    """This thread's vectors of a row of mX (m, n) in float32: (vector, vectors); `fill` where there is no element."""
    rX = cute.make_rmem_tensor((plan.vector, plan.vectors), mX.element_type)
    rX.fill(mX.element_type(fill))
    tXgX, tXrX, tXpX = vectors_of(mX[tile.row, None], rX, tile, plan)
    cute.copy(vector_atom(mX), tXgX, tXrX, pred=tXpX)
    return rX.load().to(Float32)


@cute.jit
def load_edge(mX: cute.Tensor, tile: Tile, fill: cutlass.Constexpr = 0.0):
    """This thread's edge element of a row of mX (m, n) in float32; `fill` without one."""
    edge = Float32(fill)
    if tile.edge < tile.n:
        edge = Float32(mX[tile.row, tile.edge])
    return edge


def load_columns(mW: cute.Tensor, tile: Tile, plan):
    """The elements of mW (n), float32, in this thread's columns: (elements); 0 where there is no element."""
    return widened(fetch_columns(mW, tile, plan), plan)


@cute.jit
def fetch_columns(mW: cute.Tensor, tile: Tile, plan):
    """This thread's Part of mW (n), float32, in its columns; 0 where there is no element.

    mW may start at any element: by vectors where its boundaries fall together with the row's, else one by one.
    """
    rW = empty_part(mW.element_type, plan)
    rW.vectors.fill(0.0)
    rW.edge.fill(0.0)
    if starts_at_boundary(mW, tile):
        tXgW, tXrW, tXpW = vectors_of(mW, rW.vectors, tile, plan)
        cute.copy(vector_atom(mW), tXgW, tXrW, pred=tXpW)
    else:
        for j in cutlass.range_constexpr(plan.vectors):
            if tile.first + j * tile.step < tile.end:
                for i in cutlass.range_constexpr(plan.vector):
                    rW.vectors[i, j] = mW[tile.first + j * tile.step + i]
    if tile.edge < tile.n:
        rW.edge[0] = mW[tile.edge]
    return rW


@cute.jit
def columns_piece(mW: cute.Tensor, tile: Tile, j: cutlass.Constexpr, plan):
    """The j-th piece of mW (n), float32, in this thread's columns: (vector), or the edge (1); for use where it stands.

    As fetch_columns loads them, a piece at a time, so that no registers are taken before it is needed.
    """
    rW = cute.make_rmem_tensor(1 if j == plan.vectors else plan.vector, mW.element_type)
    rW.fill(0.0)
    if cutlass.const_expr(j == plan.vectors):
        if tile.edge < tile.n:
            rW[0] = mW[tile.edge]
    else:
        first = tile.first + j * tile.step
        if first < tile.end:
            if starts_at_boundary(mW, tile):
                cute.autovec_copy(on_boundary(cute.make_tensor(mW.iterator + first, rW.layout)), rW)
            else:
                for i in cutlass.range_constexpr(plan.vector):
                    rW[i] = mW[first + i]
    return rW.load()


@cute.jit
def store_columns(values, mW: cute.Tensor, tile: Tile, plan):
    """Stores values (elements), float32, into this thread's columns of mW (n), as load_columns loads them."""
    rW = rounded(values, mW.element_type, plan)
    if starts_at_boundary(mW, tile):
        tXgW, tXrW, tXpW = vectors_of(mW, rW.vectors, tile, plan)
        cute.copy(vector_atom(mW), tXrW, tXgW, pred=tXpW)
    else:
        for j in cutlass.range_constexpr(plan.vectors):
            if tile.first + j * tile.step < tile.end:
                for i in cutlass.range_constexpr(plan.vector):
                    mW[tile.first + j * tile.step + i] = rW.vectors[i, j]
    if tile.edge < tile.n:
        mW[tile.edge] = rW.edge[0]


@cute.jit
def load_number(mV: cute.Tensor, tile: Tile):
    """The row's element of mV (m), float32; 0 for a row past the last."""
    number = Float32(0.0)
    if tile.n > 0:
        number = mV[tile.row]
    return number


@cute.jit
def store_number(number, mV: cute.Tensor, tile: Tile, place: Place):
    """Stores the row's element of mV (m), float32; one of the threads that share the row does."""
    if place.thread == 0 and place.rank == 0 and tile.n > 0:
        mV[tile.row] = number


@cute.jit
def inside(values, tile: Tile, plan):
    """values (elements), float32, with 0 where the row has no element: for what a fill value does not keep neutral."""
    rX = registers(plan)
    rX.store(values)
    for j in cutlass.range_constexpr(plan.vectors):
        if tile.first + j * tile.step >= tile.end:
            vectors_in(rX, plan)[None, j].fill(0.0)
    if tile.edge >= tile.n:
        rX[plan.vector * plan.vectors] = Float32(0.0)
    return rX.load()


@cute.jit
def inside_piece(values, tile: Tile, j: cutlass.Constexpr, plan):
    """As inside, of the j-th piece of a part: (vector) or (1)."""
    rX = cute.make_rmem_tensor(values.shape, Float32)
    rX.store(values)
    if cutlass.const_expr(j == plan.vectors):
        if tile.edge >= tile.n:
            rX.fill(0.0)
    else:
        if tile.first + j * tile.step >= tile.end:
            rX.fill(0.0)
    return rX.load()


def as_stored(values, mY: cute.Tensor, plan):
    """values (elements), float32, rounded to the dtype of mY and back: what a later load of mY would give."""
    return widened(rounded(values, mY.element_type, plan), plan)


class Part(NamedTuple):
    """A thread's part of a row in the dtype it has in memory: vectors (vector, vectors) on chip, edge (1) in registers.

    Its pieces are the vectors and, the last, the edge.
    """

    vectors: cute.Tensor
    edge: cute.Tensor


def empty_part(dtype, plan) -> Part:
    """Registers for a thread's part of a row, not yet filled."""
    return Part(cute.make_rmem_tensor((plan.vector, plan.vectors), dtype), cute.make_rmem_tensor(1, dtype))


@cute.jit
def fetch(mX: cute.Tensor, tile: Tile, plan, fill: cutlass.Constexpr = 0.0):
    """This thread's Part of a row of mX (m, n); `fill` where there is no element."""
    rX = empty_part(mX.element_type, plan)
    rX.vectors.fill(mX.element_type(fill))
    rX.edge.fill(mX.element_type(fill))
    tXgX, tXrX, tXpX = vectors_of(mX[tile.row, None], rX.vectors, tile, plan)
    cute.copy(vector_atom(mX), tXgX, tXrX, pred=tXpX)
    if tile.edge < tile.n:
        rX.edge[0] = mX[tile.row, tile.edge]
    return rX


def pieces(plan) -> int:
    """Pieces of a Part."""
    return plan.vectors + 1


def piece(part: Part, j: int, plan):
    """The j-th piece of a Part as float32 values: a vector (vector), or the edge (1)."""
    return (part.edge if j == plan.vectors else on_boundary(part.vectors[None, j])).load().to(Float32)


def put(values, part: Part, j: int, plan):
    """Rounds values, float32, to the dtype of a Part, and makes them its j-th piece."""
    (part.edge if j == plan.vectors else on_boundary(part.vectors[None, j])).store(values.to(part.edge.element_type))


@cute.jit
def store_piece(values, mY: cute.Tensor, tile: Tile, j: cutlass.Constexpr, plan):
    """Rounds values, float32, to the dtype of mY (m, n), and stores them as the j-th piece of this thread's part."""
    rY = cute.make_rmem_tensor(values.shape, mY.element_type)
    rY.store(values.to(mY.element_type))
    if cutlass.const_expr(j == plan.vectors):
        if tile.edge < tile.n:
            mY[tile.row, tile.edge] = rY[0]
    else:
        first = tile.first + j * tile.step
        if first < tile.end:
            row = mY[tile.row, None]
            cute.autovec_copy(rY, on_boundary(cute.make_tensor(row.iterator + first, rY.layout)))


def on_boundary(tX: cute.Tensor) -> cute.Tensor:
    """A tensor of which we know that it starts at a 16-byte boundary, and the compiler does not."""
    return cute.make_tensor(tX.iterator.align(ACCESS_BITS // 8), tX.layout)


def registers(plan):
    """Registers (elements), float32, not yet filled."""
    return cute.make_rmem_tensor(plan.vector * plan.vectors + 1, Float32)


def vectors_in(rX: cute.Tensor, plan):
    """The vectors among registers (elements): (vector, vectors)."""
    return cute.make_tensor(rX.iterator, cute.make_layout((plan.vector, plan.vectors)))


def widened(rX: Part, plan):
    """A Part as float32 values (elements)."""
    rF = registers(plan)
    for j in range(plan.vectors):
        vectors_in(rF, plan)[None, j].store(rX.vectors[None, j].load().to(Float32))
    rF[plan.vector * plan.vectors] = rX.edge[0].to(Float32)
    return rF.load()


def rounded(values, dtype, plan) -> Part:
    """values (elements), float32, as a Part in dtype; by vectors, since the hardware rounds neighbours in pairs."""
    rF, rX = registers(plan), empty_part(dtype, plan)
    rF.store(values)
    for j in range(plan.vectors):
        rX.vectors[None, j].store(vectors_in(rF, plan)[None, j].load().to(dtype))
    rX.edge[0] = rF[plan.vector * plan.vectors].to(dtype)
    return rX


def vectors_of(gX: cute.Tensor, tXtX: cute.Tensor, tile: Tile, plan):
    """What a copy takes: vectors of a row gX (n), tXtX (vector, vectors) on chip, and which of them are in the row.

    The first two as ((access, accesses), vectors), the third (accesses, vectors): an access has 128 bits, and a vector
    takes two of them in the wider dtype of a pair.
    """
    access = min(plan.vector, ACCESS_BITS // gX.element_type.width)
    shape = ((access, plan.vector // access), plan.vectors)
    tXgX = cute.make_tensor(gX.iterator + tile.first, cute.make_layout(shape, stride=((1, access), tile.step)))
    own = cute.make_layout(shape, stride=((1, access), tXtX.stride[1]))
    exists = cute.make_layout((plan.vector // access, plan.vectors), stride=(0, 1))
    tXpX = cute.make_tensor(predicate(tile, plan).iterator, exists)
    return on_boundary(tXgX), on_boundary(cute.make_tensor(tXtX.iterator, own)), tXpX


def predicate(tile: Tile, plan):
    """Whether each of this thread's vectors is inside the row: Booleans (vectors)."""
    tXpX = cute.make_rmem_tensor(plan.vectors, Boolean)
    for j in range(plan.vectors):
        tXpX[j] = tile.first + j * tile.step < tile.end
    return tXpX


def vector_atom(mX: cute.Tensor):
    """A load or store of 128 bits, of elements of mX."""
    return cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), mX.element_type, num_bits_per_copy=ACCESS_BITS)


def starts_at_boundary(mW: cute.Tensor, tile: Tile):
    """Whether a thread's first vector in mW (n) starts at a 16-byte boundary."""
    return (mW.iterator + tile.first).toint() % (ACCESS_BITS // 8) == 0
