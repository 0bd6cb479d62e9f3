"""The gates of a kernel task: compiles, shape (Compiler), values, speed (GPU)."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

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
    """The inputs that a kernel is tried on, as kernel(*inputs, output).

    sizes: one case each, the awkward ones; `letter` is what a size is called.  inputs(size, generator): tensors on the
    generator's device, and numbers; a view keeps its strides and its place in a 16-byte vector.
    reference(*inputs): the output, in the dtype and with the strides that it is to have.
    updated: instead of an output, the inputs that are changed in place, as (name, position); reference gives a tuple.
    allowed(*inputs): how far from the reference each element may lie, float64, a tuple with `updated`; None: no bit.
    advice: where to look when values differ.
    """

    sizes: tuple
    inputs: Callable[[Any, torch.Generator], tuple]
    reference: Callable[..., torch.Tensor | tuple[torch.Tensor, ...]]
    updated: tuple[tuple[str, int], ...] = ()
    allowed: Callable[..., torch.Tensor | tuple[torch.Tensor, ...]] | None = None
    letter: str = "n"
    advice: str = "look at the conversion and at which element a thread takes"


def fresh(device: str) -> torch.Generator:
    """A generator that no earlier run has seen."""
    import torch

    generator = torch.Generator(device)
    generator.seed()
    return generator


def values(cases: Cases, tail: str) -> Gate:
    """Right on fresh random input at each size, equal to the bit when called again, without a byte beside the output.

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
    how = "equal to torch" if cases.allowed is None else "as torch, within the tolerance,"
    return f"{how} at {cases.letter} = {', '.join(map(str, cases.sizes))}"


def _try_case(kernel: Callable, cases: Cases, inputs: tuple, size: Any, tail: str) -> None:
    case = f"{cases.letter} = {size}"
    expected = _all_of(cases.reference(*inputs))
    allowed = _all_of(cases.allowed(*inputs)) if cases.allowed else (None,) * len(expected)
    first, _ = _call(kernel, cases, inputs, expected, case)
    for (name, out), right, most in zip(first.items(), expected, allowed, strict=True):
        _judge_output(out, right, most, f"{case}{name and ', '}{name}", tail, cases.advice)
    again, _ = _call(kernel, cases, inputs, expected, case)
    if not all(guards.same_bits(first[name].inside, again[name].inside) for name in first):
        raise GradeFailed(f"{case}: a second call gave other values: look for a race or a value left from before")


def _all_of(given: Any) -> tuple:
    return given if isinstance(given, tuple) else (given,)


def _call(kernel: Callable, cases: Cases, inputs: tuple, expected: tuple, case: str) -> tuple[dict, list]:
    """({name: output}, what was handed over), all of them fresh; GradeFailed where an input is not left as it was."""
    held = [given if isinstance(given, float) else _guarded_copy(given) for given in inputs]
    outputs = {name: held[position] for name, position in cases.updated}
    if not cases.updated:
        outputs[""] = guards.guarded_like(expected[0])
    handed = [*held, *(() if cases.updated else outputs.values())]
    _launch(kernel, [given if isinstance(given, float) else given.inside for given in handed], case)
    changeable = [position for _, position in cases.updated]
    for position, (given, copy) in enumerate(zip(inputs, held, strict=True)):
        if position in changeable or isinstance(given, float):
            continue
        if not guards.same_bits(given, copy.inside) or any(guards.touched(copy)):
            only = f"only {', '.join(outputs)}" if cases.updated else "only the output"
            raise GradeFailed(f"{case}: the kernel wrote to its input: {only} may be stored to")
    return outputs, handed


def _guarded_copy(tensor: torch.Tensor) -> guards.Guarded:
    copy = guards.guarded_like(tensor, guards.INPUT_PATTERN)
    copy.inside.copy_(tensor)
    return copy


def _launch(kernel: Callable, handed: list, case: str) -> None:
    try:
        kernel(*handed)
        if handed[0].is_cuda:
            import torch

            torch.cuda.synchronize()
    except Exception as error:
        said = ANSI.sub("", str(error)).strip().splitlines() or [type(error).__name__]
        sentence = (
            f"{case}: the launch failed ({said[0]}): look at the grid, at indices past n, at where accesses start"
        )
        raise GradeFailed(sentence) from error


def _judge_output(
    out: guards.Guarded, expected: torch.Tensor, allowed: torch.Tensor | None, case: str, tail: str, advice: str
) -> None:
    before, behind, between = guards.touched(out)
    if before or behind or between:
        side = f"{behind} bytes behind" if behind else f"{before} bytes in front of"
        side = f"{between} bytes of padding between the rows of" if between else side
        raise GradeFailed(f"{case}: it overwrote {side} the output: {tail}")
    holes, first = guards.holes(out.inside)
    if holes:
        raise GradeFailed(f"{case}: {holes} elements were never written, the first is {first}: {tail}")
    wrong, first = guards.differences(out.inside, expected, allowed)
    if wrong:
        got, want = (float(tensor.flatten()[first]) for tensor in (out.inside, expected))
        raise GradeFailed(
            f"{case}: {wrong} of {expected.numel()} elements differ, at {first} it gave {got:g} "
            f"where torch gives {want:g}: {advice}"
        )
