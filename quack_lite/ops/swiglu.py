"""silu(gate) * up."""

import math

from quack_lite import rows
from quack_lite.ops.registry import register, register_differentiable

LONG_ROW = 2**15
PIECES = 2**10  # elements: whole pieces of every plan


def matrices(*tensors):
    """Tensors of one shape as matrices; contiguous ones with longer rows than theirs where a block had little to do."""
    n = tensors[0].shape[-1]
    if n % PIECES:
        longer = math.gcd(tensors[0].numel(), LONG_ROW)
        if longer > n and all(x.is_contiguous() for x in tensors):
            tensors = [x.view(-1, longer) for x in tensors]
    return [rows.matrix(x) for x in tensors]


def run(gate, up):
    y = rows.fresh(gate)
    if gate.numel():
        rows.kernel("swiglu", rows.DTYPES[gate.dtype], rows.ANY_LENGTH)(*matrices(gate, up, y))
    return y


def fake(gate, up):
    return rows.fresh(gate)


def run_backward(grad, gate, up):
    dgate, dup = rows.fresh(gate), rows.fresh(up)
    if gate.numel():
        kernel = rows.kernel("swiglu_backward", rows.DTYPES[gate.dtype], rows.ANY_LENGTH)
        kernel(*matrices(grad, gate, up, dgate, dup))
    return dgate, dup


def fake_backward(grad, gate, up):
    return rows.fresh(gate), rows.fresh(up)


def save(ctx, inputs, output):
    ctx.save_for_backward(*inputs)


def backward(ctx, grad):
    found = swiglu_backward(grad, *ctx.saved_tensors)
    return tuple(g if needed else None for g, needed in zip(found, ctx.needs_input_grad, strict=False))


swiglu_backward = register(
    "swiglu_backward(Tensor grad, Tensor gate, Tensor up) -> (Tensor, Tensor)", run_backward, fake_backward
)
swiglu = register_differentiable("swiglu(Tensor gate, Tensor up) -> Tensor", run, fake, save, backward)
