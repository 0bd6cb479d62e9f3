"""The gates of a kernel task: compiles, shape (Compiler), values, speed (GPU)."""

from __future__ import annotations

import inspect
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from quack_lite.counted import counted
from quack_lite.grading import guards
from quack_lite.grading.arguments import Arguments
from quack_lite.grading.feedback import GradeFailed, line_of, plain
from quack_lite.grading.task import Gate, Submission

if TYPE_CHECKING:
    import torch

    from quack_lite.facts import Facts

SLEEP_CYCLES, WAIT_SECONDS = 10**8, 0.005  # the one is about ten times the other on today's GPUs
SAYS_NOTHING = ("internal DSL problem", "could not build valid IR")
# What to do about a common message, by words in it.
ADVICE = {
    "Type mismatch": "convert with .to(dtype) before you store",
    "unsupported operand.*'_Tensor'": "a tensor is no number; take an element of it, as in mX[i]",
    r"arith\.(and|or)i' op operand": "& and | bind closer than > and ==: put each condition in its own parentheses",
    "Runtime value.*boolean is required": "a plain function cannot branch on what is known when the kernel runs: "
    "cutlass.select_(condition, a, b) chooses, and & and | join conditions",
    "profile of input tuples doesn't match": "the shapes differ, and what zipped_divide has cut is one deeper, ((8)) "
    "for (8): store it to a tensor of registers, and compute with what that gives",
}


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
    return message + next((f": {advice}" for words, advice in ADVICE.items() if re.search(words, message)), "")


def compiler_message(error: BaseException) -> str:
    """The part of a compiler's error that a learner can use, in one line."""
    text = plain(error)
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

    sizes: one case each, the awkward ones; `letter` is what a size is called.  between: of sizes that are numbers, one
    more is drawn for each check, at least and at most.
    inputs(size, generator): tensors on the generator's device, and numbers; a view keeps its strides and its place in a
    16-byte vector.  reference(*inputs): the output, in the dtype and with the strides that it is to have.
    updated: instead of an output, the inputs that are changed in place, as (name, position); reference gives a tuple.
    allowed(*inputs): how far from the reference each element may lie, float64, a tuple with `updated`; None: no bit.
    advice: where to look when values differ.
    """

    sizes: tuple
    inputs: Callable[[Any, torch.Generator], tuple]
    reference: Callable[..., torch.Tensor | tuple[torch.Tensor, ...]]
    between: tuple[int, int] | None = None
    updated: tuple[tuple[str, int], ...] = ()
    allowed: Callable[..., torch.Tensor | tuple[torch.Tensor, ...]] | None = None
    letter: str = "n"
    advice: str = "look at the conversion and at which element a thread takes"

    def drawn(self, generator: torch.Generator) -> tuple:
        """The sizes of one check."""
        import torch

        if self.between is None:
            return self.sizes
        low, high = self.between
        size = torch.randint(low, high + 1, (1,), generator=generator, device=generator.device)
        return (*self.sizes, int(size))

    def wanted(self, inputs: tuple) -> list[tuple[torch.Tensor, torch.Tensor | None]]:
        """The reference of each output, and how far from it an element may lie."""
        right = _all_of(self.reference(*inputs))
        allowed = _all_of(self.allowed(*inputs)) if self.allowed else (None,) * len(right)
        return list(zip(right, allowed, strict=True))


def _all_of(given: torch.Tensor | tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
    return given if isinstance(given, tuple) else (given,)


def fresh(device: str) -> torch.Generator:
    """A generator that no earlier run has seen."""
    import torch

    generator = torch.Generator(device)
    generator.seed()
    return generator


def values(cases: Cases, tail: str) -> Gate:
    """Right on fresh random input at each size, without a byte beside the output, on the stream that is given.

    Called again it gives the same to the bit, and with new values in the same tensors theirs.
    tail: where to look when something is wrong only at the end.
    """
    return Gate("values", "gpu", lambda submission: _values_on_gpu(submission, cases, tail))


def _values_on_gpu(submission: Submission, cases: Cases, tail: str) -> str:
    from quack_lite import bench

    with bench.gpu_lock(exclusive=False):
        words = try_values(submission.built, cases, tail, "cuda")
        keep_to_the_stream(submission.built, cases)
    return words


def try_values(kernel: Callable, cases: Cases, tail: str, device: str) -> str:
    """Calls kernel(*inputs, out) for each size and raises GradeFailed at the first that is wrong."""
    generator = fresh(device)
    sizes = cases.drawn(generator)
    for size in sizes:
        _try_case(kernel, cases, size, generator, tail)
    how = "equal to torch" if cases.allowed is None else "as torch, within the tolerance,"
    return f"{how} at {cases.letter} = {', '.join(map(str, sizes))}"


def keep_to_the_stream(kernel: Callable, cases: Cases) -> None:
    """GradeFailed for a kernel that begins before what was queued on torch's current stream has ended."""
    import torch

    inputs = cases.inputs(cases.sizes[-1], fresh("cuda"))
    arguments = Arguments(inputs, cases.updated, cases.wanted(inputs)[0][0])
    handed, before = arguments.filled(inputs), arguments.results()
    torch.cuda.synchronize()
    given, beside = torch.cuda.Stream(), torch.cuda.Stream()
    with torch.cuda.stream(given):
        torch.cuda._sleep(SLEEP_CYCLES)
        kernel(*handed)
    time.sleep(WAIT_SECONDS)
    with torch.cuda.stream(beside):
        written = not arguments.are(before)
    early = written and not given.query()
    torch.cuda.synchronize()
    if early:
        raise GradeFailed("it ran on another stream than the one it is given: launch(..., stream=stream)")


def _try_case(kernel: Callable, cases: Cases, size: Any, generator: torch.Generator, tail: str) -> None:
    case = f"{cases.letter} = {size}"
    inputs, renewed = cases.inputs(size, generator), cases.inputs(size, generator)
    arguments = _called(kernel, cases, inputs, case, tail)
    first = arguments.results()
    arguments.call(kernel, inputs, case)
    if not arguments.are(first):
        raise GradeFailed(f"{case}: a second call gave other values: look for a race or a value left from before")
    arguments.call(kernel, renewed, case)
    try:
        judge_again(arguments.results(), cases.wanted(renewed), f"{case}: with new values in the same tensors")
    except GradeFailed:
        _called(kernel, cases, renewed, case, tail)  # they may be wrong in other tensors too
        raise


def _called(kernel: Callable, cases: Cases, inputs: tuple, case: str, tail: str) -> Arguments:
    """Calls the kernel on tensors that are new; GradeFailed where an output is wrong."""
    wanted = cases.wanted(inputs)
    arguments = Arguments(inputs, cases.updated, wanted[0][0])
    arguments.call(kernel, inputs, case)
    for (name, out), (right, allowed) in zip(arguments.outputs.items(), wanted, strict=True):
        _judge_output(out, right, allowed, f"{case}{name and ', '}{name}", tail, cases.advice)
    return arguments


def judge_again(outputs: Sequence[torch.Tensor], wanted: Sequence[tuple], when: str) -> None:
    """GradeFailed where outputs that were right before are not what is wanted (Cases.wanted) this time."""
    for out, (right, allowed) in zip(outputs, wanted, strict=True):
        wrong, first = guards.differences(out, right, allowed)
        if wrong:
            found = f"{when} {counted(wrong, 'elements')} came out wrong, the first at {first}"
            raise GradeFailed(f"{found}: keep nothing from one call to the next")


def _judge_output(
    out: guards.Guarded, expected: torch.Tensor, allowed: torch.Tensor | None, case: str, tail: str, advice: str
) -> None:
    before, behind, between = guards.touched(out)
    if before or behind or between:
        side = f"{counted(behind, 'bytes')} behind" if behind else f"{counted(before, 'bytes')} in front of"
        side = f"{counted(between, 'bytes')} of padding between the rows of" if between else side
        raise GradeFailed(f"{case}: it overwrote {side} the output: {tail}")
    holes, first = guards.holes(out.inside)
    if holes:
        unwritten = f"it left {counted(holes, 'elements')} unwritten, the first is {first}"
        raise GradeFailed(f"{case}: {unwritten}: {tail}")
    wrong, first = guards.differences(out.inside, expected, allowed)
    if wrong:
        got, want = (float(tensor.flatten()[first]) for tensor in (out.inside, expected))
        raise GradeFailed(
            f"{case}: {wrong} of {expected.numel()} elements differ, at {first} it gave {got:g} "
            f"where torch gives {want:g}: {advice}"
        )
