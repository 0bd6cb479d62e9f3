"""Lesson 14: SwiGLU's kernels, and a norm and a loss for the exercise, for who has none of their own."""

import math
import statistics
import time

import cutlass
import cutlass.cute as cute
import torch
from cutlass import Float32, Int32, Int64
from torch.utils._python_dispatch import TorchDispatchMode

from quack_lite import copies, grid, reductions, tiling
from quack_lite.bench import gpu_lock
from quack_lite.draw.picture import BLUE, LIGHT, SKY, SMALL, WIDTH, YELLOW, axes, caption, panels, picture
from quack_lite.kernels.swiglu import sigmoid

THREADS = 256
VECTOR = 8  # of bfloat16: 128 bits
WARP = 32


@cute.kernel
def swiglu_kernel(mGate: cute.Tensor, mUp: cute.Tensor, mY: cute.Tensor):
    block, _, _ = cute.arch.block_idx()
    thread, _, _ = cute.arch.thread_idx()
    n = mY.shape[0]
    group = block * THREADS + thread
    gGate = cute.zipped_divide(mGate, (VECTOR,))  # (vector, n / vector)
    gUp = cute.zipped_divide(mUp, (VECTOR,))  # (vector, n / vector)
    gY = cute.zipped_divide(mY, (VECTOR,))  # (vector, n / vector)
    if group < n // VECTOR:
        gate = gGate[None, group].load().to(Float32)  # (vector)
        up = gUp[None, group].load().to(Float32)  # (vector)
        gY[None, group].store((gate * sigmoid(gate) * up).to(mY.element_type))
    if group < n % VECTOR:
        gate, up = mGate[n - 1 - group].to(Float32), mUp[n - 1 - group].to(Float32)
        mY[n - 1 - group] = (gate * sigmoid(gate) * up).to(mY.element_type)


@cute.jit
def swiglu(mGate: cute.Tensor, mUp: cute.Tensor, mY: cute.Tensor, stream):
    blocks = cute.ceil_div(mY.shape[0], THREADS * VECTOR)
    swiglu_kernel(mGate, mUp, mY).launch(grid=(blocks, 1, 1), block=(THREADS, 1, 1), stream=stream)


@cute.jit
def streamless_swiglu(mGate: cute.Tensor, mUp: cute.Tensor, mY: cute.Tensor, stream):
    blocks = cute.ceil_div(mY.shape[0], THREADS * VECTOR)
    swiglu_kernel(mGate, mUp, mY).launch(grid=(blocks, 1, 1), block=(THREADS, 1, 1))


def flat(x):
    """The elements of x in one dimension, from a multiple of 16 bytes on; a copy if need be."""
    x = x.contiguous().view(-1)
    return x if x.data_ptr() % 16 == 0 else x.clone()


@cute.kernel
def rows_kernel(mGate: cute.Tensor, mUp: cute.Tensor, mY: cute.Tensor, plan: cutlass.Constexpr):
    # tile
    tile = copies.row_tile(mGate, grid.piece_place(mGate, plan), plan)

    # load
    gate = copies.load(mGate, tile, plan)  # (elements)
    up = copies.load(mUp, tile, plan)  # (elements)

    # compute
    y = gate * sigmoid(gate) * up  # (elements)

    # store
    copies.store(y, mY, tile, plan)


def rows_with(plan: tiling.RowPlan):
    """A host function for rows however far apart they lie."""

    @cute.jit
    def swiglu(mGate: cute.Tensor, mUp: cute.Tensor, mY: cute.Tensor, stream):
        rows_kernel(mGate, mUp, mY, plan).launch(**grid.a_block_a_piece(mGate, plan), stream=stream)

    return swiglu


@cute.kernel
def swiglu_backward_kernel(
    mdY: cute.Tensor, mGate: cute.Tensor, mUp: cute.Tensor, mdGate: cute.Tensor, mdUp: cute.Tensor
):
    block, _, _ = cute.arch.block_idx()
    thread, _, _ = cute.arch.thread_idx()
    n = mdY.shape[0]
    group = block * THREADS + thread
    gdY = cute.zipped_divide(mdY, (VECTOR,))  # (vector, n / vector)
    gGate = cute.zipped_divide(mGate, (VECTOR,))  # (vector, n / vector)
    gUp = cute.zipped_divide(mUp, (VECTOR,))  # (vector, n / vector)
    gdGate = cute.zipped_divide(mdGate, (VECTOR,))  # (vector, n / vector)
    gdUp = cute.zipped_divide(mdUp, (VECTOR,))  # (vector, n / vector)
    if group < n // VECTOR:
        dy = gdY[None, group].load().to(Float32)  # (vector)
        gate = gGate[None, group].load().to(Float32)  # (vector)
        up = gUp[None, group].load().to(Float32)  # (vector)
        dgate, dup = swiglu_gradients(dy, gate, up)
        gdGate[None, group].store(dgate.to(mdGate.element_type))
        gdUp[None, group].store(dup.to(mdUp.element_type))
    if group < n % VECTOR:
        last = n - 1 - group
        dgate, dup = swiglu_gradients(mdY[last].to(Float32), mGate[last].to(Float32), mUp[last].to(Float32))
        mdGate[last] = dgate.to(mdGate.element_type)
        mdUp[last] = dup.to(mdUp.element_type)


def swiglu_gradients(dy, gate, up):
    """d_gate = dy * up * s * (1 + gate * (1 - s)) with s = sigmoid(gate), and d_up = dy * gate * s."""
    s = sigmoid(gate)
    return dy * up * s * (1.0 + gate * (1.0 - s)), dy * (gate * s)


@cute.jit
def swiglu_backward(
    mdY: cute.Tensor, mGate: cute.Tensor, mUp: cute.Tensor, mdGate: cute.Tensor, mdUp: cute.Tensor, stream
):
    blocks = cute.ceil_div(mdY.shape[0], THREADS * VECTOR)
    kernel = swiglu_backward_kernel(mdY, mGate, mUp, mdGate, mdUp)
    kernel.launch(grid=(blocks, 1, 1), block=(THREADS, 1, 1), stream=stream)


# For the exercise: a warp a row, an element a lane and turn. They are right for every length, and not fast.

EPS = 1e-6
IGNORED = -100
LOWEST = -3.4028234663852886e38  # of the finite float32 numbers


@cute.kernel
def qk_norm_kernel(mX: cute.Tensor, mW: cute.Tensor, mY: cute.Tensor):
    block, _, _ = cute.arch.block_idx()
    thread, _, _ = cute.arch.thread_idx()
    row, lane = block * (THREADS // WARP) + thread // WARP, thread % WARP
    heads, n = Int32(mX.shape[1]), Int32(mX.shape[2])
    if row < mX.shape[0] * heads:
        gX = mX[row // heads, row % heads, None]  # (n)
        gY = mY[row // heads, row % heads, None]  # (n)
        squares = Float32(0.0)
        for j in cutlass.range(lane, n, WARP):
            x = gX[j].to(Float32)
            squares += x * x
        (squares,) = reductions.warp_reduce((squares,), reductions.SUM)
        rstd = cute.math.rsqrt(squares / Float32(n) + EPS)
        for j in cutlass.range(lane, n, WARP):
            gY[j] = (gX[j].to(Float32) * rstd * (1.0 + mW[j])).to(mY.element_type)


@cute.jit
def qk_norm(mX: cute.Tensor, mW: cute.Tensor, mY: cute.Tensor, stream):
    """mX (tokens, heads, n), mW (n) float32 -> mY (tokens, heads, n)."""
    blocks = cute.ceil_div(mX.shape[0] * mX.shape[1], THREADS // WARP)
    qk_norm_kernel(mX, mW, mY).launch(grid=(blocks, 1, 1), block=(THREADS, 1, 1), stream=stream)


def combine(a, b):
    """Two (max, sum of exp(x - max), sum of (x - max) * exp(x - max)) become one, the identity among them."""
    higher = cute.arch.fmax(a[0], b[0])
    left, right = a[0] - reductions.finite(higher), b[0] - reductions.finite(higher)
    left, right = cute.arch.fmax(left, LOWEST), cute.arch.fmax(right, LOWEST)  # 0 * -inf would be NaN
    ours, theirs = cute.math.exp(left), cute.math.exp(right)
    far = ours * (a[2] + left * a[1]) + theirs * (b[2] + right * b[1])
    return higher, a[1] * ours + b[1] * theirs, far


ENTROPY = reductions.Operator((-math.inf, 0.0, 0.0), combine)


@cute.kernel
def zloss_kernel(mX: cute.Tensor, mTarget: cute.Tensor, z: Float32, mOut: cute.Tensor):
    block, _, _ = cute.arch.block_idx()
    thread, _, _ = cute.arch.thread_idx()
    row, lane = block * (THREADS // WARP) + thread // WARP, thread % WARP
    n = Int32(mX.shape[1])
    if row < mX.shape[0]:
        value = (Float32(-math.inf), Float32(0.0), Float32(0.0))
        for j in cutlass.range(lane, n, WARP):
            value = combine(value, (mX[row, j].to(Float32), Float32(1.0), Float32(0.0)))
        row_max, row_sum, row_far = reductions.warp_reduce(value, ENTROPY)
        if lane == 0:
            lse = row_max + cute.math.log(row_sum)
            target, loss = Int64(mTarget[row]), Float32(math.nan)
            if target >= 0 and target < n:
                loss = lse - mX[row, target].to(Float32) + z * lse * lse
            if target == IGNORED:
                loss = Float32(0.0)
            mOut[row, 0] = loss
            mOut[row, 1] = cute.math.log(row_sum) - row_far / row_sum


@cute.jit
def zloss(mX: cute.Tensor, mTarget: cute.Tensor, z: Float32, mOut: cute.Tensor, stream):
    """mX (m, n), mTarget (m) int64 -> mOut (m, 2) float32: the loss and the entropy."""
    blocks = cute.ceil_div(mX.shape[0], THREADS // WARP)
    zloss_kernel(mX, mTarget, z, mOut).launch(grid=(blocks, 1, 1), block=(THREADS, 1, 1), stream=stream)


# What takes times, alone on the GPU among notebooks that ask for it, and draws them.


def microseconds(calls):
    """In which each of {name: call} returns, whether or not the GPU has done it."""
    return _in_turns(calls, 200, 9, False, 1e6)


def milliseconds(calls):
    """From one call to the next, by the clock on the wall, the GPU's work included, for each of {name: call}."""
    return _in_turns(calls, 3, 30, True, 1e3)


@gpu_lock(exclusive=True)
def _in_turns(calls, count, rounds, wait, scale):
    """The median over rounds of the mean of `count` calls; each has its turn in a round, so a slow moment hits all."""
    taken = [{name: _seconds(call, count, wait) for name, call in calls.items()} for _ in range(rounds)]
    return {name: scale * statistics.median(round[name] for round in taken) for name in calls}


def _seconds(call, count, wait):
    call()
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(count):
        call()
    if wait:
        torch.cuda.synchronize()
    return (time.perf_counter() - begin) / count


@gpu_lock(exclusive=True)
def clocks(calls, rounds=9):
    """{name: (ms of the host, ms of the GPU)} for {name: call}, each for itself: neither waits for the other.

    The GPU waits until the host has sent all of a call; then it works off its queue without a pause.
    """
    taken = [{name: _both(call) for name, call in calls.items()} for _ in range(rounds)]
    return {name: tuple(statistics.median(round[name][i] for round in taken) for i in (0, 1)) for name in calls}


def _both(call):
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    call()
    torch.cuda.synchronize()
    torch.cuda._sleep(30_000_000)  # longer than the host takes to send
    begin.record()
    start = time.perf_counter()
    call()
    host = 1e3 * (time.perf_counter() - start)
    end.record()
    torch.cuda.synchronize()
    return host, begin.elapsed_time(end)


class Listener(TorchDispatchMode):
    """Counts the operators that make a new tensor: a view is none."""

    def __init__(self):
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        self.count += all(argument.alias_info is None for argument in operator._schema.arguments)
        return operator(*args, **(kwargs or {}))


def operators(call):
    """How many operators of torch a call comes to, without gradients and without views."""
    with torch.no_grad(), Listener() as listener:
        call()
    return listener.count


def time_bars(times, unit):
    """A bar a name with its time."""
    figure, plot = axes(WIDTH, 0.7 + 0.35 * len(times))
    plot.bar_label(plot.barh(list(times), list(times.values()), color=BLUE), fmt="%.3g", padding=3)
    plot.invert_yaxis()
    plot.set(xlabel=unit, xlim=(0, 1.15 * max(times.values())))
    said = ", ".join(f"{name} {value:.3g}" for name, value in times.items())
    return picture(figure, f"bars of {unit}: {said}")


def draw_clocks(found):
    """For each title what clocks gave: two bars a way, of the host and of the GPU."""
    figure, plots = panels([0.5 + 0.4 * len(ways) for ways in found.values()])
    longest = max(max(times) for ways in found.values() for times in ways.values())
    said = []
    for plot, (title, ways) in zip(plots, found.items(), strict=True):
        for shift, colour, name, which in ((-0.2, SKY, "host", 0), (0.2, YELLOW, "GPU", 1)):
            places = [row + shift for row in range(len(ways))]
            bars = plot.barh(places, [times[which] for times in ways.values()], 0.36, color=colour, label=name)
            plot.bar_label(bars, fmt="%.2f", padding=3, fontsize=SMALL)
        said += [f"{title}, {name}: host {host:.2f} ms, GPU {gpu:.2f} ms" for name, (host, gpu) in ways.items()]
        plot.set_yticks(range(len(ways)), list(ways))
        plot.set(xlim=(0, 1.12 * longest))
        plot.invert_yaxis()
        caption(plot, title)
    plots[0].legend(ncols=2, frameon=False, fontsize=SMALL, loc="lower right", bbox_to_anchor=(1, 1))
    plots[-1].set_xlabel("ms")
    return picture(figure, "; ".join(said))


@gpu_lock(exclusive=True)
def late_input(kernel, where=None):
    """Calls kernel(gate, up, y) on another stream, behind a wait and a fill of gate; (wait, fill, kernel) as spans.

    where: the stream that the kernel runs on, if it is not that one. A span: (stream's name, begin, end) in ms.
    """
    gate, up, y = (torch.ones(2**26, device="cuda", dtype=torch.bfloat16) for _ in range(3))
    side, marks = torch.cuda.Stream(), [torch.cuda.Event(enable_timing=True) for _ in range(6)]
    torch.cuda.synchronize()
    marks[0].record()
    with torch.cuda.stream(side):
        marks[1].record()
        torch.cuda._sleep(1_000_000)
        marks[2].record()
        gate.fill_(8)
        marks[3].record()
        marks[4].record(where or side)
        kernel(gate, up, y)
        marks[5].record(where or side)
    torch.cuda.synchronize()
    at = [marks[0].elapsed_time(mark) for mark in marks]
    name = "default" if where else "another"
    return {"wait": ("another", at[1], at[2]), "fill": ("another", at[2], at[3]), "kernel": (name, at[4], at[5])}


def draw_streams(runs):
    """For each title what late_input gave: a line a stream, a bar a piece of work."""
    figure, plots = panels([1.35] * len(runs))
    colours = {"wait": LIGHT, "fill": SKY, "kernel": YELLOW}
    longest = max(end for spans in runs.values() for _, _, end in spans.values())
    said = []
    for plot, (title, spans) in zip(plots, runs.items(), strict=True):
        for name, (stream, begin, end) in spans.items():
            row = ("another", "default").index(stream)
            plot.barh(row, end - begin, left=begin, color=colours[name], edgecolor="black", linewidth=0.5, label=name)
            said.append(f"{title}: {name} on {stream} from {begin:.3f} to {end:.3f} ms")
        plot.set(xlim=(0, longest), ylim=(-0.6, 1.6))
        plot.set_yticks([0, 1], ["another stream", "default stream"])
        caption(plot, title)
    plots[0].legend(ncols=3, frameon=False, fontsize=SMALL, loc="lower right", bbox_to_anchor=(1, 1))
    plots[-1].set_xlabel("ms")
    return picture(figure, "; ".join(said))
