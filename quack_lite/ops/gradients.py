"""Gradients of weights and biases, from a kernel's partial sums over rows; float32."""

import torch

from quack_lite import catalog


def partial_sums(built, x: torch.Tensor) -> torch.Tensor:
    """Room for a kernel's sums over rows (p, n), for x (m, n)."""
    m, n = x.shape
    return x.new_empty(catalog.partials(built, m, n, x.device), n, dtype=torch.float32)


def summed(parts: torch.Tensor, wanted: bool) -> torch.Tensor:
    """The gradient (n), always added in the same order; an empty tensor where nobody wants it."""
    return parts.sum(0) if wanted else parts.new_empty(0)


def without_rows(x: torch.Tensor, wanted: bool) -> torch.Tensor:
    """The gradient from no rows, in the shape of summed."""
    return x.new_zeros(x.shape[-1] if wanted else 0, dtype=torch.float32)
