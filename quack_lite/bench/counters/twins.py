"""The programs of quack_lite.simt.patterns as kernels: PROGRAM_kernel takes mX, mY and the numbers of the program.

No lane stores to neighbours in shared memory one by one: ptxas makes 128-bit stores of them, though the PTX has 32-bit
ones.
"""

import cutlass
import cutlass.cute as cute
from cutlass import Constexpr, Float32
from cutlass.cute.arch import alloc_smem

TILE = 32


@cute.kernel
def strided_kernel(mX: cute.Tensor, mY: cute.Tensor, stride: Constexpr, offset: Constexpr):
    thread, _, _ = cute.arch.thread_idx()
    mY[thread] = mX[thread * stride + offset]


@cute.kernel
def strided_store_kernel(mX: cute.Tensor, mY: cute.Tensor, stride: Constexpr, offset: Constexpr):
    thread, _, _ = cute.arch.thread_idx()
    mY[thread * stride + offset] = mX[thread]


@cute.kernel
def tail_kernel(mX: cute.Tensor, mY: cute.Tensor, count: Constexpr):
    thread, _, _ = cute.arch.thread_idx()
    if thread < count:
        mY[thread] = mX[thread]


@cute.kernel
def vector_kernel(mX: cute.Tensor, mY: cute.Tensor, width: Constexpr):
    thread, _, _ = cute.arch.thread_idx()
    gX = cute.zipped_divide(mX, (width,))  # (width, threads)
    gY = cute.zipped_divide(mY, (width,))  # (width, threads)
    gY[None, thread].store(gX[None, thread].load())


@cute.kernel
def fields_kernel(mX: cute.Tensor, mY: cute.Tensor, fields: Constexpr):
    thread, _, _ = cute.arch.thread_idx()
    total = mX[thread * fields]
    for field in cutlass.range_constexpr(1, fields):
        total += mX[thread * fields + field]
    mY[thread] = total


@cute.kernel
def neighbours_kernel(mX: cute.Tensor, mY: cute.Tensor, count: Constexpr, width: Constexpr):
    block, _, _ = cute.arch.block_idx()
    thread, _, _ = cute.arch.thread_idx()
    threads, _, _ = cute.arch.block_dim()
    i = block * threads + thread
    loads = count // width
    gX = cute.zipped_divide(mX, (width,))  # (width, n / width)
    total = Float32(0.0)
    for j in cutlass.range_constexpr(loads):
        loaded = gX[None, i * loads + j].load().to(Float32)  # (width)
        total += loaded.reduce(cute.ReductionOp.ADD, Float32(0.0), 0)
    mY[i] = total


@cute.kernel
def shared_tile_kernel(mX: cute.Tensor, mY: cute.Tensor, row: Constexpr, column: Constexpr, read: Constexpr):
    thread, _, _ = cute.arch.thread_idx()
    sX = shared(TILE * max(row, column))
    for k in cutlass.range_constexpr(TILE):
        sX[k * row + thread * column] = mX[k * TILE + thread]
    cute.arch.sync_threads()
    mY[thread] = sX[thread * read]


@cute.kernel
def swizzled_kernel(mX: cute.Tensor, mY: cute.Tensor, column: Constexpr):
    thread, _, _ = cute.arch.thread_idx()
    sX = shared(TILE * TILE)
    for k in cutlass.range_constexpr(TILE):
        sX[k * TILE + (thread ^ k)] = mX[k * TILE + thread]
    cute.arch.sync_threads()
    mY[thread] = sX[thread * TILE + (thread ^ column)]


@cute.kernel
def shared_vector_kernel(
    mX: cute.Tensor, mY: cute.Tensor, width: Constexpr, stride: Constexpr, share: Constexpr, period: Constexpr
):
    thread, _, _ = cute.arch.thread_idx()
    sX = cute.zipped_divide(shared(32 * stride * width, width), (width,))  # (width, 32 * stride)
    gX = cute.zipped_divide(mX, (width,))  # (width, threads)
    gY = cute.zipped_divide(mY, (width,))  # (width, threads)
    sX[None, thread * stride].store(gX[None, thread].load())
    cute.arch.sync_threads()
    gY[None, thread].store(sX[None, thread % period // share * stride].load())


@cute.kernel
def block_sum_kernel(mX: cute.Tensor, mY: cute.Tensor):
    thread, _, _ = cute.arch.thread_idx()
    lane, warp = thread % 32, thread // 32
    sX = shared(4)
    total = mX[thread]
    for mask in cutlass.range_constexpr(5):
        total += cute.arch.shuffle_sync_bfly(total, 16 >> mask)
    if lane == 0:
        sX[warp] = total
    cute.arch.sync_threads()
    total = sX[lane % 4]
    for mask in cutlass.range_constexpr(2):
        total += cute.arch.shuffle_sync_bfly(total, 2 >> mask)
    mY[thread] = total


def shared(elements: int, vector: int = 1):
    """A tensor (elements), float32, in shared memory, at the boundary of one vector."""
    return cute.make_tensor(alloc_smem(Float32, elements, 4 * vector), cute.make_layout(elements))


@cute.jit
def twin(mX: cute.Tensor, mY: cute.Tensor, stream, kernel: Constexpr, numbers: Constexpr, launch: Constexpr):
    """Launches a kernel over (blocks, threads)."""
    blocks, threads = launch
    kernel(mX, mY, *numbers).launch(grid=(blocks, 1, 1), block=(threads, 1, 1), stream=stream)
