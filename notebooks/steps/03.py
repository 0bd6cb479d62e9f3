"""Lesson 03 and its exercise: kernels and programs that are wrong, each in one place."""

import cutlass
import cutlass.cute as cute

KNOWN = True


def launched(kernel):
    """A host function for a kernel of x and y, a thread an element of x."""

    @cute.jit
    def host(mX: cute.Tensor, mY: cute.Tensor, stream):
        blocks = cute.ceil_div(mX.shape[0], 256)
        kernel(mX, mY).launch(grid=(blocks, 1, 1), block=(256, 1, 1), stream=stream)

    return host


@cute.kernel
def plain_if_kernel(mX: cute.Tensor, mY: cute.Tensor):
    i = cute.arch.thread_idx()[0]
    if KNOWN:
        print("traced: the branch that is known to run")
        mY[i] = 3.0 * mX[i]
    else:
        print("traced: the branch that is known not to")
        mY[i] = 5.0 * mX[i]


@cute.kernel
def const_if_kernel(mX: cute.Tensor, mY: cute.Tensor):
    i = cute.arch.thread_idx()[0]
    if cutlass.const_expr(KNOWN):
        print("traced: the branch that is known to run")
        mY[i] = 3.0 * mX[i]
    else:
        print("traced: the branch that is known not to")
        mY[i] = 5.0 * mX[i]


@cute.kernel
def early_return_kernel(mX: cute.Tensor, mY: cute.Tensor):
    block, _, _ = cute.arch.block_idx()
    thread, _, _ = cute.arch.thread_idx()
    i = block * 256 + thread
    if i >= mX.shape[0]:
        return
    mY[i] = 3.0 * mX[i]


@cute.kernel
def changing_type_kernel(mX: cute.Tensor, mY: cute.Tensor):
    i = cute.arch.thread_idx()[0]
    total = 0
    for j in range(i):
        total += mX[j]
    mY[i] = total


@cute.kernel
def shifted_kernel(mX: cute.Tensor, mY: cute.Tensor):
    block, _, _ = cute.arch.block_idx()
    thread, _, _ = cute.arch.thread_idx()
    i = block * 256 + thread
    n = mX.shape[0]
    if i < n:
        mY[i] = mX[(i - 1) % n]


@cute.kernel
def triple_kernel(mX: cute.Tensor, mY: cute.Tensor):
    block, _, _ = cute.arch.block_idx()
    thread, _, _ = cute.arch.thread_idx()
    i = block * 256 + thread
    if i < mX.shape[0]:
        mY[i] = 3.0 * mX[i]


@cute.kernel
def turned_kernel(mX: cute.Tensor, mY: cute.Tensor):
    block, _, _ = cute.arch.block_idx()
    thread, _, _ = cute.arch.thread_idx()
    i = block * 256 + thread
    if i > mX.shape[0]:
        mY[i] = 3.0 * mX[i]


@cute.kernel
def unguarded_kernel(mX: cute.Tensor, mY: cute.Tensor):
    block, _, _ = cute.arch.block_idx()
    thread, _, _ = cute.arch.thread_idx()
    i = block * 256 + thread
    mY[i] = 3.0 * mX[i]


@cute.kernel
def peek_kernel(mX: cute.Tensor, mWhere: cute.Tensor, mY: cute.Tensor):
    if cute.arch.thread_idx()[0] == 0:
        mY[0] = mX[mWhere[0]]


@cute.jit
def peek(mX: cute.Tensor, mWhere: cute.Tensor, mY: cute.Tensor, stream):
    peek_kernel(mX, mWhere, mY).launch(grid=(1, 1, 1), block=(32, 1, 1), stream=stream)


# The exercise's.


@cute.kernel
def broken_clip_kernel(mX: cute.Tensor, mY: cute.Tensor):
    block, _, _ = cute.arch.block_idx()
    thread, _, _ = cute.arch.thread_idx()
    i = block * 256 + thread
    if i < mX.shape[0]:
        value = mX[i]
        if value > 1.0:
            value = 1
        if value < -1.0:
            value = -1
        mY[i] = value


@cute.kernel
def broken_roll_kernel(mX: cute.Tensor, mShift: cute.Tensor, mY: cute.Tensor):
    block, _, _ = cute.arch.block_idx()
    thread, _, _ = cute.arch.thread_idx()
    i = block * 256 + thread
    n = mX.shape[0]
    if i < n:
        mY[i] = mX[(i - mShift[0]) % n]


@cute.kernel
def broken_take_kernel(mX: cute.Tensor, mWhich: cute.Tensor, mY: cute.Tensor):
    block, _, _ = cute.arch.block_idx()
    thread, _, _ = cute.arch.thread_idx()
    i = block * 256 + thread
    if i < mY.shape[0]:
        mY[i] = mX[mWhich[i]]


@cute.kernel
def broken_prefix_kernel(mX: cute.Tensor, mY: cute.Tensor):
    block, _, _ = cute.arch.block_idx()
    thread, _, _ = cute.arch.thread_idx()
    i = block * 256 + thread
    if i < mX.shape[0]:
        for j in range(i):
            if mX[j] > 1.0:
                break
        mY[i] = mX[j]


def broken_interleave(b, x, y, z, n):
    i = b.ctaid * b.ntid + b.tid
    inside = i < 2 * n
    b.st_global(z, 2 * i, b.ld_global(x, i, where=inside), where=inside)
    b.st_global(z, 2 * i + 1, b.ld_global(y, i, where=inside), where=inside)
