"""rms_norm of input + residual, over the last dimension, with the sum as a second output."""

import torch

from quack_lite import catalog, rows
from quack_lite.ops.gradients import partial_sums, summed, without_rows
from quack_lite.ops.registry import register, register_differentiable
from quack_lite.ops.rms_norm import rms_norm_backward


def run(input, residual, weight, eps):
    """residual has the dtype of the new residual: the input's, or float32."""
    y, r = fake(input, residual, weight, eps)
    if input.numel():
        wide = vector_bytes(input.dtype, residual.dtype)
        x, w = rows.matrix(input), rows.vector(weight, 1.0, input)
        m, n = x.shape
        built = rows.kernel("add_rms_norm", rows.pair_name(input.dtype, residual.dtype), n)
        groups = catalog.groups(built, m, n, x.device)
        built(x, rows.matrix(residual, wide), w, rows.flat(y), rows.flat(r), eps, groups)
    return y, r


def fake(input, residual, weight, eps):
    return rows.fresh(input), rows.fresh(residual)


def run_backward(grad, residual_grad, residual, weight, eps, weight_grad):
    """residual: the new one -> gradient of the sum, in its dtype; of the weight, as in rms_norm_backward."""
    dx = rows.fresh(residual)
    if not residual.numel():
        return dx, without_rows(residual, weight_grad)
    wide = vector_bytes(grad.dtype, residual.dtype)
    r, w = rows.matrix(residual, wide), rows.vector(weight, 1.0, residual)
    built = rows.kernel("add_rms_norm_backward", rows.pair_name(grad.dtype, residual.dtype), r.shape[1])
    dw = partial_sums(built, r)
    built(rows.matrix(grad), rows.matrix(residual_grad, wide), r, w, rows.flat(dx), dw, eps)
    return dx, summed(dw, weight_grad)


def fake_backward(grad, residual_grad, residual, weight, eps, weight_grad):
    return rows.fresh(residual), without_rows(residual, weight_grad)


def save(ctx, inputs, output):
    input, _, weight, ctx.eps = inputs
    ctx.dtype = input.dtype
    ctx.save_for_backward(output[1], weight)
    ctx.set_materialize_grads(False)


def backward(ctx, grad, residual_grad):
    residual, weight = ctx.saved_tensors
    input_needs, residual_needs, weight_needs = ctx.needs_input_grad[:3]
    dx, dw = gradients(grad, residual_grad, residual, weight, ctx.eps, weight_needs)
    return (
        dx.to(dtype=ctx.dtype) if input_needs and dx is not None else None,
        dx if residual_needs else None,
        dw.to(dtype=weight.dtype) if weight_needs and dw is not None else None,
        None,
    )


def gradients(grad, residual_grad, residual, weight, eps, weight_grad):
    """Of the sum and of the weight; None where neither output's gradient (or None) reaches them."""
    if grad is None:
        return residual_grad, None
    if residual_grad is None and grad.dtype == residual.dtype:
        return rms_norm_backward(grad, residual, weight, eps, weight_grad)
    if residual_grad is None:
        residual_grad = torch.zeros_like(residual)
    return add_rms_norm_backward(grad, residual_grad, residual, weight, eps, weight_grad)


def vector_bytes(dtype: torch.dtype, residual_dtype: torch.dtype) -> int:
    """Bytes of a residual's vector: it has as many elements as the input's."""
    return rows.BOUNDARY * residual_dtype.itemsize // dtype.itemsize


add_rms_norm_backward = register(
    "add_rms_norm_backward(Tensor grad, Tensor residual_grad, Tensor residual, Tensor? weight, float eps,"
    " bool weight_grad) -> (Tensor, Tensor)",
    run_backward,
    fake_backward,
)
add_rms_norm = register_differentiable(
    "add_rms_norm(Tensor input, Tensor residual, Tensor? weight, float eps) -> (Tensor, Tensor)",
    run,
    fake,
    save,
    backward,
)
