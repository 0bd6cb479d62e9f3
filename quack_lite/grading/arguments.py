"""What a kernel is called with: guarded copies of a case's inputs, and its outputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from quack_lite.grading import guards
from quack_lite.grading.feedback import GradeFailed, first_line

if TYPE_CHECKING:
    import torch


class Arguments:
    """The tensors of all calls at one size, so that a kernel meets new values in the same memory.

    inputs: tensors and numbers.  updated: (name, position) of those that are changed in place; where there are none,
    one output comes last, a tensor like `output`.  outputs: {name: what the kernel is to write}.
    """

    def __init__(self, inputs: tuple, updated: tuple[tuple[str, int], ...], output: torch.Tensor):
        self.held = [None if isinstance(given, float) else _guarded(given) for given in inputs]
        self.updated = updated
        self.outputs = {name: self.held[position] for name, position in updated} or {"": guards.guarded_like(output)}

    def filled(self, inputs: tuple) -> list:
        """The arguments of a call: these inputs in the tensors that are held, and poison where only the output goes."""
        for given, held in zip(inputs, self.held, strict=True):
            if held:
                held.inside.copy_(given)
        own = [] if self.updated else [out.inside for out in self.outputs.values()]
        for out in own:
            guards.poison(out)
        return [held.inside if held else given for given, held in zip(inputs, self.held, strict=True)] + own

    def call(self, kernel: Callable, inputs: tuple, case: str) -> None:
        """Calls the kernel on these inputs. GradeFailed where it fails, moves an output or changes another input."""
        handed = self.filled(inputs)
        addresses = self._addresses()
        _launch(kernel, handed, case)
        if self._addresses() != addresses:
            raise GradeFailed(f"{case}: the output became another tensor's memory: store into the one that is given")
        outputs = list(self.outputs.values())
        for given, held in zip(inputs, self.held, strict=True):
            if held is None or any(held is out for out in outputs):
                continue
            if not guards.same_bits(given, held.inside) or any(guards.touched(held)):
                only = f"only {', '.join(self.outputs)}" if self.updated else "only the output"
                raise GradeFailed(f"{case}: the kernel wrote to its input: {only} may be stored to")

    def results(self) -> list[torch.Tensor]:
        """Copies of what the outputs hold now."""
        return [out.inside.clone() for out in self.outputs.values()]

    def are(self, results: list[torch.Tensor]) -> bool:
        """Whether the outputs hold these, to the bit."""
        return all(guards.same_bits(out.inside, kept) for out, kept in zip(self.outputs.values(), results, strict=True))

    def _addresses(self) -> list[int]:
        return [out.inside.data_ptr() for out in self.outputs.values()]


def _guarded(tensor: torch.Tensor) -> guards.Guarded:
    return guards.guarded_like(tensor, guards.INPUT_PATTERN)


def _launch(kernel: Callable, handed: list, case: str) -> None:
    try:
        kernel(*handed)
        if handed[0].is_cuda:
            import torch

            torch.cuda.synchronize()
    except Exception as error:
        said = first_line(error)
        places = "at the grid, at indices past n, at where accesses start"
        if "unspecified launch failure" in said:
            places += ", at the count, bytes and phase of an mbarrier"
        raise GradeFailed(f"{case}: the launch failed ({said}): look {places}") from error
