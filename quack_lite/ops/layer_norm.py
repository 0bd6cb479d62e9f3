"""layer_norm over the last dimension."""

import math

import torch

from quack_lite import catalog, rows
from quack_lite.ops.gradients import partial_sums, summed, without_rows
from quack_lite.ops.registry import register, register_differentiable


def run(input, weight, bias, eps):
    """-> output; mean and 1 / standard deviation of each row (m) in float32."""
    if not input.numel():
        return fake(input, weight, bias, eps)
    x, w, b = rows.matrix(input), rows.vector(weight, 1.0, input), rows.vector(bias, 0.0, input)
    m, n = x.shape
    y, mean = rows.fresh(input), x.new_empty(m, dtype=torch.float32)
    rstd = torch.empty_like(mean)
    built = rows.kernel("layer_norm", rows.DTYPES[x.dtype], n)
    built(x, w, b, rows.flat(y), mean, rstd, eps, catalog.groups(built, m, n, x.device))
    return y, mean, rstd


def fake(input, weight, bias, eps):
    m = math.prod(input.shape[:-1])
    return (
        rows.fresh(input),
        input.new_empty(m, dtype=torch.float32),
        input.new_empty(m, dtype=torch.float32),
    )


def run_backward(grad, input, weight, mean, rstd, weight_grad, bias_grad):
    """-> gradient of the input; of weight and bias in float32, empty unless weight_grad and bias_grad."""
    dx = rows.fresh(input)
    if not input.numel():
        return dx, without_rows(input, weight_grad), without_rows(input, bias_grad)
    x, w = rows.matrix(input), rows.vector(weight, 1.0, input)
    built = rows.kernel("layer_norm_backward", rows.DTYPES[x.dtype], x.shape[1])
    dw = partial_sums(built, x)
    db = torch.empty_like(dw)
    built(rows.matrix(grad), x, w, mean, rstd, rows.flat(dx), dw, db)
    return dx, summed(dw, weight_grad), summed(db, bias_grad)


def fake_backward(grad, input, weight, mean, rstd, weight_grad, bias_grad):
    return rows.fresh(input), without_rows(input, weight_grad), without_rows(input, bias_grad)


def save(ctx, inputs, output):
    input, weight, bias, _ = inputs
    _, mean, rstd = output
    ctx.mark_non_differentiable(mean, rstd)
    ctx.set_materialize_grads(False)  # zeros for mean and rstd, which nobody reads
    ctx.save_for_backward(input, weight, mean, rstd)
    ctx.bias_dtype = None if bias is None else bias.dtype


def backward(ctx, grad, *_):
    if grad is None:
        return (None,) * 4
    input, weight, mean, rstd = ctx.saved_tensors
    input_grad, weight_grad, bias_grad = ctx.needs_input_grad[:3]
    dx, dw, db = layer_norm_backward(grad, input, weight, mean, rstd, weight_grad, bias_grad)
    return (
        dx if input_grad else None,
        dw.to(dtype=weight.dtype) if weight_grad else None,
        db.to(dtype=ctx.bias_dtype) if bias_grad else None,
        None,
    )


layer_norm_backward = register(
    "layer_norm_backward(Tensor grad, Tensor input, Tensor? weight, Tensor mean, Tensor rstd, bool weight_grad,"
    " bool bias_grad) -> (Tensor, Tensor, Tensor)",
    run_backward,
    fake_backward,
)
layer_norm = register_differentiable(
    "layer_norm(Tensor input, Tensor? weight, Tensor? bias, float eps) -> (Tensor, Tensor, Tensor)",
    run,
    fake,
    save,
    backward,
)
