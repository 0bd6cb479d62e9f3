"""Registration with torch.library, and the short way past its dispatcher.

A call through the dispatcher costs more on the host than all checks and the launch's arguments together. Where nothing
needs to see the call, its implementation is called as a plain function.
"""

import torch
from torch._C import _are_functorch_transforms_active, _len_torch_dispatch_stack
from torch.compiler import is_compiling

LIBRARY = torch.library.Library("quack_lite", "DEF")
RUNS = {}  # name: implementation of each registered operator
PLAIN = (torch.Tensor, torch.nn.Parameter)


def register(schema: str, run, fake):
    """An operator without a gradient of its own; returns the function that calls it.

    run: its implementation for CUDA tensors.  fake: makes its outputs without data, from tensors without data.
    """
    op = define(schema, run, fake)

    def call(*args):
        return op(*args) if watched(args[0]) else run(*args)

    return call


def register_differentiable(schema: str, run, fake, save, backward):
    """An operator with a gradient; returns the function that calls it: call(needs_grad, *args).

    save(ctx, inputs, output) keeps what backward(ctx, *grads) needs. A gradient of the gradient raises RuntimeError.
    """
    op = define(schema, run, fake)
    guarded = once(op._opname, backward)
    torch.library.register_autograd(op._name, guarded, setup_context=save, lib=LIBRARY)
    apply = node(op._opname, run, save, guarded)

    def call(needs_grad, *args):
        if watched(args[0]):
            return op(*args)
        return apply(*args) if needs_grad else run(*args)

    return call


def define(schema: str, run, fake):
    """Tells torch of an operator."""
    name = schema.split("(")[0]
    LIBRARY.define(schema)
    LIBRARY.impl(name, run, "CUDA")
    torch.library.register_fake(f"quack_lite::{name}", fake, lib=LIBRARY)
    RUNS[name] = run
    return getattr(torch.ops.quack_lite, name).default


def watched(x: torch.Tensor) -> bool:
    """Whether the dispatcher has to see a call on x: there is a compiler, subclass, mode or function transform."""
    return (
        is_compiling() or type(x) not in PLAIN or _len_torch_dispatch_stack() > 0 or _are_functorch_transforms_active()
    )


def node(name: str, run, save, backward):
    """The `apply` of an autograd.Function that runs an implementation."""

    def forward(ctx, *inputs):
        output = run(*inputs)
        save(ctx, inputs, output)
        return output

    parts = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    function = type(torch.autograd.Function)(name, (torch.autograd.Function,), parts)
    # Function.apply looks for function transforms, and `watched` has; what it calls then is enough.
    return super(torch.autograd.Function, function).apply


def once(name: str, backward):
    """The backward, whose results raise an error when they are differentiated."""

    def guarded(ctx, *grads):
        if not torch.is_grad_enabled():
            return backward(ctx, *grads)
        with torch.no_grad():
            found = backward(ctx, *grads)
        return tuple(Seal.apply(name, g.detach().requires_grad_()) if g is not None else None for g in found)

    return guarded


class Seal(torch.autograd.Function):
    """The identity, without a derivative."""

    @staticmethod
    def forward(ctx, name, x):
        ctx.name = name
        return x.view_as(x)

    @staticmethod
    def backward(ctx, _):
        raise RuntimeError(
            f"quack_lite.{ctx.name}: a gradient of its gradient was asked for, and only the first is built: "
            "use torch.nn.functional where you need create_graph=True"
        )
