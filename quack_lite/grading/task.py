"""What a task is: an id, gates in the order in which an answer meets them, hints."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import ModuleType

    from quack_lite.grading.program_gates import Trial, Trials

PLACE_NAMES = {"model": "the Model", "compiler": "the Compiler", "gpu": "a GPU", "hopper": "a Hopper GPU"}


class Submission:
    """An answer on its way through the gates. A kernel is compiled once, a program run once, for all of them."""

    def __init__(
        self,
        answer: Any,
        examples: Callable[[], tuple] | None = None,
        trials: Trials | None = None,
        align: int = 16,
    ):
        self.answer = answer
        self.examples = examples
        self.trials = trials
        self.align = align

    @cached_property
    def built(self):
        """The compiled host function (launch.Built)."""
        from quack_lite import launch

        return launch.build(self.answer, *self.examples(), align=self.align)

    @cached_property
    def runs(self) -> list[Trial]:
        """The program's runs on the Model."""
        return self.trials.run(self.answer)


@dataclass(frozen=True)
class Gate:
    """One thing that an answer must stand.

    place: "model", "compiler", "gpu" or "hopper", what the machine must have.
    judge: called with the Submission; returns what it saw in a few words, or raises GradeFailed with one sentence.
    """

    name: str
    place: str
    judge: Callable[[Submission], str]


@dataclass(frozen=True)
class Task:
    """A task of kind N (numbers or layouts), P (a program on the Model) or K (a kernel).

    examples: for a kernel, makes one tensor or number an argument of the host function; only rank and dtype matter.
    align: of which power of two each tensor's address is known to be a multiple, in bytes.
    trials: for a program, the launches that it is tried on.
    prepare: does once, before the time of an answer begins, what takes seconds and is not the answer's doing.
    forget: is given the answer's module when it has been judged, to take back what it left in this process.
    """

    id: str
    kind: str
    gates: tuple[Gate, ...]
    hints: tuple[str, str, str]
    examples: Callable[[], tuple] | None = None
    trials: Trials | None = None
    align: int = 16
    prepare: Callable[[], None] | None = None
    forget: Callable[[ModuleType], None] | None = None

    @property
    def slug(self) -> str:
        return self.id.partition(".")[0]
