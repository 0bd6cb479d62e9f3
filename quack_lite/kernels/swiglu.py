"""swiglu(gate, up) = silu(gate) * up, silu(g) = g * sigmoid(g), forward and backward, element by element.

d_up   = dy * silu(gate)
d_gate = dy * up * sigmoid(gate) * (1 + gate * (1 - sigmoid(gate)))
"""

import cutlass
import cutlass.cute as cute

from quack_lite import copies, grid, reductions


@cute.kernel
def swiglu_kernel(mGate: cute.Tensor, mUp: cute.Tensor, mY: cute.Tensor, plan: cutlass.Constexpr):
    # tile
    tile = copies.row_tile(mGate, grid.piece_place(mGate, plan), plan)

    # load
    gate = copies.load(mGate, tile, plan)  # (elements)
    up = copies.load(mUp, tile, plan)  # (elements)

    # compute
    y = gate * sigmoid(gate) * up  # (elements)

    # store
    copies.store(y, mY, tile, plan)


@cute.kernel
def swiglu_backward_kernel(
    mdY: cute.Tensor,
    mGate: cute.Tensor,
    mUp: cute.Tensor,
    mdGate: cute.Tensor,
    mdUp: cute.Tensor,
    plan: cutlass.Constexpr,
):
    # tile
    tile = copies.row_tile(mGate, grid.piece_place(mGate, plan), plan)

    # load
    dy = copies.load(mdY, tile, plan)  # (elements)
    gate = copies.load(mGate, tile, plan)  # (elements)
    up = copies.load(mUp, tile, plan)  # (elements)

    # compute
    s = sigmoid(gate)  # (elements)
    dup = dy * (gate * s)  # (elements)
    dgate = dy * up * s * (1.0 + gate * (1.0 - s))  # (elements)

    # store
    copies.store(dgate, mdGate, tile, plan)
    copies.store(dup, mdUp, tile, plan)


def sigmoid(x):
    """1 / (1 + e**-x); the reciprocal is the hardware's, relative error about 2**-23."""
    return cute.math.rcp(1.0 + reductions.exp(-x), approx=True, ftz=True)


@cute.jit
def swiglu(mGate: cute.Tensor, mUp: cute.Tensor, mY: cute.Tensor, stream, plan: cutlass.Constexpr):
    """mGate, mUp (m, n) -> mY (m, n)."""
    swiglu_kernel(mGate, mUp, mY, plan).launch(**grid.a_block_a_piece(mGate, plan), stream=stream)


@cute.jit
def swiglu_backward(
    mdY: cute.Tensor,
    mGate: cute.Tensor,
    mUp: cute.Tensor,
    mdGate: cute.Tensor,
    mdUp: cute.Tensor,
    stream,
    plan: cutlass.Constexpr,
):
    """mdY, mGate, mUp (m, n) -> mdGate, mdUp (m, n)."""
    swiglu_backward_kernel(mdY, mGate, mUp, mdGate, mdUp, plan).launch(
        **grid.a_block_a_piece(mGate, plan), stream=stream
    )
