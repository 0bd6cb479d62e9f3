"""copy in float64. All functions give a tuple with one entry an output."""

import torch


def copy(x: torch.Tensor) -> tuple:
    """x (k)."""
    return (x.double(),)


def copy_scale(x: torch.Tensor) -> tuple:
    """None: a copy is equal."""
    return (None,)
