"""Cross-entropy of rows in float64, plain and smoothed, backward too, and their scales.

x: (m, n); target: (m) int64; w: (n); lse, scale, a, b, e: (m). All functions give a tuple with one entry an output.
"""

import math

import torch

from quack_lite.reference.softmax import exp_scale, log_softmax_scale

IGNORED = -100  # torch's default


def log_sum_exp(x: torch.Tensor) -> torch.Tensor:
    """(m). NaN in a row with inf, as the loss is; -inf in a row of nothing else."""
    return torch.logsumexp(x, -1).masked_fill(x.amax(-1) == math.inf, math.nan)


def inside(target: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """(m) bool: whether the label is one of the classes."""
    return (target >= 0) & (target < x.shape[-1])


def column(target: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """(m, 1): the labels, those outside the classes moved to the nearest one."""
    return target.clamp(0, x.shape[-1] - 1)[:, None]


def by_label(values: torch.Tensor, x: torch.Tensor, target: torch.Tensor, ignore_index: int) -> torch.Tensor:
    """values (m), but NaN where the label is outside the classes and 0 where the row is ignored."""
    return values.masked_fill(~inside(target, x), math.nan).masked_fill(target == ignore_index, 0.0)


def zero_unless_counted(dx: torch.Tensor, target: torch.Tensor, ignore_index: int) -> torch.Tensor:
    """dx (m, n), but zero rows where the row is ignored or the label is outside the classes."""
    counted = inside(target, dx) & (target != ignore_index)
    return dx.masked_fill(~counted[:, None], 0.0)


def cross_entropy(x: torch.Tensor, target: torch.Tensor, ignore_index: int) -> tuple:
    """(loss, lse): log of the sum of exp(x), less x at the label."""
    x = x.double()
    lse = log_sum_exp(x)
    loss = lse - x.gather(-1, column(target, x)).squeeze(-1)
    return by_label(loss, x, target, ignore_index), lse


def cross_entropy_scale(x: torch.Tensor, target: torch.Tensor, ignore_index: int) -> tuple:
    """log_softmax's for both."""
    scale = log_softmax_scale(x)[0].squeeze(-1)
    return scale, scale


def cross_entropy_backward(
    x: torch.Tensor, target: torch.Tensor, lse: torch.Tensor, scale: torch.Tensor, ignore_index: int = IGNORED
) -> tuple:
    """scale * (exp(x - lse) - onehot); a zero row where it is ignored or the label is outside the classes."""
    scale = scale.double()[:, None]
    dx = scale * (x.double() - lse.double()[:, None]).exp()
    dx.scatter_add_(-1, column(target, x), -scale)
    return (zero_unless_counted(dx, target, ignore_index),)


def cross_entropy_backward_scale(
    x: torch.Tensor, target: torch.Tensor, lse: torch.Tensor, scale: torch.Tensor, ignore_index: int = IGNORED
) -> tuple:
    """The formula with absolute terms."""
    scale = scale.double().abs()[:, None]
    s = scale * exp_scale(x.double() - lse.double()[:, None])
    s.scatter_add_(-1, column(target, x), scale)
    return (zero_unless_counted(s, target, ignore_index),)


def smoothed_cross_entropy(x: torch.Tensor, target: torch.Tensor, w: torch.Tensor, ignore_index: int) -> tuple:
    """(loss, lse, spread), spread = sum over c of w_c * (lse - x_c)."""
    loss, lse = cross_entropy(x, target, ignore_index)
    spread = (w.double() * (lse[:, None] - x.double())).sum(-1)
    return loss, lse, by_label(spread, x, target, ignore_index)


def smoothed_cross_entropy_scale(x: torch.Tensor, target: torch.Tensor, w: torch.Tensor, ignore_index: int) -> tuple:
    """cross_entropy's, for spread times the sum of |w|."""
    scale, _ = cross_entropy_scale(x, target, ignore_index)
    return scale, scale, scale * w.double().abs().sum()


def smoothed_cross_entropy_backward(
    x: torch.Tensor,
    target: torch.Tensor,
    w: torch.Tensor,
    lse: torch.Tensor,
    a: torch.Tensor,
    b: torch.Tensor,
    e: torch.Tensor,
) -> tuple:
    """a * exp(x - lse) - b * onehot - e * w; a zero row where a and e are 0. No class, no onehot."""
    a, b, e = (factor.double()[:, None] for factor in (a, b, e))
    dx = a * (x.double() - lse.double()[:, None]).exp() - e * w.double()
    dx.scatter_add_(-1, column(target, x), torch.where(inside(target, x)[:, None], -b, 0.0))
    return (dx.masked_fill((a == 0) & (e == 0), 0.0),)


def smoothed_cross_entropy_backward_scale(
    x: torch.Tensor,
    target: torch.Tensor,
    w: torch.Tensor,
    lse: torch.Tensor,
    a: torch.Tensor,
    b: torch.Tensor,
    e: torch.Tensor,
) -> tuple:
    """The formula with absolute terms."""
    a, b, e = (factor.double().abs()[:, None] for factor in (a, b, e))
    s = a * exp_scale(x.double() - lse.double()[:, None]) + e * w.double().abs()
    return (s.scatter_add_(-1, column(target, x), b),)
