"""Ours, torch, torch.compile and other people's libraries, each called as its users call it.

A peer's backward is what autograd runs, without the forward: torch.autograd.grad over a graph that is kept. For
torch.compile that is the backward that it made of the compiled forward. Libraries have modules of their own here, which
are imported when a peer is asked for: QuACK changes CuTe's tensors for the whole process, so ours is compiled before.
"""

import importlib
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import torch
from torch.nn import functional as torch_functional

from quack_lite import functional, machine
from quack_lite.bench.cases import EPS, Case, Job

OURS, TORCH, COMPILED, TUNED = "quack_lite", "torch", "torch.compile", "torch.compile max-autotune"
QUACK, LIGER = "quack-kernels", "liger-kernel"
TUNED_LENGTHS = (4096, 16384, 65536, 131072, 262144)
TUNED_LESS, FEWER_LENGTHS = ("log_softmax", "swiglu"), (4096, 32768, 131072)
TUNED_MODE = "max-autotune-no-cudagraphs"
MOST_SHAPES = 64  # of one function; torch.compile gives up after eight otherwise
NORMS = ("rms_norm", "add_rms_norm", "layer_norm")


class Peer(NamedTuple):
    """forward(*inputs): a tensor or a tuple of them.

    backward(*inputs): (outputs, function of the outputs' gradients that gives those of the floating-point inputs).
    """

    forward: Callable
    backward: Callable


class Library(NamedTuple):
    """package: what has to be installed.  module: where its peers are, a dict PEERS.  forward, backward: which."""

    package: str
    module: str
    forward: tuple[str, ...]
    backward: tuple[str, ...]


LIBRARIES = {
    QUACK: Library(
        "quack",
        "quack_lite.bench.quack_kernels",
        ("softmax", *NORMS, "cross_entropy"),
        ("softmax", *NORMS, "cross_entropy"),
    ),
    # Liger's cross-entropy takes the gradient in its forward pass, so that its backward is other work.
    LIGER: Library(
        "liger_kernel",
        "quack_lite.bench.liger_kernel",
        ("softmax", *NORMS, "cross_entropy", "swiglu"),
        ("softmax", *NORMS, "swiglu"),
    ),
}


def names(job: Job, case: Case) -> list[str]:
    """Who is measured, ours first."""
    if job.operator == "copy":
        return [OURS, TORCH]
    tuned = [TUNED] if job.dtype == "bf16" and case.n in tuned_lengths(job.operator) else []
    libraries = [name for name, library in LIBRARIES.items() if has(library, job)]
    return [OURS, TORCH, COMPILED, *tuned, *libraries]


def tuned_lengths(operator: str) -> tuple[int, ...]:
    """Where torch.compile may search for the fastest."""
    return FEWER_LENGTHS if operator in TUNED_LESS else TUNED_LENGTHS


def has(library: Library, job: Job) -> bool:
    """Whether it has the operator and is installed."""
    return job.operator in (library.backward if job.backward else library.forward) and machine.has_module(
        library.package
    )


@cache
def find(name: str, operator: str) -> Peer:
    """A peer, imported if need be."""
    if name in LIBRARIES:
        return importlib.import_module(LIBRARIES[name].module).PEERS[operator]
    if name == OURS:
        return peer(OURS_FORWARD[operator])
    forward = TORCH_FORWARD[operator]
    return peer({TORCH: eager, COMPILED: compiled, TUNED: tuned}[name](forward))


def eager(forward: Callable) -> Callable:
    """As it is."""
    return forward


def compiled(forward: Callable) -> Callable:
    """torch.compile's default mode, for each shape by itself."""
    allow_many_shapes()
    return torch.compile(forward, dynamic=False)


def tuned(forward: Callable) -> Callable:
    """The same, with a search for the fastest kernel."""
    allow_many_shapes()
    return torch.compile(forward, dynamic=False, mode=TUNED_MODE)


def allow_many_shapes() -> None:
    """Lets torch.compile compile for many shapes, say so where it would not, and keep a graph for many backwards."""
    from torch._dynamo import config as dynamo
    from torch._functorch import config as functorch

    dynamo.recompile_limit = MOST_SHAPES
    dynamo.fail_on_recompile_limit_hit = True
    functorch.donated_buffer = False


def peer(forward: Callable) -> Peer:
    """A peer whose backward is autograd's."""
    return Peer(forward, lambda *inputs: kept_graph(forward, *inputs))


def kept_graph(forward: Callable, *inputs: torch.Tensor) -> tuple[tuple, Callable]:
    """Runs the forward once; (its outputs, the backward)."""
    leaves = [x.detach().requires_grad_(x.is_floating_point()) for x in inputs]
    outputs = as_tuple(forward(*leaves))
    wanted = [leaf for leaf in leaves if leaf.requires_grad]
    return outputs, lambda *gradients: torch.autograd.grad(outputs, wanted, gradients, retain_graph=True)


def as_tuple(outputs: torch.Tensor | tuple) -> tuple:
    """The outputs as a tuple."""
    return outputs if isinstance(outputs, tuple) else (outputs,)


def our_softmax(x):
    return functional.softmax(x, -1)


def our_log_softmax(x):
    return functional.log_softmax(x, -1)


def our_rms_norm(x, w):
    return functional.rms_norm(x, w.shape, w, EPS)


def our_add_rms_norm(x, residual, w):
    return functional.add_rms_norm(x, residual, w.shape, w, EPS)


def our_layer_norm(x, w, b):
    return functional.layer_norm(x, w.shape, w, b, EPS)


def our_cross_entropy(x, target):
    return functional.cross_entropy(x, target, reduction="none")


def our_swiglu(gate, up):
    return functional.swiglu(gate, up)


def our_copy(x):
    return functional.copy(x)


def torch_softmax(x):
    return torch.softmax(x, -1)


def torch_log_softmax(x):
    return torch.log_softmax(x, -1)


def torch_rms_norm(x, w):
    """torch's fused kernel takes one dtype only, so x goes to that of the weights."""
    return torch_functional.rms_norm(x.to(w.dtype), w.shape, w, EPS).to(x.dtype)


def torch_add_rms_norm(x, residual, w):
    total = x + residual
    return torch_rms_norm(total, w), total


def torch_layer_norm(x, w, b):
    """As torch_rms_norm."""
    return torch_functional.layer_norm(x.to(w.dtype), w.shape, w, b, EPS).to(x.dtype)


def torch_cross_entropy(x, target):
    return torch_functional.cross_entropy(x, target, reduction="none")


def torch_swiglu(gate, up):
    return torch_functional.silu(gate) * up


OURS_FORWARD = {
    "copy": our_copy,
    "softmax": our_softmax,
    "log_softmax": our_log_softmax,
    "rms_norm": our_rms_norm,
    "add_rms_norm": our_add_rms_norm,
    "layer_norm": our_layer_norm,
    "cross_entropy": our_cross_entropy,
    "swiglu": our_swiglu,
}
TORCH_FORWARD = {
    "copy": torch.clone,
    "softmax": torch_softmax,
    "log_softmax": torch_log_softmax,
    "rms_norm": torch_rms_norm,
    "add_rms_norm": torch_add_rms_norm,
    "layer_norm": torch_layer_norm,
    "cross_entropy": torch_cross_entropy,
    "swiglu": torch_swiglu,
}
