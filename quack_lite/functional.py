"""The operators under the names, with the arguments and with the results of torch.nn.functional.

Inputs are float32, float16 or bfloat16 tensors on a GPU (Hopper), of any leading shape. Kernels run on torch's current
stream and on the device of the input; sums are taken in float32; results are new contiguous tensors.

A row has up to 300,000 elements; with a gradient at least up to 262,144, in float32 131,072. Rows may be strided
or start at any address. They are copied first where their elements are not neighbours, or where they do not
start, modulo 16 bytes, where the rows of a new tensor do. Two calls on the same rows give the same bits. A row's bits
do not depend on the other rows; where n is not a multiple of 16 bytes, the last bit may depend on the row's place.

Gradients are made for the inputs that need them, once: a gradient of a gradient raises RuntimeError. While a CUDA graph
is captured, a kernel that has not run before raises RuntimeError. Wrong dtype: TypeError. Wrong device or shape, a row
too long: ValueError. A dimension that is not there: IndexError. Autocast does not change the dtype of a result.
"""

import torch

from quack_lite import ops, rows
from quack_lite.checks import (
    check_backward,
    check_dim,
    check_dtype,
    check_input,
    check_labels,
    check_loss,
    check_norm,
    check_residual,
    check_same,
    check_vector,
)

OVER_LAST = {"softmax": ops.softmax, "log_softmax": ops.log_softmax}
FLOAT32_EPS = torch.finfo(torch.float32).eps


def softmax(input: torch.Tensor, dim: int = -1, *, dtype: torch.dtype | None = None) -> torch.Tensor:
    """exp(input - max) / sum(exp(input - max)) over `dim`; the result has the shape of the input.

    dtype: the input is converted to it before, as in torch.nn.functional.softmax.
    As in torch, a row of nothing but -inf, a NaN or +inf gives NaN in its whole row.
    Source: kernels/softmax.py.
    """
    return over_dim("softmax", input, dim, dtype)


def log_softmax(input: torch.Tensor, dim: int = -1, *, dtype: torch.dtype | None = None) -> torch.Tensor:
    """input - max - log(sum(exp(input - max))) over `dim`; the result has the shape of the input.

    dtype: the input is converted to it before, as in torch.nn.functional.log_softmax.
    Source: kernels/softmax.py.
    """
    return over_dim("log_softmax", input, dim, dtype)


def rms_norm(
    input: torch.Tensor, normalized_shape, weight: torch.Tensor | None = None, eps: float | None = None
) -> torch.Tensor:
    """input / sqrt(mean(input**2) + eps) * weight over the last dimension, in the input's shape and dtype.

    normalized_shape: the size of the last dimension, an int or a tuple of one.
    weight: (n), floating point; converted to float32 if it is not.  eps: None is float32's epsilon for every dtype.
    Gradients of input and weight; the weight's is the same to the bit in every run. Source: kernels/rms_norm.py.
    """
    check_norm("rms_norm", input, normalized_shape, weight)
    grad = wants_grad(input, weight)
    if grad:
        check_backward("rms_norm", input)
    return ops.rms_norm(grad, input, weight, FLOAT32_EPS if eps is None else float(eps))


def add_rms_norm(
    input: torch.Tensor,
    residual: torch.Tensor,
    normalized_shape,
    weight: torch.Tensor | None = None,
    eps: float | None = None,
    residual_dtype: torch.dtype | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """-> (rms_norm(r) in the input's dtype, r), r = input + residual, in one pass over memory.

    residual: the input's shape; its dtype or float32.  residual_dtype: of r, the residual's own or float32; None is the
    residual's own. A float16 input with a float32 residual is converted first. The norm is that of r as it is stored.
    Other arguments: rms_norm. Gradients of input, residual and weight. Source: kernels/rms_norm.py.
    """
    check_norm("add_rms_norm", input, normalized_shape, weight)
    check_residual(input, residual, residual_dtype)
    if residual_dtype is not None:
        residual = residual.to(residual_dtype)
    if input.dtype != residual.dtype and input.dtype not in rows.MIXED:
        y, r = add_rms_norm(input.float(), residual, normalized_shape, weight, eps)
        return y.to(input.dtype), r
    grad = wants_grad(input, residual, weight)
    if grad:
        check_backward("add_rms_norm", input, rows.pair_name(input.dtype, residual.dtype))
    return ops.add_rms_norm(grad, input, residual, weight, FLOAT32_EPS if eps is None else float(eps))


def layer_norm(
    input: torch.Tensor,
    normalized_shape,
    weight: torch.Tensor | None = None,
    bias: torch.Tensor | None = None,
    eps: float = 1e-5,
) -> torch.Tensor:
    """(input - mean) / sqrt(var + eps) * weight + bias over the last dimension, in the input's shape and dtype.

    The variance is the mean of (input - mean)**2, taken after the mean. weight, bias: (n), floating point.
    normalized_shape: the size of the last dimension, an int or a tuple of one.
    Gradients of input, weight and bias. Source: kernels/layer_norm.py.
    """
    check_norm("layer_norm", input, normalized_shape, weight)
    if bias is not None:
        check_vector("layer_norm", "bias", bias, input)
    grad = wants_grad(input, weight, bias)
    if grad:
        check_backward("layer_norm", input)
    return ops.layer_norm(grad, input, weight, bias, float(eps))[0]


def cross_entropy(
    input: torch.Tensor,
    target: torch.Tensor,
    weight: torch.Tensor | None = None,
    *,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
    inplace_backward: bool = False,
) -> torch.Tensor:
    """log(sum(exp(input))) - input[target] for each row, in the input's dtype: a mean, a sum, or (m) losses.

    input: logits (m, n) or (n).  target: labels (m) or (), int64, int32, uint8.  weight: (n), floating point.
    reduction: "mean" (over rows that are not ignored, by weight), "sum", "none".
    A label that is neither ignore_index nor a class gives its row the loss NaN and the gradient zero. The mean of no
    rows is NaN, and its gradient zero. More threads share a row where there are at most 128, so that the last bit of a
    loss may differ from that in a larger batch.
    inplace_backward: the gradient is written over the logits, which saves as much memory as they take. They may be used
    by nothing else then: another use that needs their values raises RuntimeError in its backward. Logits that are not
    contiguous, or do not start at 16 bytes, are left as they are; torch.compile leaves them too. Logits that are a leaf
    of the graph raise ValueError.
    Source: kernels/cross_entropy.py.
    """
    check_input("cross_entropy", input)
    check_labels(input, target)
    check_loss(input, weight, reduction, label_smoothing)
    grad = wants_grad(input)
    if grad:
        check_backward("smoothed_cross_entropy" if label_smoothing else "cross_entropy", input)
        if inplace_backward and input.is_leaf:
            raise ValueError(
                "cross_entropy: inplace_backward=True was given for logits that are a leaf of the graph; their "
                "gradient would be their own memory: leave it out"
            )
    if target.dtype != torch.int64:
        target = target.to(torch.int64)
    if input.ndim == 1:
        target = target.reshape(())
    return ops.cross_entropy(
        grad, input, target, weight, ignore_index, reduction, float(label_smoothing), inplace_backward
    )[0]


def swiglu(gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    """gate / (1 + exp(-gate)) * up, elementwise; both of one shape and dtype. Source: kernels/swiglu.py."""
    check_input("swiglu", gate, "gate")
    check_input("swiglu", up, "up")
    check_same("swiglu", ("gate", "up"), gate, up)
    if gate.dtype != up.dtype:
        raise TypeError(f"swiglu: gate of {gate.dtype} and up of {up.dtype} were given; both need one dtype")
    if gate.ndim == 0:
        return swiglu(gate.reshape(1), up.reshape(1)).reshape(())
    return ops.swiglu(wants_grad(gate, up), gate, up)


def copy(input: torch.Tensor) -> torch.Tensor:
    """A new contiguous tensor with the elements of `input`, of any number of dimensions.

    An input that is not contiguous, or does not start at 16 bytes, is copied by torch. Source: kernels/copy.py.
    """
    check_input("copy", input)
    return ops.copy(wants_grad(input), input)


def over_dim(operator: str, input: torch.Tensor, dim: int, dtype: torch.dtype | None) -> torch.Tensor:
    """softmax or log_softmax over any dimension."""
    if dtype is not None:
        check_dtype(operator, dtype)
        input = input.to(dtype) if isinstance(input, torch.Tensor) else input
    check_input(operator, input)
    ndim = input.ndim
    if ndim == 0 or (dim != -1 and dim != ndim - 1):
        check_dim(dim, ndim)
        if ndim == 0:
            return over_dim(operator, input.reshape(1), -1, None).reshape(())
        return over_dim(operator, input.movedim(dim, -1), -1, None).movedim(-1, dim).contiguous()
    grad = wants_grad(input)
    if grad:
        check_backward(operator, input)
    return OVER_LAST[operator](grad, input)


def wants_grad(*inputs: torch.Tensor | None) -> bool:
    """Whether autograd has to know of a call with these inputs."""
    for x in inputs:
        if x is not None and x.requires_grad:
            return torch.is_grad_enabled()
    return False
