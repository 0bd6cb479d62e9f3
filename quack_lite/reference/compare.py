"""How far a result lies from its reference, as a share of the tolerance."""

import math

import torch

SMALLEST_NORMAL = 2.0**-126


def ulp(y: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """The distance to the next number of `dtype` at the float64 values y."""
    info = torch.finfo(dtype)
    exponent = torch.frexp(y.abs().clamp(min=info.smallest_normal))[1] - 1
    return torch.ldexp(torch.full_like(y, info.eps), exponent)


def share(y: torch.Tensor, scale: torch.Tensor | None, roundings: int, result: torch.Tensor) -> float:
    """The largest error / tolerance of a result of any float dtype, 0 of an empty one.

    y: the float64 reference; scale: s, None where the result must be equal. A result with one dimension more than y
    holds partial sums along its first. NaN answers to NaN only, inf to inf and to what the result's dtype cannot hold.
    """
    if not y.numel():
        return 0.0
    wide = result.sum(0, dtype=torch.float64) if result.dim() > y.dim() else result.double()
    wide, y = overflowed(wide, y, result.dtype)
    right = (wide == y) | (wide.isnan() & y.isnan())
    if scale is None:
        return 0.0 if right.all() else math.inf
    tolerance = ulp(y, result.dtype) + roundings * 2.0**-24 * scale + SMALLEST_NORMAL
    error = ((wide - y).abs() / tolerance).masked_fill(right, 0.0)
    return error.nan_to_num(nan=math.inf, posinf=math.inf).max().item()


def overflowed(wide: torch.Tensor, y: torch.Tensor, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """(result, reference) where the reference is inf beyond the range of dtype, and a result of inf the range's end."""
    end = 2.0 ** math.frexp(torch.finfo(dtype).max)[1]
    y = torch.where(y.abs() >= end, y.sign() * math.inf, y)
    return torch.where(wide.isinf() & y.isfinite(), wide.sign() * end, wide), y
