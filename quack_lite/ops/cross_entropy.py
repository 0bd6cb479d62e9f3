"""cross_entropy: losses of rows by a kernel; class weights, smoothing and the reduction on vectors of m numbers."""

import torch

from quack_lite import rows, tiling
from quack_lite.ops.registry import register, register_differentiable, watched


def run(input, target, weight, ignore_index, reduction, label_smoothing, inplace_backward):
    """-> loss in the input's dtype; log(sum(exp)) of each row (m) in float32; for a mean, what it divides by."""
    labels = rows.column(target, torch.int64)
    losses, lse = row_losses(input, labels, weight, ignore_index, label_smoothing)
    if reduction == "mean":
        total = denominator(labels, weight, ignore_index)
        return torch.div(losses.sum(), total, out=input.new_empty(())), lse, total
    loss = losses.sum() if reduction == "sum" else losses if target.ndim == 1 else losses.view(target.shape)
    return loss.to(dtype=input.dtype), lse, lse.new_empty(0)


def fake(input, target, weight, ignore_index, reduction, label_smoothing, inplace_backward):
    return (
        input.new_empty(target.shape if reduction == "none" else ()),
        input.new_empty(target.numel(), dtype=torch.float32),
        input.new_empty(() if reduction == "mean" else 0, dtype=torch.float32),
    )


def row_losses(input, labels, weight, ignore_index, label_smoothing):
    """The loss of each row with its weight and smoothing, and its log(sum(exp)); both (m) in float32."""
    m = labels.shape[0]
    loss = input.new_empty(m, dtype=torch.float32)
    lse = torch.empty_like(loss)
    if m:
        x = rows.matrix(input)
        rows.check_rows("cross_entropy", m)
        if label_smoothing:
            w, spread = rows.vector(weight, 1.0, x), torch.empty_like(loss)
            kernel("smoothed_cross_entropy", x)(x, labels, w, loss, lse, spread, ignore_index)
        else:
            kernel("cross_entropy", x, m <= tiling.FEW_ROWS)(x, labels, loss, lse, ignore_index)
        if weight is not None:
            loss = loss * label_weights(labels, weight, ignore_index)
        if label_smoothing:
            loss = torch.add(loss * (1 - label_smoothing), spread, alpha=label_smoothing / x.shape[1])
    return loss, lse


def denominator(labels, weight, ignore_index):
    """The rows that count, each with the weight of its label."""
    if weight is None:
        return (labels != ignore_index).sum(dtype=torch.float32)
    return label_weights(labels, weight, ignore_index).sum()


def label_weights(labels, weight, ignore_index):
    """weight[label] for each row in float32, 0 where the label is ignored or no class."""
    chosen = weight.to(dtype=torch.float32)[labels.clamp(0, len(weight) - 1)]
    return torch.where(counted(labels, len(weight), ignore_index), chosen, 0.0)


def counted(labels, n, ignore_index):
    """Whether a row has a gradient."""
    return (labels != ignore_index) & (labels >= 0) & (labels < n)


def run_backward(grad, input, target, weight, lse, total, ignore_index, reduction, label_smoothing):
    dx = rows.fresh(input)
    write_gradient(dx, grad, input, target, weight, lse, total, ignore_index, reduction, label_smoothing)
    return dx


def fake_backward(grad, input, target, weight, lse, total, ignore_index, reduction, label_smoothing):
    return rows.fresh(input)


def write_gradient(dx, grad, input, target, weight, lse, total, ignore_index, reduction, label_smoothing):
    """Fills dx, which may be the input itself."""
    if not input.numel():
        return
    labels = rows.column(target, torch.int64)
    scale = row_gradients(grad, total, labels.shape[0], reduction)
    x = rows.matrix(input)
    if label_smoothing:
        n = x.shape[1]
        scale = torch.where(counted(labels, n, ignore_index), scale, 0.0)
        target_share = scale * (1 - label_smoothing)
        spread_share = scale * (label_smoothing / n)
        if weight is not None:
            target_share = target_share * label_weights(labels, weight, ignore_index)
        w = rows.vector(weight, 1.0, x)
        power_share = target_share + spread_share * (n if weight is None else w.sum())
        built = kernel("smoothed_cross_entropy_backward", x)
        built(x, labels, w, lse, power_share, target_share, spread_share, rows.matrix(dx))
    else:
        if weight is not None:
            scale = scale * label_weights(labels, weight, ignore_index)
        kernel("cross_entropy_backward", x)(x, labels, lse, scale, rows.matrix(dx), ignore_index)


def row_gradients(grad, total, m, reduction):
    """The gradient of each row's loss (m), contiguous, in float32."""
    if reduction == "mean":
        return torch.div(grad, total.expand(m))
    return rows.column(grad if grad.ndim == 1 else grad.reshape(-1).expand(m), torch.float32)


def kernel(operator, x, few_rows=False):
    """The kernel for the rows of x (m, n)."""
    return rows.kernel(operator, rows.DTYPES[x.dtype], x.shape[1], few_rows)


def save(ctx, inputs, output):
    input, target, weight, *ctx.constants, ctx.inplace = inputs
    _, lse, total = output
    ctx.mark_non_differentiable(lse, total)
    ctx.set_materialize_grads(False)  # zeros for lse and total, which nobody reads
    ctx.save_for_backward(input, target, weight, lse, total)


def backward(ctx, grad, *_):
    if grad is None:
        return (None,) * 7
    input, *others = ctx.saved_tensors
    if not (ctx.inplace and may_be_overwritten(input)):
        return cross_entropy_backward(grad, input, *others, *ctx.constants), *[None] * 6
    dx = input.detach()
    write_gradient(dx, grad, dx, *others, *ctx.constants)
    torch.autograd.graph.increment_version(input)
    return dx, *[None] * 6


def may_be_overwritten(x):
    """Whether the kernel can write where it reads x: no copy is made first, and nothing else follows the call."""
    return not watched(x) and x.is_contiguous() and x.data_ptr() % rows.BOUNDARY == 0


cross_entropy_backward = register(
    "cross_entropy_backward(Tensor grad, Tensor input, Tensor target, Tensor? weight, Tensor lse, Tensor total,"
    " int ignore_index, str reduction, float label_smoothing) -> Tensor",
    run_backward,
    fake_backward,
)
cross_entropy = register_differentiable(
    "cross_entropy(Tensor input, Tensor target, Tensor? weight, int ignore_index, str reduction,"
    " float label_smoothing, bool inplace_backward) -> (Tensor, Tensor, Tensor)",
    run,
    fake,
    save,
    backward,
)
