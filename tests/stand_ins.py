"""Each operator at the level of its kernel in float64 torch, in place of the kernel: outputs are written into."""

import torch
import torch.nn.functional as F


def bits(x):
    return x.view({2: torch.int16, 4: torch.int32}[x.itemsize])


def copy(x, y):
    bits(y).copy_(bits(x))


def softmax(x, y):
    y.copy_(torch.softmax(x.double(), -1))


def log_softmax(x, y):
    y.copy_(torch.log_softmax(x.double(), -1))


def softmax_backward(dy, y, dx):
    dy, y = dy.double(), y.double()
    dx.copy_(y * (dy - (y * dy).sum(-1, keepdim=True)))


def log_softmax_backward(dy, y, dx):
    dy, y = dy.double(), y.double()
    dx.copy_(dy - y.exp() * dy.sum(-1, keepdim=True))


def fill_partial_sums(partial, rows):
    """Group g gets the rows g, g + p, g + 2 p, ..."""
    for group in range(len(partial)):
        partial[group] = rows[group :: len(partial)].sum(0)


def rms_norm(x, weight, y, eps, groups):
    x = x.double()
    y.copy_(x * (x.square().mean(-1, keepdim=True) + eps).rsqrt() * weight.double())


def rms_norm_backward(dy, x, weight, dx, dweight, eps):
    dy, x = dy.double(), x.double()
    rstd = (x.square().mean(-1, keepdim=True) + eps).rsqrt()
    g, x_hat = dy * weight.double(), x * rstd
    dx.copy_(rstd * (g - x_hat * (g * x_hat).mean(-1, keepdim=True)))
    fill_partial_sums(dweight, dy * x_hat)


def add_rms_norm(x, residual, weight, y, new_residual, eps, groups):
    new_residual.copy_(x.float() + residual.float())
    rms_norm(new_residual, weight, y, eps, groups)


def add_rms_norm_backward(dy, dresidual, residual, weight, dsum, dweight, eps):
    dx = torch.empty_like(residual, dtype=torch.float64)
    rms_norm_backward(dy, residual, weight, dx, dweight, eps)
    dsum.copy_(dresidual.double() + dx)


def layer_norm(x, weight, bias, y, mean, rstd, eps, groups):
    x = x.double()
    mean.copy_(x.mean(-1))
    away = x - x.mean(-1, keepdim=True)
    scale = (away.square().mean(-1, keepdim=True) + eps).rsqrt()
    rstd.copy_(scale.squeeze(-1))
    y.copy_(away * scale * weight.double() + bias.double())


def layer_norm_backward(dy, x, weight, mean, rstd, dx, dweight, dbias):
    dy, scale = dy.double(), rstd.double()[:, None]
    x_hat, g = (x.double() - mean.double()[:, None]) * scale, dy * weight.double()
    dx.copy_(scale * (g - g.mean(-1, keepdim=True) - x_hat * (g * x_hat).mean(-1, keepdim=True)))
    fill_partial_sums(dweight, dy * x_hat)
    fill_partial_sums(dbias, dy)


def known(target, n):
    return (target >= 0) & (target < n)


def cross_entropy(x, target, loss, lse, ignore_index):
    n = x.shape[1]
    logs = torch.log_softmax(x.double(), -1)
    lse.copy_(torch.where((x == torch.inf).any(-1), torch.nan, torch.logsumexp(x.double(), -1)))
    wanted = torch.where(known(target, n), target, 0)
    found = F.nll_loss(logs, wanted, reduction="none").masked_fill(~known(target, n), torch.nan)
    loss.copy_(found.masked_fill(target == ignore_index, 0))


def smoothed_cross_entropy(x, target, weight, loss, lse, spread, ignore_index):
    cross_entropy(x, target, loss, lse, ignore_index)
    logs = torch.log_softmax(x.double(), -1)
    found = -(weight.double() * logs).sum(-1).masked_fill(~known(target, x.shape[1]), torch.nan)
    spread.copy_(found.masked_fill(target == ignore_index, 0))


def onehot(target, x):
    return (torch.arange(x.shape[1], device=x.device) == target[:, None]).double()


def cross_entropy_backward(x, target, lse, scale, dx, ignore_index):
    p = (x.double() - lse.double()[:, None]).exp()
    found = scale.double()[:, None] * (p - onehot(target, x))
    counted = known(target, x.shape[1]) & (target != ignore_index)
    dx.copy_(found.masked_fill(~counted[:, None], 0))


def smoothed_cross_entropy_backward(x, target, weight, lse, a, b, e, dx):
    a, b, e = (factor.double()[:, None] for factor in (a, b, e))
    dx.copy_(a * (x.double() - lse.double()[:, None]).exp() - b * onehot(target, x) - e * weight.double())


def swiglu(gate, up, y):
    y.copy_(F.silu(gate.double()) * up.double())


def swiglu_backward(dy, gate, up, dgate, dup):
    with torch.enable_grad():
        gate, up = gate.double().requires_grad_(), up.double().requires_grad_()
        found = torch.autograd.grad(F.silu(gate) * up, (gate, up), dy.double())
    dgate.copy_(found[0])
    dup.copy_(found[1])
