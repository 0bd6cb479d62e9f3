"""swiglu in float64, backward too, and their scales.

dy, gate, up: (m, n). All functions give a tuple with one entry an output.
"""

import torch

OVERFLOWED = 2.0**-102  # 2**-24 of it, times 8, is a gate's sigmoid where exp(-gate) leaves float32


def sigmoid(g: torch.Tensor) -> torch.Tensor:
    """1 / (1 + exp(-g))."""
    return 1 / (1 + (-g).exp())


def sigmoid_scale(g: torch.Tensor) -> torch.Tensor:
    """sigmoid * (1 + |g| where g < 0): there the rounded exponent of exp(-g) counts; that may also overflow."""
    return sigmoid(g) * (1 + (-g).clamp(min=0)) + OVERFLOWED


def swiglu(gate: torch.Tensor, up: torch.Tensor) -> tuple:
    """gate / (1 + exp(-gate)) * up."""
    gate = gate.double()
    return (gate / (1 + (-gate).exp()) * up.double(),)


def swiglu_scale(gate: torch.Tensor, up: torch.Tensor) -> tuple:
    """|gate * up| times the scale of the sigmoid."""
    gate = gate.double()
    return ((gate * up.double()).abs() * sigmoid_scale(gate),)


def swiglu_backward(dy: torch.Tensor, gate: torch.Tensor, up: torch.Tensor) -> tuple:
    """(dy * up * p * (1 + gate * (1 - p)), dy * gate * p), p the sigmoid of the gate."""
    dy, gate = dy.double(), gate.double()
    p = sigmoid(gate)
    return dy * up.double() * p * (1 + gate * (1 - p)), dy * (gate * p)


def swiglu_backward_scale(dy: torch.Tensor, gate: torch.Tensor, up: torch.Tensor) -> tuple:
    """The formulas with absolute terms, 1 - p among them, and the scale of the sigmoid."""
    dy, gate, up = dy.double().abs(), gate.double(), up.double().abs()
    s = sigmoid_scale(gate)
    return dy * up * s * (1 + gate.abs() * (1 + sigmoid(gate))), dy * gate.abs() * s
