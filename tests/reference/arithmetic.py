"""What a kernel gets, and what torch's own functions make of it, in float64 or in good float32 arithmetic."""

import math

import torch
import torch.nn.functional as F

from quack_lite import reference
from quack_lite.reference import OPERATORS, Kind

DTYPES = [torch.float32, torch.float16, torch.bfloat16]
EPS = 1e-5
IGNORED = -100


def normal(*shape, seed=0, spread=1.0, offset=0.0):
    return offset + spread * torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def rows(n, spread=4.0, dtype=torch.float32, m=4, seed=None, offset=0.0):
    return normal(m, n, seed=n if seed is None else seed, spread=spread, offset=offset).to(dtype)


def weights(n, seed=5):
    return normal(n, seed=seed, offset=1.0, spread=0.5)


def labels(m, n):
    return torch.arange(m) * 7919 % n


def factors(m, count=1):
    return [normal(m, seed=20 + i).abs() for i in range(count)]


def inputs(name, n, dtype=torch.float32, residual=None, m=4, **kwargs):
    """What a kernel gets, statistics and results of the forward pass among it."""
    x = rows(n, dtype=dtype, m=m, **kwargs)
    r = rows(n, dtype=residual or dtype, m=m, seed=1, **kwargs)
    dy, dr = rows(n, 1.0, dtype, m, seed=2), rows(n, 1.0, residual or dtype, m, seed=3)
    w, target = weights(n), labels(m, n)
    lse = torch.logsumexp(x.double(), -1).float()
    return {
        "copy": lambda: (x.view(-1),),
        "softmax": lambda: (x,),
        "softmax_backward": lambda: (dy, x.float().softmax(-1).to(dtype)),
        "log_softmax": lambda: (x,),
        "log_softmax_backward": lambda: (dy, x.float().log_softmax(-1).to(dtype)),
        "rms_norm": lambda: (x, w, EPS),
        "rms_norm_backward": lambda: (dy, x, w, EPS),
        "add_rms_norm": lambda: (x, r, w, EPS),
        "add_rms_norm_backward": lambda: (dy, dr, r, w, EPS),
        "layer_norm": lambda: (x, w, normal(n, seed=6), EPS),
        "layer_norm_backward": lambda: (dy, x, w, *statistics(x)),
        "cross_entropy": lambda: (x, target, IGNORED),
        "cross_entropy_backward": lambda: (x, target, lse, *factors(m)),
        "smoothed_cross_entropy": lambda: (x, target, w.abs(), IGNORED),
        "smoothed_cross_entropy_backward": lambda: (x, target, w.abs(), lse, *factors(m, 3)),
        "swiglu": lambda: (x, r.to(dtype)),
        "swiglu_backward": lambda: (dy, x, r.to(dtype)),
    }[name]()


def statistics(x):
    """(mean, rstd) by two passes, in the dtype of the arithmetic."""
    x = x if x.dtype == torch.float64 else x.float()
    mean = x.mean(-1)
    return mean, ((x - mean[:, None]).square().mean(-1) + EPS).rsqrt()


def derivative(function, dys, *leaves):
    leaves = [leaf.detach().requires_grad_() for leaf in leaves]
    return torch.autograd.grad(function(*leaves), leaves, dys)


def derived_softmax(dy, y):
    return (y * (dy - (y * dy).sum(-1, keepdim=True)),)


def derived_log_softmax(dy, y):
    return (dy - y.exp() * dy.sum(-1, keepdim=True),)


def rms_norm(x, w, eps):
    return (F.rms_norm(x, w.shape, w, eps),)


def rms_norm_backward(dy, x, w, eps):
    return derivative(lambda x, w: F.rms_norm(x, w.shape, w, eps), dy, x, w)


def add_rms_norm_backward(dy, dr, r, w, eps):
    dx, dw = rms_norm_backward(dy, r, w, eps)
    return dr + dx, dw


def layer_norm(x, w, b, eps):
    return (F.layer_norm(x, w.shape, w, b, eps), *statistics(x))


def layer_norm_backward(dy, x, w, mean, rstd):
    return torch.ops.aten.native_layer_norm_backward(
        dy, x, w.shape, mean[:, None], rstd[:, None], w, torch.zeros_like(w), [True] * 3
    )


def cross_entropy(x, target, ignore_index):
    """A row with inf has a NaN loss, and here a NaN lse."""
    lse = torch.logsumexp(x, -1).masked_fill(x.amax(-1) == math.inf, math.nan)
    return F.cross_entropy(x, target, ignore_index=ignore_index, reduction="none"), lse


def onehot(x, target):
    return F.one_hot(target, x.shape[-1]).to(x.dtype)


def cross_entropy_backward(x, target, lse, scale):
    return (scale[:, None] * ((x - lse[:, None]).exp() - onehot(x, target)),)


def smoothed_cross_entropy(x, target, w, ignore_index):
    loss, lse = cross_entropy(x, target, ignore_index)
    return loss, lse, (w * -x.log_softmax(-1)).sum(-1)


def smoothed_cross_entropy_backward(x, target, w, lse, a, b, e):
    return (a[:, None] * (x - lse[:, None]).exp() - b[:, None] * onehot(x, target) - e[:, None] * w,)


def swiglu(gate, up):
    return (F.silu(gate) * up,)


# The operators from torch's own functions and derivatives, in the dtype of what they are given.
TORCH = {
    "copy": lambda x: (x,),
    "softmax": lambda x: (x.softmax(-1),),
    "softmax_backward": derived_softmax,
    "log_softmax": lambda x: (x.log_softmax(-1),),
    "log_softmax_backward": derived_log_softmax,
    "rms_norm": rms_norm,
    "rms_norm_backward": rms_norm_backward,
    "add_rms_norm": lambda x, r, w, eps: (*rms_norm(x + r, w, eps), x + r),
    "add_rms_norm_backward": add_rms_norm_backward,
    "layer_norm": layer_norm,
    "layer_norm_backward": layer_norm_backward,
    "cross_entropy": cross_entropy,
    "cross_entropy_backward": cross_entropy_backward,
    "smoothed_cross_entropy": smoothed_cross_entropy,
    "smoothed_cross_entropy_backward": smoothed_cross_entropy_backward,
    "swiglu": swiglu,
    "swiglu_backward": lambda dy, gate, up: derivative(lambda g, u: swiglu(g, u)[0], dy, gate, up),
}


def subtracting_layer_norm_backward(dy, x, w, mean, rstd):
    """torch's own on a CPU subtracts x * rstd and mean * rstd, which cancels."""
    x_hat, g = (x - mean[:, None]) * rstd[:, None], dy * w
    dx = rstd[:, None] * (g - g.mean(-1, keepdim=True) - x_hat * (g * x_hat).mean(-1, keepdim=True))
    return dx, (dy * x_hat).sum(0), dy.sum(0)


ARITHMETIC = TORCH | {"layer_norm_backward": subtracting_layer_norm_backward}


def to(dtype, tensors):
    return [t.to(dtype) if isinstance(t, torch.Tensor) and t.is_floating_point() else t for t in tensors]


def in_float32(name, given, dtype, residual=None):
    """The results of good float32 arithmetic, each in its dtype."""
    if name == "add_rms_norm":
        x, r, w, eps = to(torch.float32, given)
        total = (x + r).to(residual or dtype)
        results = (*rms_norm(total.float(), w, eps), total)
    else:
        results = ARITHMETIC[name](*to(torch.float32, given))
    dtypes = {Kind.FLAT: dtype, Kind.MATRIX: dtype, Kind.RESIDUAL: residual or dtype}
    outputs = zip(results, OPERATORS[name].outputs, strict=True)
    return tuple(y.to(dtypes.get(kind, torch.float32), copy=True) for y, kind in outputs)


def error(name, given, results):
    return reference.worst_error(name, given, results)


def halved(name, given, part):
    kinds = OPERATORS[name].inputs
    tensors = [t if kind is Kind.COLUMNS else t[part] for t, kind in zip(given, kinds, strict=False)]
    return (*tensors, *given[len(kinds) :])
