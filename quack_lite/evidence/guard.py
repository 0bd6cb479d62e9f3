"""A tensor inside a larger buffer of one bit pattern: a kernel that writes outside it, or leaves part of it, shows.

The pattern is a NaN that no arithmetic gives, so as an input's surroundings it also spoils every result that reads it.
"""

from dataclasses import dataclass

import torch

from quack_lite.counted import counted

MARGIN = 4096  # elements before and behind; a multiple of 16 bytes
PATTERN = {torch.int16: 0x7FA5, torch.int32: 0x7FA5A5A5}
INPUT_PATTERN = {torch.int16: 0x7FB6, torch.int32: 0x7FB6B6B6, torch.int64: 0x7FB6B6B67FB6B6B6}  # a copy shows it
INTEGER = {2: torch.int16, 4: torch.int32, 8: torch.int64}


@dataclass(frozen=True)
class Guarded:
    """bits: the buffer as integers (elements).  view: the tensor in it (m, n) or (n), rows `pad` elements apart."""

    bits: torch.Tensor
    view: torch.Tensor

    def faults(self) -> list[str]:
        """One sentence for what was written outside the view, and one for what was left out inside it; often none."""
        changed = self.bits != PATTERN[self.bits.dtype]
        inside = torch.zeros_like(changed)
        place_of(inside, self.view).fill_(True)
        return [*self.outside(changed & ~inside), *self.left(inside & ~changed)]

    def outside(self, wrong: torch.Tensor) -> list[str]:
        """The sentence on writes outside the view."""
        if not wrong.any():
            return []
        row, column = self.position(wrong)
        found = counted(int(wrong.sum()), "elements")
        return [f"{found} outside the output got a value, the first at row {row}, column {column}"]

    def left(self, wrong: torch.Tensor) -> list[str]:
        """The sentence on elements of the view that were not written."""
        if not wrong.any():
            return []
        row, column = self.position(wrong)
        found = counted(int(wrong.sum()), "elements")
        return [f"{found} of the output got no value, the first at row {row}, column {column}"]

    def position(self, wrong: torch.Tensor) -> tuple[int, int]:
        """Row and column of the first element that is wrong, counted from the first element of the view."""
        first = int(wrong.int().argmax()) - self.view.storage_offset()
        return divmod(first, self.view.stride(0))


def surround(
    shape: tuple[int, ...], dtype: torch.dtype, pad: int = 0, start: int = 0, device="cuda", pattern=PATTERN
) -> Guarded:
    """A guarded tensor (m, n) or (n); `start`: elements from a 16-byte boundary to its first element."""
    integer = INTEGER[dtype.itemsize]
    strides = (shape[1] + pad, 1) if len(shape) == 2 else (1,)
    size = MARGIN + start + shape[0] * strides[0] + MARGIN
    bits = torch.full((size,), pattern[integer], dtype=integer, device=device)
    return Guarded(bits, bits.view(dtype).as_strided(shape, strides, MARGIN + start))


def place_of(buffer: torch.Tensor, view: torch.Tensor) -> torch.Tensor:
    """The elements of a buffer that lie where those of the view lie in theirs."""
    return buffer.as_strided(view.shape, view.stride(), view.storage_offset())
