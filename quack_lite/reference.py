"""Each operator in float64 torch, the bytes it has to move, and how far a result may lie from it."""

import torch

SMALLEST_NORMAL = 2.0**-126


def copy(x: torch.Tensor) -> torch.Tensor:
    """x in float64."""
    return x.double()


def softmax(x: torch.Tensor) -> torch.Tensor:
    """softmax over the last dimension, in float64."""
    return torch.softmax(x.double(), -1)


def softmax_scale(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """The size of the rounding errors that float32 arithmetic cannot avoid, by value; y = softmax(x)."""
    wide = x.double()
    below = wide - wide.amax(-1, keepdim=True)
    return torch.where(y > 0, y * (1 - below), 0.0)


OPERATORS = {"copy": copy, "softmax": softmax}
# Those that round. How many 2**-24 of its scale a result may be off; at most 8.
SCALES = {"softmax": softmax_scale}
ROUNDINGS = {"softmax": 8}


def ulp(y: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """The distance to the next number of `dtype` at the float64 values y."""
    info = torch.finfo(dtype)
    exponent = torch.frexp(y.abs().clamp(min=info.smallest_normal))[1] - 1
    return torch.ldexp(torch.full_like(y, info.eps), exponent)


def tolerance(operator: str, x: torch.Tensor, y: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """How far a result of `dtype` may lie from the float64 reference y of operator(x), by value."""
    if operator not in SCALES:
        return torch.zeros_like(y)
    return ulp(y, dtype) + ROUNDINGS[operator] * 2.0**-24 * SCALES[operator](x, y) + SMALLEST_NORMAL


def worst_error(operator: str, x: torch.Tensor, result: torch.Tensor) -> float:
    """The largest error of result = operator(x) as a share of the tolerance; inf where only one of them is NaN.

    At most 1 is right. x, result: (..., n), any device; the comparison is done in float64 there.
    """
    y = OPERATORS[operator](x)
    wide = result.double()
    if not torch.equal(y.isnan(), wide.isnan()):
        return float("inf")
    share = (wide - y).abs() / tolerance(operator, x, y, result.dtype)
    return share.nan_to_num(0.0).max().item() if share.numel() else 0.0


def bytes_moved(operator: str, shape: tuple[int, ...], dtype: torch.dtype) -> int:
    """Bytes that the operator cannot avoid: each input read once, each output written once."""
    if operator not in OPERATORS:
        raise ValueError(f"no operator {operator!r}; there are {', '.join(OPERATORS)}")
    return 2 * torch.Size(shape).numel() * dtype.itemsize
