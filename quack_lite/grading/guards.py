"""Outputs that tell on whoever writes beside them or leaves a hole: poison inside, a known pattern around."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

GUARD_BYTES = 1 << 16  # a whole block's stores past the end still land here; keeps the tensor 16-byte aligned
PATTERN, INPUT_PATTERN = 0xA5, 0x5A  # not the same: a copy that runs over would bring the one and not be seen
# By bytes an element: NaN in every float format of that size, with bits that arithmetic never gives.
POISON = {2: 0x7FA5, 4: 0x7FA5A5A5}


@dataclass(frozen=True)
class Guarded:
    """A tensor (`inside`) in the middle of a longer buffer of bytes, filled with `pattern` before."""

    buffer: torch.Tensor
    inside: torch.Tensor
    pattern: int


def guarded(shape: tuple[int, ...], dtype: torch.dtype, device: str | torch.device, pattern: int = PATTERN) -> Guarded:
    """A poisoned tensor of this shape with GUARD_BYTES of pattern on either side."""
    import torch

    size = torch.Size(shape).numel() * dtype.itemsize
    padded = -(-size // 16) * 16
    buffer = torch.full((GUARD_BYTES + padded + GUARD_BYTES,), pattern, dtype=torch.uint8, device=device)
    inside = buffer[GUARD_BYTES : GUARD_BYTES + size].view(dtype).view(shape)
    poison(inside)
    return Guarded(buffer, inside, pattern)


def poison(tensor: torch.Tensor) -> None:
    """Fills a contiguous float tensor of 2 or 4 bytes an element with the poison NaN, in place."""
    _bits(tensor).fill_(POISON[tensor.element_size()])


def touched(guard: Guarded) -> tuple[int, int]:
    """How many bytes were changed in front of the tensor and behind it."""
    end = GUARD_BYTES + guard.inside.numel() * guard.inside.element_size()
    changed = guard.buffer != guard.pattern
    return int(changed[:GUARD_BYTES].sum()), int(changed[end:].sum())


def holes(tensor: torch.Tensor) -> tuple[int, int]:
    """How many elements still hold the poison, and the flat index of the first."""
    return _count_and_first(_bits(tensor) == POISON[tensor.element_size()])


def differences(tensor: torch.Tensor, reference: torch.Tensor) -> tuple[int, int]:
    """How many elements differ in a bit, and the flat index of the first; two NaN are equal whatever their bits."""
    both_nan = tensor.isnan() & reference.isnan()
    return _count_and_first((_bits(tensor) != _bits(reference)) & ~both_nan)


def same_bits(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two tensors of one dtype and shape hold the same bits."""
    return bool((_bits(one) == _bits(other)).all())


def _count_and_first(mask: torch.Tensor) -> tuple[int, int]:
    return int(mask.sum()), int(mask.flatten().int().argmax())


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    import torch

    return tensor.view({2: torch.int16, 4: torch.int32}[tensor.element_size()])
