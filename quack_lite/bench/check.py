"""Whether a result of a benchmark is right, on the sampled rows, by the reference at the level of the kernels."""

import math

import torch

from quack_lite import reference
from quack_lite.bench.cases import DTYPES, EPS, INPUTS, Job, Tensors
from quack_lite.reference.losses import IGNORED

PEERS_ROUNDINGS = 8  # in a peer's own dtype: it may round in between, where ours has to keep float32
SMALLEST_NORMAL = 2.0**-126


def our_error(job: Job, tensors: Tensors, outputs: tuple, gradients: tuple) -> float:
    """The largest error as a share of the tolerance that the tests hold our kernels to; at most 1 is right.

    outputs: of the public function, whole; gradients: of its inputs for tensors.checked, empty for a forward job.
    """
    inputs = kernel_inputs(job, tensors, outputs)
    results = kernel_results(job, tensors, outputs, gradients)
    hidden = [value.float() for value in reference.OPERATORS[job.kernel].values(*inputs)[len(results) :]]
    return reference.worst_error(job.kernel, inputs, (*results, *hidden))


def peer_error(job: Job, tensors: Tensors, outputs: tuple, gradients: tuple) -> float:
    """The largest error as a share of what a peer may be off; inf where only one is NaN. Arguments as in our_error."""
    inputs = kernel_inputs(job, tensors, outputs)
    operator = reference.OPERATORS[job.kernel]
    expected = zip(operator.values(*inputs), operator.scales(*inputs), strict=True)
    results = kernel_results(job, tensors, outputs, gradients)
    return max(share(y, s, result, DTYPES[job.dtype]) for (y, s), result in zip(expected, results, strict=False))


def share(y: torch.Tensor, scale: torch.Tensor | None, result: torch.Tensor, dtype: torch.dtype) -> float:
    """Error over PEERS_ROUNDINGS of `dtype` in the reference y and in the size of its terms."""
    wide = result.double().reshape(y.shape)
    size = y.abs() + (0 if scale is None else scale)
    room = PEERS_ROUNDINGS * torch.finfo(dtype).eps * size + SMALLEST_NORMAL
    off = ((wide - y).abs() / room).masked_fill((wide == y) | (wide.isnan() & y.isnan()), 0.0)
    return off.nan_to_num(nan=math.inf, posinf=math.inf).max().item()


def kernel_inputs(job: Job, tensors: Tensors, outputs: tuple) -> tuple:
    """What the reference of the kernel takes, on the sampled rows; `outputs` are those of the forward."""
    rows, kinds = tensors.rows, INPUTS[job.operator]
    inputs = [x.float() if kind == "w" else x[rows] for kind, x in zip(kinds, tensors.inputs, strict=True)]
    scalars = (EPS,) if "w" in kinds else (IGNORED,) if "t" in kinds else ()
    if not job.backward:
        return (*inputs, *scalars)
    outputs = [y.detach()[rows] for y in outputs]
    sent = [dy[rows] for dy in tensors.checked]
    if job.operator in ("softmax", "log_softmax"):
        return sent[0], outputs[0]
    if job.operator == "add_rms_norm":
        return *sent, outputs[1], inputs[2], *scalars
    if job.operator == "layer_norm":
        mean_and_rstd = reference.OPERATORS["layer_norm"].values(*inputs, *scalars)[1:]
        return *sent, *inputs[:2], *(value.float() for value in mean_and_rstd)
    if job.operator == "cross_entropy":
        lse = torch.logsumexp(inputs[0].double(), -1).float()
        return *inputs, lse, *sent, *scalars
    return (*sent, *inputs, *scalars)


def kernel_results(job: Job, tensors: Tensors, outputs: tuple, gradients: tuple) -> tuple:
    """The results as the kernel gives them, on the sampled rows; a weight's gradient is one partial sum (1, n)."""
    if not job.backward:
        return tuple(y[tensors.rows] for y in outputs)
    kinds = INPUTS[job.operator].replace("t", "")
    results = [g[None] if kind == "w" else g[tensors.rows] for kind, g in zip(kinds, gradients, strict=True)]
    return tuple(results[1:] if job.operator == "add_rms_norm" else results)  # the residual's is the kernel's
