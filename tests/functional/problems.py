"""Problems for the public functions: inputs, the call, and how far the results lie from the reference.

A problem is an operator's name and its tensors. `dtype` is a name as in the catalog: "bfloat16", or
"bfloat16+float32" where add_rms_norm has its residual in float32.
"""

import contextlib
import gc
import math
from typing import NamedTuple

import pytest
import torch

import quack_lite
from quack_lite import catalog, reference
from quack_lite.bench.protocol import gpu_lock

DTYPES = ["float32", "float16", "bfloat16"]
EPS = 1e-5
IGNORED = -100
# Each operator's tensors: x rows, r rows that may be wider, w float32 weights, t labels.
TENSORS = {
    "copy": "x",
    "softmax": "x",
    "log_softmax": "x",
    "rms_norm": "xw",
    "add_rms_norm": "xrw",
    "layer_norm": "xww",
    "cross_entropy": "xt",
    "swiglu": "xx",
}
OPERATORS = list(TENSORS)
ALL = [(name, dtype) for name in OPERATORS for dtype in DTYPES] + [("add_rms_norm", "bfloat16+float32")]


class Run(NamedTuple):
    """What an operator gave: outputs, the gradients that were sent in, one for each, and those that came out."""

    outputs: tuple
    sent: tuple
    gradients: tuple


def normal(*shape, dtype="bfloat16", seed=0) -> torch.Tensor:
    """Normally distributed numbers of standard deviation 4, the same each time."""
    generator = torch.Generator(device="cuda").manual_seed(seed)
    return (4 * torch.randn(shape, device="cuda", generator=generator)).to(getattr(torch, dtype))


def labels(m: int, n: int) -> torch.Tensor:
    """m labels of n classes, the last class first."""
    return n - 1 - torch.arange(m, device="cuda") * 7919 % n


def problem(name: str, m: int, n: int, dtype: str = "bfloat16") -> list[torch.Tensor]:
    """The tensors of an operator for m rows of n."""
    narrow, wide = dtype.split("+")[0], dtype.split("+")[-1]
    kinds = {"x": (narrow, (m, n)), "r": (wide, (m, n)), "w": ("float32", (n,))}
    return [
        labels(m, n) if kind == "t" else normal(*kinds[kind][1], dtype=kinds[kind][0], seed=seed)
        for seed, kind in enumerate(TENSORS[name])
    ]


def call(name: str, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """The outputs of the public function."""
    function = getattr(quack_lite, name)
    if name in ("rms_norm", "layer_norm"):
        return (function(tensors[0], tensors[1].shape, *tensors[1:], eps=EPS),)
    if name == "add_rms_norm":
        return function(*tensors[:2], tensors[2].shape, tensors[2], eps=EPS)
    if name == "cross_entropy":
        return (function(*tensors, reduction="none"),)
    return (function(*tensors),)


def run(name: str, tensors, sent=None) -> Run:
    """Forward and backward; `sent`: the gradients of the outputs, else random ones."""
    leaves = [x.detach().requires_grad_() if x.is_floating_point() else x for x in tensors]
    outputs = call(name, *leaves)
    if sent is None:
        sent = tuple(normal(*y.shape, seed=9 + i).to(y.dtype) for i, y in enumerate(outputs))
    wanted = [x for x in leaves if x.requires_grad]
    gradients = torch.autograd.grad(outputs, wanted, sent)
    return Run(tuple(y.detach() for y in outputs), sent, gradients)


def forward_error(name: str, tensors, outputs) -> float:
    """The largest error of the outputs as a share of the tolerance."""
    results = [y if name == "cross_entropy" else rows(y) for y in outputs]
    return reference.worst_error(name, kernel_inputs(name, tensors), (*results, *statistics(name, tensors)))


def backward_error(name: str, tensors, ran: Run) -> float:
    """The largest error of the gradients as a share of the tolerance, for the outputs as they are."""
    gradients = [g[None] if x.ndim == 1 else rows(g) for x, g in zip(tensors, ran.gradients, strict=False)]
    if name == "copy":
        return 0.0 if torch.equal(gradients[0], rows(ran.sent[0])) else math.inf
    if name == "add_rms_norm":  # the gradient of the residual, rounded, is that of the input
        first, *gradients = gradients
        if not torch.equal(first, gradients[0].to(first.dtype)):
            return math.inf
    return reference.worst_error(f"{name}_backward", backward_inputs(name, tensors, ran), tuple(gradients))


def kernel_inputs(name: str, tensors) -> tuple:
    """What the forward kernel gets."""
    kinds = TENSORS[name]
    scalars = (IGNORED,) if "t" in kinds else (EPS,) if "w" in kinds else ()
    by_kind = {"x": rows, "r": rows, "w": torch.Tensor.float, "t": lambda x: x}
    return (*(by_kind[kind](x) for kind, x in zip(kinds, tensors, strict=True)), *scalars)


def backward_inputs(name: str, tensors, ran: Run) -> tuple:
    """What the backward kernel gets, the results of the forward one among it."""
    inputs = kernel_inputs(name, tensors)
    if name == "cross_entropy":
        return (*inputs[:2], *statistics(name, tensors), ran.sent[0].float())
    sent = tuple(map(rows, ran.sent))
    if name in ("softmax", "log_softmax"):
        return (*sent, rows(ran.outputs[0]))
    if name == "add_rms_norm":
        return (*sent, rows(ran.outputs[1]), *inputs[2:])
    if name == "layer_norm":
        return (*sent, *inputs[:2], *statistics(name, tensors))
    return (*sent, *inputs)


def statistics(name: str, tensors) -> tuple:
    """What the forward kernel gives beside the public outputs: mean and 1 / deviation, or log-sum-exp."""
    with torch.no_grad():
        if name == "layer_norm":
            return torch.ops.quack_lite.layer_norm(*tensors, EPS)[1:]
        if name == "cross_entropy":
            return torch.ops.quack_lite.cross_entropy(*tensors, None, IGNORED, "none", 0.0, False)[1:2]
    return ()


def worst(name: str, tensors) -> float:
    """The larger of the errors forward and backward."""
    ran = run(name, tensors)
    return max(forward_error(name, tensors, ran.outputs), backward_error(name, tensors, ran))


def rows(x: torch.Tensor) -> torch.Tensor:
    """x as a matrix of its last dimension."""
    return x.reshape(-1, x.shape[-1])


def bits(x: torch.Tensor) -> torch.Tensor:
    """The elements as integers, since NaN is equal to nothing."""
    return x.contiguous().view({2: torch.int16, 4: torch.int32, 8: torch.int64}[x.itemsize])


def same_bits(first, second) -> bool:
    """Whether two tuples of tensors are equal to the bit."""
    return all(torch.equal(bits(a), bits(b)) for a, b in zip(first, second, strict=True))


def longest(name: str, dtype: str, backward: bool = False) -> int:
    """The longest row of an operator."""
    return catalog.longest(f"{name}_backward" if backward else name, dtype)


@contextlib.contextmanager
def much_memory(size: int):
    """One such test at a time; skips where the GPU has less than `size` bytes free."""
    with gpu_lock(exclusive=True):
        gc.collect()
        torch.cuda.empty_cache()
        if torch.cuda.mem_get_info()[0] < size:
            pytest.skip(f"needs {size / 2**30:.0f} GiB of free GPU memory")
        yield
        gc.collect()
        torch.cuda.empty_cache()


def placed(x: torch.Tensor, pad: int = 0, start: int = 0, step: int = 1) -> torch.Tensor:
    """The values of a matrix in other places: `start` elements in, every `step`-th element, NaN everywhere else."""
    m, n = x.shape
    stride = n * step + pad
    buffer = torch.full((start + m * stride + 1,), math.nan, dtype=x.dtype, device=x.device)
    view = buffer.as_strided((m, n), (stride, step), start)
    view.copy_(x)
    return view
