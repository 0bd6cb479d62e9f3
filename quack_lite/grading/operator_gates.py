"""The gates of an operator task: what torch was told of it (Compiler), what it computes on which stream (GPU)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from unittest import mock

from quack_lite.grading.feedback import GradeFailed, first_line
from quack_lite.grading.kernel_gates import SLEEP_CYCLES, fresh
from quack_lite.grading.task import Gate

if TYPE_CHECKING:
    from types import ModuleType

    import torch

ROUNDING = {2: 2**-8, 4: 2**-18}  # by bytes an element: half an ulp of bfloat16; float32 with its sums
MISCALLED = ("expected at most", "is missing value for argument", "Expected a value of type")  # torch of a schema
MISRETURNED = ("not an instance of 'sequence'", "Unable to cast")  # torch of what a function returned
OF_THE_LARGEST = 2**-16  # of a tensor's largest element: what a sum of rounded terms may be off
TERMS = 1.0  # of a result, at least: a small one may be the difference of larger terms
TOLD = {
    "test_schema": "it does not keep to its schema: it changes or returns an input, or two results share memory",
    "test_autograd_registration": "torch was not told its gradient: torch.library.register_autograd",
    "test_faketensor": "its fake and what it really returns differ: in shape, dtype or strides",
    "test_aot_dispatch_dynamic": "traced for torch.compile it gives other values or gradients than called: is its "
    "backward made of operators that torch knows, and is nothing kept beside save_for_backward",
}


@dataclass(frozen=True)
class OperatorCases:
    """What an operator is tried on.

    sizes: one case each.  inputs(size, generator): tensors on the generator's device, and numbers.
    reference(*inputs): a tuple of results in float64 from inputs in float64, to be differentiated by torch.
    dtypes: of the results.  differentiable: how many of the results have a gradient, the first ones.
    """

    sizes: tuple
    inputs: Callable[[Any, torch.Generator], tuple]
    reference: Callable[..., tuple[torch.Tensor, ...]]
    dtypes: Callable[[], tuple[torch.dtype, ...]]
    differentiable: int = 1


def gates(cases: OperatorCases) -> tuple[Gate, ...]:
    """All gates of an operator."""
    return (
        Gate("fake", "compiler", lambda submission: judge_fake(overload(submission.answer), cases)),
        Gate("opcheck", "compiler", lambda submission: judge_opcheck(overload(submission.answer), cases)),
        Gate("gradient", "compiler", lambda submission: judge_gradient(overload(submission.answer), cases, "cpu")),
        Gate("run", "compiler", lambda submission: judge_run(overload(submission.answer), cases)),
        Gate("values", "gpu", lambda submission: judge_on_gpu(overload(submission.answer), cases)),
        Gate("stream", "gpu", lambda submission: judge_stream(overload(submission.answer), cases)),
    )


def prepare() -> None:
    """Has torch load what it needs for opcheck and torch.compile, which takes seconds."""
    import torch

    library = torch.library.Library("quack_lite_grading", "FRAGMENT")
    library.define("copy(Tensor x) -> Tensor")
    library.impl("copy", torch.clone, "CPU")
    name = "quack_lite_grading::copy"
    torch.library.register_fake(name, torch.empty_like, lib=library)
    torch.library.register_autograd(name, lambda ctx, dy: dy, lib=library)
    operator = torch.ops.quack_lite_grading.copy.default
    torch.library.opcheck(operator, (torch.ones(4, 4, requires_grad=True),))
    torch.compile(operator, fullgraph=True, backend="aot_eager")(torch.ones(4, 4))


def forget(answer: ModuleType) -> None:
    """Takes back the operators that an answer told torch of, so that the next can use their names."""
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode

    for value in vars(answer).values():
        if isinstance(value, torch.library.Library):
            value._destroy()
    torch._dynamo.reset()
    FakeTensorMode.cache_clear()


def overload(answer: Any) -> Any:
    """The operator of torch.ops that was handed over, also as a packet of one or as torch.library.custom_op's."""
    import torch

    given = getattr(answer, "_opoverload", None) or getattr(answer, "default", answer)
    if not isinstance(given, torch._ops.OpOverload):
        raise GradeFailed(
            f"a {type(answer).__name__} was handed over: hand over the operator, torch.ops.NAMESPACE.NAME.default"
        )
    for key in ("CPU", "CUDA"):
        if not torch._C._dispatch_has_computed_kernel_for_dispatch_key(given.name(), key):
            raise GradeFailed(
                f'{given.name()} has nothing to run for {key} tensors: library.impl(NAME, function, "{key}")'
            )
    return given


def as_tuple(given: Any) -> tuple:
    """One result, or all."""
    return tuple(given) if isinstance(given, tuple | list) else (given,)


def judge_fake(op: Any, cases: OperatorCases) -> str:
    """Calls the operator on CUDA tensors that have no data."""
    for size in cases.sizes:
        inputs = cases.inputs(size, fresh("cpu"))
        wanted = cases.reference(*inputs)
        device, found = described(op, inputs)
        if len(found) != len(wanted):
            raise GradeFailed(f"its fake gives {len(found)} tensors and it has {len(wanted)} results")
        for number, (one, right, dtype) in enumerate(zip(found, wanted, cases.dtypes(), strict=True)):
            what = f"{size}: result {number} of its fake"
            judge_description(one, right, dtype, what)
            if one.device.type != device:
                raise GradeFailed(f"{what} is on {one.device} for inputs on a GPU: device=x.device")
    return "describes its results without data"


def described(op: Any, inputs: tuple, device: str = "cuda") -> tuple[str, tuple]:
    """The device asked for, and the results without data."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    try:
        with FakeTensorMode():
            return device, as_tuple(op(*[without_data(given, device) for given in inputs]))
    except Exception as error:
        if device == "cuda" and "not linked with support" in str(error):  # to index a fake wants torch with CUDA
            return described(op, inputs, "cpu")
        raise GradeFailed(no_fake(error)) from error


def without_data(given: Any, device: str) -> Any:
    """A fake tensor like the one that was given; a number stays."""
    import torch

    if not isinstance(given, torch.Tensor):
        return given
    return torch.empty_strided(given.shape, given.stride(), dtype=given.dtype, device=device)


def no_fake(error: Exception) -> str:
    """What went wrong where a fake was asked for."""
    import torch

    missing = isinstance(error, torch._subclasses.fake_tensor.UnsupportedOperatorException)
    if missing or "no fake impl" in str(error):
        return "it has no fake: torch.compile asks what the results look like before there are any data"
    if any(words in str(error) for words in MISCALLED):
        return f"its schema does not fit how it is called ({first_line(error)}): library.define"
    return (
        f"on tensors without data it raised {type(error).__name__}: {first_line(error)}: a fake only makes tensors, "
        "as many as the schema says"
    )


def judge_description(found: Any, right: torch.Tensor, dtype: torch.dtype, what: str) -> None:
    """GradeFailed unless shape, dtype and strides are those of a new contiguous tensor."""
    if found is None:
        raise GradeFailed(f"{what} is None: it returns the tensor that it makes")
    if tuple(found.shape) != tuple(right.shape):
        raise GradeFailed(f"{what} has the shape {tuple(found.shape)} and should have {tuple(right.shape)}")
    if found.dtype != dtype:
        raise GradeFailed(f"{what} is {found.dtype} and should be {dtype}")
    if not found.is_contiguous():
        raise GradeFailed(f"{what} has the strides {found.stride()}: results are contiguous, whatever x is")


def judge_opcheck(op: Any, cases: OperatorCases) -> str:
    """torch.library.opcheck on the CPU at two of the sizes, since it takes a second each."""
    import torch

    for size in cases.sizes[1:3]:
        leaves = [as_leaf(given) for given in cases.inputs(size, fresh("cpu"))]
        found = torch.library.opcheck(op, tuple(leaves), raise_exception=False)
        for test, said in found.items():
            if said != "SUCCESS":
                raise GradeFailed(f"{size}: {test}: {what_opcheck_found(test, said)}")
    return f"{len(found)} of {len(found)} tests"


def what_opcheck_found(test: str, said: Exception) -> str:
    """Where two ways of calling the operator differ, or what it raised in one of them."""
    text = first_line(said)[:200]
    if test == "test_autograd_registration":
        return TOLD[test]
    if "incorrect number of gradients" in text:  # its numbers count one that torch adds
        return "backward returns one gradient for each input of the operator, None for what has none"
    differs = {"test_schema": "not defined" in text, "test_aot_dispatch_dynamic": isinstance(said, AssertionError)}
    if not differs.get(test, True):
        return f"called, or in its backward, it raised {type(said).__name__}: {text}"
    return f"{TOLD.get(test, 'see torch.library.opcheck')} ({text})"


def as_leaf(given: Any) -> Any:
    """A tensor of floats that wants a gradient, with its strides; anything else as it is."""
    import torch

    if not isinstance(given, torch.Tensor) or not given.is_floating_point():
        return given
    return given.detach().requires_grad_()


def judge_gradient(op: Any, cases: OperatorCases, device: str) -> str:
    """Values and gradients against float64, with a gradient that is one element repeated, and one input at a time."""
    generator = fresh(device)
    for size in cases.sizes:
        _try_gradient(op, cases, cases.inputs(size, generator), size, generator)
    return f"as float64 at {len(cases.sizes)} sizes"


def _try_gradient(op: Any, cases: OperatorCases, inputs: tuple, size: Any, generator: torch.Generator) -> None:
    import torch

    leaves = [as_leaf(given) for given in inputs]
    exact = [given.double().detach().requires_grad_() if is_leaf(given) else given for given in leaves]
    found, wanted = as_tuple(op(*leaves)), cases.reference(*exact)
    _try_results(found, wanted, cases.differentiable, size)
    sent = [torch.randn(one.shape, generator=generator, device=one.device).to(one.dtype) for one in found]
    sent[0] = sent[0] if size != cases.sizes[0] else torch.ones((), device=found[0].device).to(found[0].dtype)
    sent[0] = sent[0].expand(found[0].shape)
    graded = [number for number, given in enumerate(leaves) if is_leaf(given)]
    names = [op._schema.arguments[i].name for i in graded]
    right = torch.autograd.grad(wanted[0], [exact[i] for i in graded], sent[0].double())
    for when in ("", "called on other inputs before its backward, "):
        if when:  # a number is another one, too
            others = [as_leaf(given) for given in cases.inputs(size, generator)]
            op(*[given if isinstance(given, torch.Tensor) else given / 2 for given in others])
        got = torch.autograd.grad(found[0], [leaves[i] for i in graded], sent[0], retain_graph=True, allow_unused=True)
        for name, one, other in zip(names, got, right, strict=True):
            if one is None:
                raise GradeFailed(f"{size}: no gradient reaches {name}: backward returns one for each input")
            close(one, other, f"{size}: {when}the gradient of {name}")


def _try_results(found: tuple, wanted: tuple, differentiable: int, size: Any) -> None:
    """Their values, and which of them know where they came from."""
    for number, (one, right) in enumerate(zip(found, wanted, strict=True)):
        close(one, right, f"{size}: result {number}", TERMS)
        if not one.is_contiguous():
            raise GradeFailed(f"{size}: result {number} has the strides {one.stride()}, and its fake says contiguous")
        if one.requires_grad and number >= differentiable:
            raise GradeFailed(
                f"{size}: result {number} pretends to have a gradient: ctx.mark_non_differentiable in setup_context"
            )
    if not found[0].requires_grad:
        raise GradeFailed(
            f"{size}: result 0 does not know where it came from: torch.library.register_autograd, and no "
            "ctx.mark_non_differentiable for it"
        )


def is_leaf(given: Any) -> bool:
    """Whether it wants a gradient."""
    return getattr(given, "requires_grad", False)


def close(found: torch.Tensor, right: torch.Tensor, what: str, terms: float = 0.0) -> None:
    """GradeFailed where a tensor is further from float64's than rounding allows.  terms: their size, at least."""
    if found.shape != right.shape:
        raise GradeFailed(f"{what} has the shape {tuple(found.shape)} and should have {tuple(right.shape)}")
    right = right.detach()
    largest = max(terms, float(right.abs().max()) if right.numel() else 0.0)
    allowed = ROUNDING[found.element_size()] * right.abs() + OF_THE_LARGEST * largest
    wrong = ~((found.detach().double() - right).abs() <= allowed)
    if wrong.any():
        first = int(wrong.flatten().int().argmax())
        got, want = (float(tensor.detach().flatten()[first]) for tensor in (found, right))
        raise GradeFailed(
            f"{what}: {int(wrong.sum())} of {right.numel()} elements differ, at {first} it is {got:g} and should be "
            f"{want:g}"
        )


def judge_run(op: Any, cases: OperatorCases) -> str:
    """What it makes for CUDA tensors, tried on CPU tensors, with kernels that do nothing.

    Where it asks for a GPU itself it raises here and may be right: then it waits for one.
    """
    import torch

    from quack_lite.launch import Built

    on_gpu, kept = torch._C.DispatchKeySet(torch._C.DispatchKey.CUDA), []
    for size in (*cases.sizes, cases.sizes[-1]):  # the last one twice: for a tensor that is kept for the next call
        inputs = cases.inputs(size, fresh("cpu"))
        wanted, what = cases.reference(*inputs), f"{size}: for CUDA tensors, result"
        try:
            with mock.patch.object(Built, "__call__", lambda *given: None):
                found = as_tuple(op.redispatch(on_gpu, *inputs))
        except Exception as error:
            if any(words in str(error) for words in MISRETURNED):
                raise GradeFailed(f"{what}s are not what its schema says: {first_line(error)}") from error
            return "not tried without a GPU"
        if len(found) != len(wanted):
            raise GradeFailed(f"{what}s: {len(found)}, and there should be {len(wanted)}")
        kept += [given for given in inputs if isinstance(given, torch.Tensor)]
        for number, (one, right, dtype) in enumerate(zip(found, wanted, cases.dtypes(), strict=True)):
            judge_description(one, right, dtype, f"{what} {number}")
            if any(one.data_ptr() == other.data_ptr() for other in kept):
                raise GradeFailed(f"{what} {number} lies where an input or another result does: make a new tensor")
            kept.append(one)
    return "new tensors, on the CPU"


def judge_on_gpu(op: Any, cases: OperatorCases) -> str:
    """Values and gradients on the GPU, and in a graph that torch.compile makes without a break."""
    import torch

    from quack_lite import bench

    with bench.gpu_lock(exclusive=False):
        judge_gradient(op, cases, "cuda")
        inputs = cases.inputs(cases.sizes[-1], fresh("cuda"))
        whole = torch.compile(lambda *given: as_tuple(op(*given))[0] * 2, fullgraph=True, backend="aot_eager")
        with torch.no_grad():
            same = torch.equal(whole(*inputs), as_tuple(op(*inputs))[0] * 2)
        torch.cuda.synchronize()
    if not same:
        raise GradeFailed("in a graph of torch.compile it gives other values than by itself")
    return f"as float64 at {len(cases.sizes)} sizes, and whole in a graph"


def judge_stream(op: Any, cases: OperatorCases) -> str:
    """Its input is written late on another stream than torch's default, where it is called."""
    import torch

    from quack_lite import bench

    generator = fresh("cuda")
    with bench.gpu_lock(exclusive=False), torch.no_grad():
        late = cases.inputs(cases.sizes[-1], generator)
        right = as_tuple(op(*late))[0].clone()
        for wait in (1, SLEEP_CYCLES):  # loading a kernel may wait for all streams: the first turn only loads
            early = cases.inputs(cases.sizes[-1], generator)
            torch.cuda.synchronize()
            with torch.cuda.stream(torch.cuda.Stream()):
                torch.cuda._sleep(wait)
                for one, other in zip(early, late, strict=True):
                    if isinstance(one, torch.Tensor):
                        one.copy_(other)
                found = as_tuple(op(*early))[0].clone()
            torch.cuda.synchronize()
        if not torch.equal(found, right):
            raise GradeFailed("on another stream it did not wait for its input: launch(..., stream=stream)")
    return "waits for its input on another stream"
