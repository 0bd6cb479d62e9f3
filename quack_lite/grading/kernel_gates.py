"""The gates of a kernel task: compiles, shape (Compiler), values, speed (GPU)."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from quack_lite.grading import guards
from quack_lite.grading.feedback import GradeFailed, line_of
from quack_lite.grading.task import Gate, Submission

if TYPE_CHECKING:
    import torch

    from quack_lite.facts import Facts

ANSI = re.compile(r"\x1b\[[0-9;]*m")
SAYS_NOTHING = ("internal DSL problem", "could not build valid IR")


def compiles() -> Gate:
    """The host function compiles for the dtypes and ranks of the task's examples, with sizes left open."""
    return Gate("compiles", "compiler", _compile)


def _compile(submission: Submission) -> str:
    try:
        submission.built  # noqa: B018
    except NotImplementedError:
        raise
    except Exception as error:
        raise GradeFailed(f"it does not compile: {sentence_on(error, submission.answer)}") from error
    return "yes"


def sentence_on(error: BaseException, answer: Callable) -> str:
    """What a compiler's error says, at which line of the answer, and for a common one what to do."""
    message = compiler_message(error)
    if ", at `" not in message:
        message += line_of(error, inspect.getsourcefile(inspect.unwrap(answer)) if callable(answer) else None)
    return message + (": convert with .to(dtype) before you store" if "Type mismatch" in message else "")


def compiler_message(error: BaseException) -> str:
    """The part of a compiler's error that a learner can use, in one line."""
    text = ANSI.sub("", str(error))
    told = re.findall(r"error(?:\[\w+\])?:\s*(.+?)(?=\n\s*\n|\n\s*(?:-->|\||=|error|note|suggestion)|\Z)", text, re.S)
    own = [line for line in told if not any(empty in line for empty in SAYS_NOTHING)]
    message = " ".join((own or [text])[0].split()) or type(error).__name__
    place = re.search(r"^\s*\d+ \| (.*)\n\s*\|\s*\^", text, re.M)
    return f"{message}, at `{place[1].strip()}`" if place else message


def shape(rule: Callable[[Facts], str]) -> Gate:
    """What the compiler made has the right shape: `rule` reads the Facts and returns a few words or raises."""
    return Gate("shape", "compiler", lambda submission: rule(submission.built.facts))


@dataclass(frozen=True)
class Cases:
    """The inputs that a kernel is tried on.

    sizes: one case each, the awkward ones. inputs(size, generator): tensors on the generator's device.
    reference(*inputs): the output.
    """

    sizes: tuple[int, ...]
    inputs: Callable[[int, torch.Generator], tuple[torch.Tensor, ...]]
    reference: Callable[..., torch.Tensor]


def fresh(device: str) -> torch.Generator:
    """A generator that no earlier run has seen."""
    import torch

    generator = torch.Generator(device)
    generator.seed()
    return generator


def values(cases: Cases, tail: str) -> Gate:
    """Right to the bit on fresh random input at each size, twice, without a byte beside the output.

    tail: where to look when something is wrong only at the end.
    """
    return Gate("values", "gpu", lambda submission: _values_on_gpu(submission, cases, tail))


def _values_on_gpu(submission: Submission, cases: Cases, tail: str) -> str:
    from quack_lite import bench

    with bench.gpu_lock(exclusive=False):
        return try_values(submission.built, cases, tail, "cuda")


def try_values(kernel: Callable, cases: Cases, tail: str, device: str) -> str:
    """Calls kernel(*inputs, out) for each size and raises GradeFailed at the first that is wrong."""
    generator = fresh(device)
    for size in cases.sizes:
        _try_case(kernel, cases, cases.inputs(size, generator), size, tail)
    return f"equal to torch at n = {', '.join(map(str, cases.sizes))}"


def _try_case(kernel: Callable, cases: Cases, inputs: tuple[torch.Tensor, ...], size: int, tail: str) -> None:
    expected = cases.reference(*inputs)
    held = [_guarded_copy(tensor) for tensor in inputs]
    out = guards.guarded(tuple(expected.shape), expected.dtype, expected.device)
    first = _call(kernel, held, out, size).clone()
    _judge_output(out, expected, size, tail)
    for tensor, copy in zip(inputs, held, strict=True):
        if not guards.same_bits(tensor, copy.inside) or any(guards.touched(copy)):
            raise GradeFailed(f"n = {size}: the kernel wrote to its input: only the output may be stored to")
    guards.poison(out.inside)
    second = _call(kernel, held, out, size)
    if not guards.same_bits(first, second):
        raise GradeFailed(f"n = {size}: a second call gave other values: look for a race or a value left from before")


def _guarded_copy(tensor: torch.Tensor) -> guards.Guarded:
    copy = guards.guarded(tuple(tensor.shape), tensor.dtype, tensor.device, guards.INPUT_PATTERN)
    copy.inside.copy_(tensor)
    return copy


def _call(kernel: Callable, held: list[guards.Guarded], out: guards.Guarded, size: int) -> torch.Tensor:
    try:
        kernel(*(copy.inside for copy in held), out.inside)
        if out.inside.is_cuda:
            import torch

            torch.cuda.synchronize()
    except Exception as error:
        said = ANSI.sub("", str(error)).strip().splitlines() or [type(error).__name__]
        sentence = f"n = {size}: the launch failed ({said[0]}): look at the grid and at indices past n"
        raise GradeFailed(sentence) from error
    return out.inside


def _judge_output(out: guards.Guarded, expected: torch.Tensor, size: int, tail: str) -> None:
    before, behind = guards.touched(out)
    if before or behind:
        side = f"{behind} bytes behind" if behind else f"{before} bytes in front of"
        raise GradeFailed(f"n = {size}: it overwrote {side} the output: {tail}")
    holes, first = guards.holes(out.inside)
    if holes:
        raise GradeFailed(f"n = {size}: {holes} elements were never written, the first is {first}: {tail}")
    wrong, first = guards.differences(out.inside, expected)
    if wrong:
        got, want = (float(tensor.flatten()[first]) for tensor in (out.inside, expected))
        raise GradeFailed(
            f"n = {size}: {wrong} of {expected.numel()} elements differ, at {first} it gave {got:g} "
            f"where torch gives {want:g}: look at the conversion and at which element a thread takes"
        )
