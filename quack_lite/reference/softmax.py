"""softmax and log_softmax over rows in float64, backward too, and their scales.

x, dy, y: (m, n). All functions give a tuple with one entry an output.
"""

import math

import torch


def exp_scale(d: torch.Tensor) -> torch.Tensor:
    """The scale of exp(d): rounding d moves the exponent in proportion to |d|."""
    power = d.exp()
    return torch.where(power > 0, power * (1 + d.abs()), 0.0)


def largest(x: torch.Tensor) -> torch.Tensor:
    """max |x| of each row (m, 1), without the infinite values of a mask."""
    return x.abs().masked_fill(x.isinf(), 0.0).amax(-1, keepdim=True)


def softmax(x: torch.Tensor) -> tuple:
    """exp(x - max) / sum of exp(x - max)."""
    return (torch.softmax(x.double(), -1),)


def softmax_scale(x: torch.Tensor) -> tuple:
    """p * (1 + |x - max|)."""
    wide = x.double()
    below = wide - wide.amax(-1, keepdim=True)
    power = below.exp()
    return (exp_scale(below) / power.sum(-1, keepdim=True),)


def log_softmax(x: torch.Tensor) -> tuple:
    """x - log of the sum of exp(x)."""
    return (torch.log_softmax(x.double(), -1),)


def log_softmax_scale(x: torch.Tensor) -> tuple:
    """1 + max |x| + log n: the logarithm of the sum is a term, up to log n, that can cancel with the maximum."""
    return (1 + largest(x).double() + math.log(x.shape[-1]),)


def softmax_backward(dy: torch.Tensor, y: torch.Tensor) -> tuple:
    """y * (dy - sum of y * dy); y: what the forward gave."""
    dy, y = dy.double(), y.double()
    return (y * (dy - (y * dy).sum(-1, keepdim=True)),)


def softmax_backward_scale(dy: torch.Tensor, y: torch.Tensor) -> tuple:
    """The formula with absolute terms."""
    dy, y = dy.double().abs(), y.double().abs()
    return (y * (dy + (y * dy).sum(-1, keepdim=True)),)


def log_softmax_backward(dy: torch.Tensor, y: torch.Tensor) -> tuple:
    """dy - exp(y) * sum of dy; y: what the forward gave."""
    dy = dy.double()
    return (dy - y.double().exp() * dy.sum(-1, keepdim=True),)


def log_softmax_backward_scale(dy: torch.Tensor, y: torch.Tensor) -> tuple:
    """The formula with absolute terms."""
    dy = dy.double().abs()
    return (dy + exp_scale(y.double()) * dy.sum(-1, keepdim=True),)
