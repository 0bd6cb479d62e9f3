"""A new tensor with the same elements."""

import torch

from quack_lite import rows
from quack_lite.ops.registry import register_differentiable

MOST_ELEMENTS = 2**30  # of one launch, whose grid is counted in 32 bits


def run(input):
    if not input.numel() or not input.is_contiguous() or input.data_ptr() % rows.BOUNDARY:
        return input.clone(memory_format=torch.contiguous_format)
    y = rows.fresh(input)
    kernel = rows.kernel("copy", rows.DTYPES[input.dtype], rows.ANY_LENGTH)
    whole = input.view(-1), y.view(-1)
    if input.numel() <= MOST_ELEMENTS:
        kernel(*whole)
    else:
        for parts in zip(*(x.split(MOST_ELEMENTS) for x in whole), strict=True):
            kernel(*parts)
    return y


def fake(input):
    return rows.fresh(input)


def save(ctx, inputs, output):
    pass


def backward(ctx, grad):
    return (grad,)


copy = register_differentiable("copy(Tensor input) -> Tensor", run, fake, save, backward)
