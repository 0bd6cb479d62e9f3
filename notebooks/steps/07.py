"""Lesson 07: the kernels between the row copy that asks nothing of its rows and one that is right for all of them."""

from typing import NamedTuple

import cutlass
import cutlass.cute as cute
from cutlass import Boolean, Int32

THREADS = 256
VECTOR = 8  # of bfloat16: 128 bits


def promised(tX: cute.Tensor, bytes: int) -> cute.Tensor:
    """The same tensor, of which the compiler now believes that it starts at a multiple of `bytes`."""
    start = cute.make_ptr(tX.element_type, tX.iterator.toint(), cute.AddressSpace.gmem, assumed_align=bytes)
    return cute.make_tensor(start, tX.layout)


@cute.kernel
def promised_copy_kernel(mX: cute.Tensor, mY: cute.Tensor):
    block, _, _ = cute.arch.block_idx()
    thread, _, _ = cute.arch.thread_idx()
    n = Int32(mX.shape[1])
    pieces = cute.ceil_div(n, THREADS * VECTOR)
    row, vector = block // pieces, block % pieces * THREADS + thread
    gX = cute.zipped_divide(promised(mX[row, None], 16), (VECTOR,))  # (vector, n / vector)
    gY = cute.zipped_divide(promised(mY[row, None], 16), (VECTOR,))  # (vector, n / vector)
    if vector * VECTOR < n:
        gY[None, vector].store(gX[None, vector].load())


@cute.jit
def promised_copy(mX: cute.Tensor, mY: cute.Tensor, stream):
    blocks = mX.shape[0] * cute.ceil_div(mX.shape[1], THREADS * VECTOR)
    promised_copy_kernel(mX, mY).launch(grid=(blocks, 1, 1), block=(THREADS, 1, 1), stream=stream)


def rounded_up(tX: cute.Tensor, bytes: int) -> cute.Tensor:
    """The tensor from the next multiple of `bytes` on: its own start where that is one."""
    return cute.make_tensor(tX.iterator.align(bytes), tX.layout)


@cute.kernel
def rounded_copy_kernel(mX: cute.Tensor, mY: cute.Tensor):
    block, _, _ = cute.arch.block_idx()
    thread, _, _ = cute.arch.thread_idx()
    n = Int32(mX.shape[1])
    pieces = cute.ceil_div(n, THREADS * VECTOR)
    row, vector = block // pieces, block % pieces * THREADS + thread
    gX = cute.zipped_divide(rounded_up(mX[row, None], 16), (VECTOR,))  # (vector, n / vector)
    gY = cute.zipped_divide(rounded_up(mY[row, None], 16), (VECTOR,))  # (vector, n / vector)
    if vector * VECTOR < n:
        gY[None, vector].store(gX[None, vector].load())


@cute.jit
def rounded_copy(mX: cute.Tensor, mY: cute.Tensor, stream):
    blocks = mX.shape[0] * cute.ceil_div(mX.shape[1], THREADS * VECTOR)
    rounded_copy_kernel(mX, mY).launch(grid=(blocks, 1, 1), block=(THREADS, 1, 1), stream=stream)


@cute.kernel
def predicated_copy_kernel(mX: cute.Tensor, mY: cute.Tensor):
    block, _, _ = cute.arch.block_idx()
    thread, _, _ = cute.arch.thread_idx()
    n = Int32(mX.shape[1])
    pieces = cute.ceil_div(n, THREADS * VECTOR)
    row, vector = block // pieces, block % pieces * THREADS + thread
    gX = cute.zipped_divide(mX[row, None], (VECTOR,))  # (vector, n / vector)
    gY = cute.zipped_divide(mY[row, None], (VECTOR,))  # (vector, n / vector)
    mC = cute.make_identity_tensor(mX.shape)  # (m, n), each element its own coordinate
    gC = cute.zipped_divide(mC[row, None], (VECTOR,))  # (vector, n / vector)
    rX = cute.make_rmem_tensor(VECTOR, mX.element_type)  # (vector)
    pX = cute.make_rmem_tensor(VECTOR, Boolean)  # (vector)
    for i in cutlass.range_constexpr(VECTOR):
        pX[i] = cute.elem_less(gC[i, vector], mX.shape)
    atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), mX.element_type)
    cute.copy(atom, gX[None, vector], rX, pred=pX)
    cute.copy(atom, rX, gY[None, vector], pred=pX)


@cute.jit
def predicated_copy(mX: cute.Tensor, mY: cute.Tensor, stream):
    blocks = mX.shape[0] * cute.ceil_div(mX.shape[1], THREADS * VECTOR)
    predicated_copy_kernel(mX, mY).launch(grid=(blocks, 1, 1), block=(THREADS, 1, 1), stream=stream)


@cute.kernel
def width_copy_kernel(mX: cute.Tensor, mY: cute.Tensor, width: cutlass.Constexpr):
    block, _, _ = cute.arch.block_idx()
    thread, _, _ = cute.arch.thread_idx()
    n = Int32(mX.shape[1])
    pieces = cute.ceil_div(n, THREADS * width)
    row, vector = block // pieces, block % pieces * THREADS + thread
    bytes = width * mX.element_type.width // 8
    gX = cute.zipped_divide(promised(mX[row, None], bytes), (width,))  # (width, n / width)
    gY = cute.zipped_divide(promised(mY[row, None], bytes), (width,))  # (width, n / width)
    if vector * width < n:
        gY[None, vector].store(gX[None, vector].load())


@cute.jit
def launch_width_copy(mX: cute.Tensor, mY: cute.Tensor, stream, width: cutlass.Constexpr):
    blocks = mX.shape[0] * cute.ceil_div(mX.shape[1], THREADS * width)
    width_copy_kernel(mX, mY, width).launch(grid=(blocks, 1, 1), block=(THREADS, 1, 1), stream=stream)


@cute.jit
def width_copy(mX: cute.Tensor, mY: cute.Tensor, stream):
    bytes = mX.element_type.width // 8
    starts = (mX.iterator.toint() | mY.iterator.toint()) // bytes
    common = mX.shape[1] | mX.stride[0] | mY.stride[0] | starts  # a power of two divides it if it divides all of them
    if common % 8 == 0:
        launch_width_copy(mX, mY, stream, 8)
    elif common % 4 == 0:
        launch_width_copy(mX, mY, stream, 4)
    elif common % 2 == 0:
        launch_width_copy(mX, mY, stream, 2)
    else:
        launch_width_copy(mX, mY, stream, 1)


class Cut(NamedTuple):
    """What a thread takes of a row: a vector, if `first` lies before `end`, and the element `edge`, if there is one."""

    first: Int32
    end: Int32
    edge: Int32


def elements_to_boundary(mX: cute.Tensor, row):
    """Elements of a row of mX (m, n) before its first 16-byte boundary."""
    address = mX[row, None].iterator.toint() // (mX.element_type.width // 8)
    return Int32((VECTOR - address % VECTOR) % VECTOR)


@cute.jit
def row_cut(mX: cute.Tensor, row, along):
    """The Cut of one thread; along: its number among those of the row."""
    n = Int32(mX.shape[1])
    head = min(elements_to_boundary(mX, row), n)
    body = (n - head) // VECTOR * VECTOR
    edge = along
    if along >= head:
        edge = along + body
    return Cut(head + along * VECTOR, head + body, edge)


def vector_at(mX: cute.Tensor, row, first) -> cute.Tensor:
    """The vector (VECTOR) of a row of mX (m, n) that starts at a boundary."""
    start = cute.make_tensor(mX[row, None].iterator + first, cute.make_layout(VECTOR))
    return promised(start, 16)


@cute.kernel
def edge_copy_kernel(mX: cute.Tensor, mY: cute.Tensor):
    block, _, _ = cute.arch.block_idx()
    thread, _, _ = cute.arch.thread_idx()
    n = Int32(mX.shape[1])
    pieces = cute.ceil_div(n, THREADS * VECTOR)
    row, along = block // pieces, block % pieces * THREADS + thread
    cut = row_cut(mX, row, Int32(along))
    if cut.first < cut.end:
        vector_at(mY, row, cut.first).store(vector_at(mX, row, cut.first).load())
    if cut.edge < n:
        mY[row, cut.edge] = mX[row, cut.edge]


@cute.jit
def edge_copy(mX: cute.Tensor, mY: cute.Tensor, stream):
    """For mX and mY whose rows start at the same place of a vector."""
    blocks = mX.shape[0] * cute.ceil_div(mX.shape[1], THREADS * VECTOR)
    edge_copy_kernel(mX, mY).launch(grid=(blocks, 1, 1), block=(THREADS, 1, 1), stream=stream)
