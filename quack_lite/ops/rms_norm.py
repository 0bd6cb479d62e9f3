"""rms_norm over the last dimension."""

from quack_lite import catalog, rows
from quack_lite.ops.gradients import partial_sums, summed, without_rows
from quack_lite.ops.registry import register, register_differentiable


def run(input, weight, eps):
    y = rows.fresh(input)
    if input.numel():
        x, w = rows.matrix(input), rows.vector(weight, 1.0, input)
        m, n = x.shape
        built = rows.kernel("rms_norm", rows.DTYPES[x.dtype], n)
        built(x, w, rows.flat(y), eps, catalog.groups(built, m, n, x.device))
    return y


def fake(input, weight, eps):
    return rows.fresh(input)


def run_backward(grad, input, weight, eps, weight_grad):
    """-> gradient of the input; of the weight in float32, empty unless weight_grad."""
    dx = rows.fresh(input)
    if not input.numel():
        return dx, without_rows(input, weight_grad)
    x, w = rows.matrix(input), rows.vector(weight, 1.0, input)
    built = rows.kernel("rms_norm_backward", rows.DTYPES[x.dtype], x.shape[1])
    dw = partial_sums(built, x)
    built(rows.matrix(grad), x, w, rows.flat(dx), dw, eps)
    return dx, summed(dw, weight_grad)


def fake_backward(grad, input, weight, eps, weight_grad):
    return rows.fresh(input), without_rows(input, weight_grad)


def save(ctx, inputs, output):
    input, weight, ctx.eps = inputs
    ctx.save_for_backward(input, weight)


def backward(ctx, grad):
    input, weight = ctx.saved_tensors
    input_grad, weight_grad, _ = ctx.needs_input_grad[:3]
    dx, dw = rms_norm_backward(grad, input, weight, ctx.eps, weight_grad)
    return dx if input_grad else None, dw.to(dtype=weight.dtype) if weight_grad else None, None


rms_norm_backward = register(
    "rms_norm_backward(Tensor grad, Tensor input, Tensor? weight, float eps, bool weight_grad) -> (Tensor, Tensor)",
    run_backward,
    fake_backward,
)
rms_norm = register_differentiable(
    "rms_norm(Tensor input, Tensor? weight, float eps) -> Tensor", run, fake, save, backward
)
