"""rms_norm, add_rms_norm and layer_norm over rows in float64, backward too, and their scales.

x, residual, r, dy, dr: (m, n); w, b: (n); mean, rstd: (m). All functions give a tuple with one entry an output, a
gradient of w or b summed over the rows.
"""

import torch

from quack_lite.reference.softmax import largest


def row_mean(x: torch.Tensor) -> torch.Tensor:
    """Of each row (m, 1)."""
    return x.mean(-1, keepdim=True)


def rms_norm(x: torch.Tensor, w: torch.Tensor, eps: float) -> tuple:
    """x / sqrt(mean of x**2 + eps) * w."""
    x = x.double()
    return (x * torch.rsqrt(row_mean(x.square()) + eps) * w.double(),)


def rms_norm_scale(x: torch.Tensor, w: torch.Tensor, eps: float) -> tuple:
    """max |x| * |w| / sqrt(mean of x**2 + eps)."""
    x = x.double()
    return (largest(x) * torch.rsqrt(row_mean(x.square()) + eps) * w.double().abs(),)


def rms_norm_backward(dy: torch.Tensor, x: torch.Tensor, w: torch.Tensor, eps: float) -> tuple:
    """(rstd * (dy w - xhat * mean of dy w xhat), sum over rows of dy xhat), xhat = x rstd."""
    dy, x = dy.double(), x.double()
    rstd = torch.rsqrt(row_mean(x.square()) + eps)
    x_hat, g = x * rstd, dy * w.double()
    return rstd * (g - x_hat * row_mean(g * x_hat)), (dy * x_hat).sum(0)


def rms_norm_backward_scale(dy: torch.Tensor, x: torch.Tensor, w: torch.Tensor, eps: float) -> tuple:
    """The formulas with absolute terms."""
    dy, x = dy.double().abs(), x.double().abs()
    rstd = torch.rsqrt(row_mean(x.square()) + eps)
    x_hat, g = x * rstd, dy * w.double().abs()
    return rstd * (g + x_hat * row_mean(g * x_hat)), (dy * x_hat).sum(0)


def added(x: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
    """x + residual as the kernel has it: a float32 sum, rounded to the residual's dtype."""
    return (x.float() + residual.float()).to(residual.dtype)


def add_rms_norm(x: torch.Tensor, residual: torch.Tensor, w: torch.Tensor, eps: float) -> tuple:
    """(rms_norm of r, r), r = x + residual in the residual's dtype."""
    r = added(x, residual)
    return *rms_norm(r, w, eps), r.double()


def add_rms_norm_scale(x: torch.Tensor, residual: torch.Tensor, w: torch.Tensor, eps: float) -> tuple:
    """rms_norm's at r; r is equal."""
    return *rms_norm_scale(added(x, residual), w, eps), None


def add_rms_norm_backward(dy: torch.Tensor, dr: torch.Tensor, r: torch.Tensor, w: torch.Tensor, eps: float) -> tuple:
    """(dr + the derivative of rms_norm at r applied to dy, the gradient of w)."""
    dx, dw = rms_norm_backward(dy, r, w, eps)
    return dr.double() + dx, dw


def add_rms_norm_backward_scale(
    dy: torch.Tensor, dr: torch.Tensor, r: torch.Tensor, w: torch.Tensor, eps: float
) -> tuple:
    """The formulas with absolute terms."""
    dx, dw = rms_norm_backward_scale(dy, r, w, eps)
    return dr.double().abs() + dx, dw


def layer_norm(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor, eps: float) -> tuple:
    """((x - mean) * rstd * w + b, mean, rstd), rstd = 1 / sqrt(mean of (x - mean)**2 + eps)."""
    x = x.double()
    middle = row_mean(x)
    away = x - middle
    rstd = torch.rsqrt(row_mean(away.square()) + eps)
    return away * rstd * w.double() + b.double(), middle.squeeze(-1), rstd.squeeze(-1)


def layer_norm_scale(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor, eps: float) -> tuple:
    """(max |x| * |w| * rstd, mean of |x|, rstd * (1 + 2**-22 * (max |x| * rstd)**2)).

    A mean that is off by d adds d**2 to the variance; d is up to 8 * 2**-24 * max |x|.
    """
    x = x.double()
    _, _, rstd = layer_norm(x, w, b, eps)
    reach = largest(x).squeeze(-1) * rstd
    return reach[:, None] * w.double().abs(), row_mean(x.abs()).squeeze(-1), rstd * (1 + 2.0**-22 * reach.square())


def layer_norm_backward(
    dy: torch.Tensor, x: torch.Tensor, w: torch.Tensor, mean: torch.Tensor, rstd: torch.Tensor
) -> tuple:
    """(rstd * (dy w - mean of dy w - xhat * mean of dy w xhat), sum over rows of dy xhat, of dy)."""
    dy, rstd = dy.double(), rstd.double()[:, None]
    x_hat, g = (x.double() - mean.double()[:, None]) * rstd, dy * w.double()
    dx = rstd * (g - row_mean(g) - x_hat * row_mean(g * x_hat))
    return dx, (dy * x_hat).sum(0), dy.sum(0)


def layer_norm_backward_scale(
    dy: torch.Tensor, x: torch.Tensor, w: torch.Tensor, mean: torch.Tensor, rstd: torch.Tensor
) -> tuple:
    """The formulas with absolute terms, x and mean among them; of a product of two xhat, one of them at a time."""
    dy, x, mean, rstd = dy.double().abs(), x.double(), mean.double()[:, None], rstd.double()[:, None]
    x_hat, terms = (x - mean).abs() * rstd, (x.abs() + mean.abs()) * rstd
    g = dy * w.double().abs()
    dx = rstd * (g + row_mean(g) + terms * row_mean(g * x_hat) + x_hat * row_mean(g * terms))
    return dx, (dy * terms).sum(0), dy.sum(0)
