"""The gates of a program task: checks, values, traffic. All of them look at the same runs on the Model."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from quack_lite import simt
from quack_lite.grading import origins
from quack_lite.grading.feedback import GradeFailed
from quack_lite.grading.task import Gate
from quack_lite.simt.dtypes import ITEMSIZE, differs
from quack_lite.simt.run import APART

SEEDS = 2  # orders of warps and CTAs beside the plain one, fresh ones each time


class Trial(NamedTuple):
    """One run of a program.

    order: the seed of simt.run, None for the plain order.  tensors: the inputs and, last, the output.
    expected: what has to be in the output.  letter: what the size is called.
    """

    size: int
    order: int | None
    tensors: tuple[simt.Tensor, ...]
    expected: np.ndarray
    run: simt.Run
    letter: str = "n"

    @property
    def name(self) -> str:
        """How a sentence about it begins; with order= simt.run does the same again."""
        return f"{self.letter} = {self.size}" + (f", order={self.order}" if self.order is not None else "")

    def address(self, tensor: int, element: int) -> int:
        """The first byte of an element in global memory, where each tensor begins at a multiple of APART."""
        sizes = [math.prod(one.shape) * ITEMSIZE[one.dtype] for one in self.tensors[:tensor]]
        base = sum(-(-size // APART) * APART for size in sizes)
        return base + int(element) * ITEMSIZE[self.tensors[tensor].dtype]


@dataclass(frozen=True)
class Trials:
    """The launches that a program is tried on, as program(b, *inputs, output, size).

    sizes: the awkward ones.  between: one more is drawn for each check, at least and at most.  inputs(size, random):
    tensors of the Model.  reference(*arrays): the specification in NumPy, to which the output is compared to the bit.
    dtype: of the output.  grid(size): CTAs.  block: threads of one.  cluster: CTAs of one.  letter: what the program
    calls its size.
    """

    sizes: tuple[int, ...]
    inputs: Callable[[int, np.random.Generator], tuple[simt.Tensor, ...]]
    reference: Callable[..., np.ndarray]
    dtype: str
    grid: Callable[[int], int]
    block: int
    between: tuple[int, int] | None = None
    cluster: int = 1
    letter: str = "n"

    def run(self, program: Callable) -> list[Trial]:
        """Each size in the plain order and in SEEDS others, on fresh random data; the last of `sizes` comes last."""
        random = np.random.default_rng()
        *others, last = self.sizes
        if self.between is not None:
            others.append(int(random.integers(*self.between, endpoint=True)))
        orders = [None, *map(int, random.integers(2**16, size=SEEDS))]
        return [self._try(program, size, order, random) for size in (*others, last) for order in orders]

    def _try(self, program, size, order, random):
        inputs = self.inputs(size, random)
        expected = self.reference(*(tensor.values for tensor in inputs))
        output = simt.empty(expected.shape, self.dtype)
        launch = {"grid": self.grid(size), "block": self.block, "cluster": self.cluster}
        run = simt.run(program, *inputs, output, size, **launch, order=order)
        return Trial(size, order, (*inputs, output), expected, run, self.letter)

    @property
    def words(self) -> str:
        return f"at {self.letter} = {', '.join(map(str, self.sizes))}, each in {1 + SEEDS} orders"


def gates(trials: Trials, traffic: Callable[[Trial], str]) -> tuple[Gate, Gate, Gate]:
    """The three gates of a program task, whose Task has the same trials.

    traffic: reads a Trial and returns a few words, or raises: see at_most and in_flight_at_least.
    """
    return (
        Gate("checks", "model", lambda submission: _checks(submission.runs) or f"nothing to report {trials.words}"),
        Gate("values", "model", lambda submission: _values(submission.runs) or f"as specified {trials.words}"),
        Gate("traffic", "model", lambda submission: [traffic(trial) for trial in submission.runs][-1]),
    )


def _checks(runs: list[Trial]) -> None:
    """The Model has nothing to report, at no size and in no order."""
    for trial in runs:
        for report in trial.run.reports:
            if report.kind == "never written":
                _raise_hole(trial, report)
            sentence = f"{trial.name}, at `{report.line.text}`: {origins.with_source(report)}"
            raise GradeFailed(sentence, request=origins.of_report(trial.run, report))


def _raise_hole(trial, report):
    nearest = origins.store_at(trial.run, trial.address(-1, report.words["index"]))
    beside = f"; the store nearest to it is that of {nearest.lane} at `{nearest.line}`" if nearest else ""
    raise GradeFailed(f"{trial.name}: {report.sentence}{beside}", request=nearest and nearest.request)


def _values(runs: list[Trial]) -> None:
    """Equal to the specification to the bit, NaN to NaN, and the inputs left as they were."""
    for trial in runs:
        *inputs, output = trial.run.arrays
        for number, array in enumerate(inputs):
            changed = np.flatnonzero(differs(array, trial.tensors[number].values))
            if changed.size:
                _raise_value(trial, number, changed[0], "of an input was overwritten, and only the output may be")
        unseen = origins.unstored(trial.run, trial.address(-1, 0), trial.address(-1, output.size))
        if unseen is not None:
            raise GradeFailed(f"{trial.name}: byte {unseen} of the output came without b.st_global: store through b")
        wrong = np.flatnonzero(differs(output, trial.expected))
        if wrong.size:
            got, want = (array.flat[wrong[0]] for array in (output, trial.expected))
            _raise_value(trial, len(inputs), wrong[0], f"is {got:g} and should be {want:g}", _why_nan(got))


def _raise_value(trial, tensor, element, wrong, why=""):
    store = origins.store_at(trial.run, trial.address(tensor, element))
    sentence = f"{trial.name}: element {element} {wrong}: {store.lane} stored it, at `{store.line}`{why}"
    raise GradeFailed(sentence, request=store.request)


def _why_nan(got):
    if not np.isnan(got):
        return ""
    return ". NaN is what a load gives outside where= unless fill= says what, and what -inf - -inf and 0 * inf give"


def at_most(trial: Trial, verb: str, what: str, limit: int, advice: str) -> None:
    """GradeFailed where all CTAs together make more than `limit` of what Counts calls `what` by this PTX stem."""
    found = getattr(trial.run.total(verb), what)
    if found > limit:
        worst = origins.costliest(trial.run, verb, what)
        named = what.replace("_", " ")
        raise GradeFailed(
            f"{trial.name}: {found} {named} of {verb}, and {limit} are enough: see {worst.lane} and its neighbours "
            f"at `{worst.line}`: {advice}",
            request=worst.request if worst.request.address is not None else None,  # a barrier touches no memory
        )


def lanes_have_met(trial: Trial) -> None:
    """GradeFailed where a value of many threads came about without a shuffle and without shared memory."""
    if trial.run.total().shuffles or trial.run.total("st.shared").requests:
        return
    raise GradeFailed(
        f"{trial.name}: no thread has told another one anything: a GPU has no function over all lanes, as NumPy has: "
        "let the lanes meet by shuffles, and the warps in shared memory"
    )


def in_flight_at_least(trial: Trial, limit: float, advice: str) -> None:
    """GradeFailed where no CTA ever has `limit` bytes in flight."""
    found = trial.run.total().in_flight
    if found < limit:
        late = origins.late_load(trial.run)
        if late is None:
            raise GradeFailed(f"{trial.name}: the Model saw no load: load through b, as b.ld_global does")
        raise GradeFailed(
            f"{trial.name}: at most {found} bytes of a block are in flight at a time, and {math.ceil(limit)} can be: "
            f"see {late.lane} at `{late.line}`: {advice}",
            request=late.request,
        )


def requests_of(trial: Trial, verb: str, tensor: int) -> list[simt.Request]:
    """What all warps of all CTAs asked of one of the trial's tensors, by this PTX stem."""
    first, last = trial.address(tensor, 0), trial.address(tensor, math.prod(trial.tensors[tensor].shape))
    events = [event for event in trial.run.events if event.verb == verb]
    asked = [event.request(number) for event in events for number in np.flatnonzero(event.asking)]
    return [request for request in asked if first <= request.address[0] < last]
