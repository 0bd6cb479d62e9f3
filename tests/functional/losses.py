"""cross_entropy as torch has it, in float64, and how far a float32 composition of two kernels may lie from it."""

from typing import NamedTuple

import torch
import torch.nn.functional as F

import quack_lite
from quack_lite import reference

ROUNDINGS = 16  # 8 of the kernel, 8 of what is done with its rows: weights, smoothing, mean
SMALLEST = 2.0**-126


class Loss(NamedTuple):
    """A loss and the gradient of the logits."""

    value: torch.Tensor
    gradient: torch.Tensor


def ours(x, target, dy=None, **options) -> Loss:
    """By quack_lite; dy: the gradient of the loss in numbers of any float dtype, 1 unless given."""
    leaf = x.detach().requires_grad_()
    loss = quack_lite.cross_entropy(leaf, target, **options)
    dy = torch.ones_like(loss) if dy is None else dy.to(loss.dtype)
    return Loss(loss.detach(), *torch.autograd.grad(loss, leaf, dy))


def torchs(x, target, dy=None, weight=None, **options) -> Loss:
    """By torch in float64; labels outside the classes are not for it."""
    leaf = x.detach().double().requires_grad_()
    loss = F.cross_entropy(leaf, target.long(), weight if weight is None else weight.double(), **options)
    dy = torch.ones_like(loss) if dy is None else dy.double()
    return Loss(loss.detach(), *torch.autograd.grad(loss, leaf, dy))


def worst(x, target, dy=None, **options) -> float:
    """The largest error of loss and gradient as a share of the tolerance."""
    found, right = ours(x, target, dy, **options), torchs(x, target, dy, **options)
    assert found.value.shape == right.value.shape and found.gradient.shape == x.shape
    assert found.value.dtype == found.gradient.dtype == x.dtype
    value_scale, gradient_scale = scales(x, target, dy, **options)
    return max(
        share(found.value, right.value, value_scale),
        share(found.gradient, right.gradient, gradient_scale),
    )


def share(result, right, scale) -> float:
    """The largest error as a share of one ulp and ROUNDINGS * 2**-24 of the scale; inf where only one is NaN."""
    if not torch.equal(result.isnan(), right.isnan()):
        return float("inf")
    allowed = reference.ulp(right, result.dtype) + ROUNDINGS * 2.0**-24 * scale + SMALLEST
    errors = ((result.double() - right).abs() / allowed).nan_to_num(0.0)
    return errors.max().item() if errors.numel() else 0.0


def scales(x, target, dy=None, weight=None, ignore_index=-100, reduction="mean", label_smoothing=0.0):
    """(of the loss, of the gradient): each term of the formula by its absolute value, a weight by the largest."""
    wide, target = x.double(), target.long()
    kept = target != ignore_index
    weights = torch.ones(x.shape[-1], device=x.device) if weight is None else weight
    largest = weights.double().max()
    row = largest * (1 + wide.abs().amax(-1))
    loss = {"none": row, "sum": row.sum(), "mean": row.max()}[reduction] if row.numel() else row.sum()
    sent = torch.ones((), device=x.device) if dy is None else dy.double().abs()
    if reduction == "mean":
        sent = sent / weights[target.where(kept, 0)].double().where(kept, 0).sum()
    below = wide - wide.logsumexp(-1, keepdim=True)
    onehot = F.one_hot(target.where(kept, 0), x.shape[-1])
    terms = below.exp() * (1 + below.abs()) + onehot + label_smoothing / x.shape[-1]
    return loss, (sent * kept * largest)[..., None] * terms
