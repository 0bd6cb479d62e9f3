"""Each operator in float64 torch, how far a result may lie from it, and the bytes that it has to move.

|y - ref| <= 1 ulp of the output's dtype at ref + c * 2**-24 * s + 2**-126. The scale s is the size of the terms that
float32 arithmetic rounds; c, at most 8, counts the roundings. Smaller results than 2**-126 may be flushed to zero.
"""

import enum
from collections.abc import Callable
from typing import NamedTuple

import torch

from quack_lite.reference import copy, losses, norms, softmax, swiglu
from quack_lite.reference.compare import share
from quack_lite.reference.compare import ulp as ulp

CHUNK = 2**24  # elements of one matrix that are in float64 at a time


class Kind(enum.Enum):
    """What a tensor of a launch is: its shape for rows (m, n), and its dtype."""

    FLAT = "(k) of the operator's dtype, elements that have no rows"
    MATRIX = "(m, n) of the operator's dtype"
    RESIDUAL = "(m, n) of the residual's dtype"
    COLUMNS = "(n) float32, a weight or a bias; as an output also its partial sums (p, n)"
    ROWS = "(m) float32, one number a row"
    LABELS = "(m) int64"


class Operator(NamedTuple):
    """An operator at the level of its kernel.

    values(*tensors, *scalars): a tuple of float64 outputs, a gradient of a weight summed over the rows (n).
    scales(*tensors, *scalars): s for each output, broadcast to it; None for an output that must be equal.
    roundings: c.
    inputs, outputs: the kinds of the tensors in launch order; scalars follow the inputs.
    """

    values: Callable
    scales: Callable
    roundings: int
    inputs: tuple[Kind, ...]
    outputs: tuple[Kind, ...]


FLAT, MATRIX, RESIDUAL, COLUMNS, ROWS, LABELS = Kind
OPERATORS = {
    "copy": Operator(copy.copy, copy.copy_scale, 0, (FLAT,), (FLAT,)),
    "softmax": Operator(softmax.softmax, softmax.softmax_scale, 8, (MATRIX,), (MATRIX,)),
    "log_softmax": Operator(softmax.log_softmax, softmax.log_softmax_scale, 8, (MATRIX,), (MATRIX,)),
    "softmax_backward": Operator(
        softmax.softmax_backward, softmax.softmax_backward_scale, 8, (MATRIX, MATRIX), (MATRIX,)
    ),
    "log_softmax_backward": Operator(
        softmax.log_softmax_backward, softmax.log_softmax_backward_scale, 8, (MATRIX, MATRIX), (MATRIX,)
    ),
    "rms_norm": Operator(norms.rms_norm, norms.rms_norm_scale, 8, (MATRIX, COLUMNS), (MATRIX,)),
    "rms_norm_backward": Operator(
        norms.rms_norm_backward, norms.rms_norm_backward_scale, 8, (MATRIX, MATRIX, COLUMNS), (MATRIX, COLUMNS)
    ),
    "add_rms_norm": Operator(
        norms.add_rms_norm, norms.add_rms_norm_scale, 8, (MATRIX, RESIDUAL, COLUMNS), (MATRIX, RESIDUAL)
    ),
    "add_rms_norm_backward": Operator(
        norms.add_rms_norm_backward,
        norms.add_rms_norm_backward_scale,
        8,
        (MATRIX, RESIDUAL, RESIDUAL, COLUMNS),
        (RESIDUAL, COLUMNS),
    ),
    "layer_norm": Operator(
        norms.layer_norm, norms.layer_norm_scale, 8, (MATRIX, COLUMNS, COLUMNS), (MATRIX, ROWS, ROWS)
    ),
    "layer_norm_backward": Operator(
        norms.layer_norm_backward,
        norms.layer_norm_backward_scale,
        8,
        (MATRIX, MATRIX, COLUMNS, ROWS, ROWS),
        (MATRIX, COLUMNS, COLUMNS),
    ),
    "cross_entropy": Operator(losses.cross_entropy, losses.cross_entropy_scale, 8, (MATRIX, LABELS), (ROWS, ROWS)),
    "cross_entropy_backward": Operator(
        losses.cross_entropy_backward,
        losses.cross_entropy_backward_scale,
        8,
        (MATRIX, LABELS, ROWS, ROWS),
        (MATRIX,),
    ),
    "smoothed_cross_entropy": Operator(
        losses.smoothed_cross_entropy,
        losses.smoothed_cross_entropy_scale,
        8,
        (MATRIX, LABELS, COLUMNS),
        (ROWS, ROWS, ROWS),
    ),
    "smoothed_cross_entropy_backward": Operator(
        losses.smoothed_cross_entropy_backward,
        losses.smoothed_cross_entropy_backward_scale,
        8,
        (MATRIX, LABELS, COLUMNS, ROWS, ROWS, ROWS, ROWS),
        (MATRIX,),
    ),
    "swiglu": Operator(swiglu.swiglu, swiglu.swiglu_scale, 8, (MATRIX, MATRIX), (MATRIX,)),
    "swiglu_backward": Operator(
        swiglu.swiglu_backward, swiglu.swiglu_backward_scale, 8, (MATRIX, MATRIX, MATRIX), (MATRIX, MATRIX)
    ),
}


def find(name: str) -> Operator:
    """The operator of that name. ValueError if there is none."""
    if name not in OPERATORS:
        raise ValueError(f"no operator {name!r}; there are {', '.join(OPERATORS)}")
    return OPERATORS[name]


def worst_error(name: str, inputs: tuple, results: tuple) -> float:
    """The largest error of the results as a share of the tolerance; inf where only one of them is NaN.

    At most 1 is right. inputs: the kernel's tensors and scalars, results: its outputs, both in launch order and with
    the shapes of their kinds; a softmax also takes (..., n). Any one device; float64 there, CHUNK elements at a time.
    """
    operator = find(name)
    tensors, scalars = inputs[: len(operator.inputs)], inputs[len(operator.inputs) :]
    tensors = [by_row(t, kind) for t, kind in zip(tensors, operator.inputs, strict=True)]
    results = [by_row(t, kind) for t, kind in zip(results, operator.outputs, strict=True)]
    m, n = tensors[0].shape
    step = max(1, CHUNK // n)
    errors, sums = [], {}
    for start in range(0, max(1, m), step):
        part = slice(start, start + step)
        given = [t if k is COLUMNS else t[part] for t, k in zip(tensors, operator.inputs, strict=True)]
        values, scales = operator.values(*given, *scalars), operator.scales(*given, *scalars)
        for i, (kind, y, s) in enumerate(zip(operator.outputs, values, scales, strict=True)):
            if kind is COLUMNS:
                y_so_far, s_so_far = sums.get(i, (0.0, 0.0))
                sums[i] = y_so_far + y, s_so_far + s
            else:
                errors.append(share(y, s, operator.roundings, results[i][part]))
    errors += [share(y, s, operator.roundings, results[i]) for i, (y, s) in sums.items()]
    return max(errors)


def by_row(tensor: torch.Tensor, kind: Kind) -> torch.Tensor:
    """The tensor with its rows along dimension 0."""
    if kind is FLAT:
        return tensor.reshape(-1, 1)
    return tensor.reshape(-1, tensor.shape[-1]) if kind in (MATRIX, RESIDUAL) else tensor


def bytes_moved(
    name: str,
    shape: tuple[int, ...],
    dtype: torch.dtype,
    weight_dtype: torch.dtype = torch.float32,
    residual_dtype: torch.dtype | None = None,
) -> int:
    """Bytes that the operator cannot avoid: each input read once, each output written once.

    shape: (..., n), that of the matrix. weight_dtype: of weights, biases and their gradients; residual_dtype: None for
    `dtype`. Partial sums are the kernel's own affair and do not count.
    """
    operator = find(name)
    n = shape[-1]
    m = torch.Size(shape[:-1]).numel()
    size = {
        FLAT: m * n * dtype.itemsize,
        MATRIX: m * n * dtype.itemsize,
        RESIDUAL: m * n * (residual_dtype or dtype).itemsize,
        COLUMNS: n * weight_dtype.itemsize,
        ROWS: m * torch.float32.itemsize,
        LABELS: m * torch.int64.itemsize,
    }
    return sum(size[kind] for kind in operator.inputs + operator.outputs)
