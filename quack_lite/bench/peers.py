"""Other people's implementations of the same operators, as they come."""

import importlib
from collections.abc import Callable

import torch

from quack_lite import functional

OURS = "quack_lite"


def softmax_peers() -> dict[str, Callable]:
    """{name: function of a matrix}: ours first, then torch, torch.compile and, where installed, QuACK."""
    found = {OURS: functional.softmax, "torch": eager_softmax, "torch.compile": compiled(eager_softmax)}
    return found | optional("quack-kernels", "quack.softmax", "softmax_fwd")


def copy_peers() -> dict[str, Callable]:
    """{name: function of a tensor}: ours and torch's."""
    return {OURS: functional.copy, "torch": torch.clone}


def eager_softmax(x: torch.Tensor) -> torch.Tensor:
    """torch's own softmax over the last dimension."""
    return torch.softmax(x, -1)


def compiled(fn: Callable) -> Callable:
    """torch.compile's default mode for one shape at a time."""
    return torch.compile(fn, dynamic=False)


def optional(name: str, module: str, function: str) -> dict[str, Callable]:
    """A peer that is installed, or none."""
    try:
        return {name: getattr(importlib.import_module(module), function)}
    except ImportError:
        return {}
