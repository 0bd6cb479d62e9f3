"""Outputs that tell on whoever writes beside them or leaves a hole: poison inside, a known pattern around."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

GUARD_BYTES = 1 << 16  # a whole block's stores past the end still land here; keeps the tensor 16-byte aligned
PATTERN, INPUT_PATTERN = 0xA5, 0x5A  # not the same: a copy that runs over would bring the one and not be seen
# By bytes an element: NaN in every float format of that size, with bits that arithmetic never gives.
POISON = {2: 0x7FA5, 4: 0x7FA5A5A5, 8: 0x7FA5A5A5A5A5A5A5}


@dataclass(frozen=True)
class Guarded:
    """A tensor (`inside`) from byte `first` of a longer buffer of bytes on, filled with `pattern` before."""

    buffer: torch.Tensor
    inside: torch.Tensor
    pattern: int
    first: int


def guarded(
    shape: tuple[int, ...],
    dtype: torch.dtype,
    device: str | torch.device,
    pattern: int = PATTERN,
    strides: tuple[int, ...] | None = None,
    start: int = 0,
) -> Guarded:
    """A poisoned tensor of this shape with GUARD_BYTES of pattern on either side, and between its rows.

    strides: in elements; contiguous without them.  start: elements from a 16-byte boundary to the first.
    """
    import torch

    strides = torch.empty(shape, device="meta").stride() if strides is None else strides
    padded = -(-(start + _span(shape, strides)) * dtype.itemsize // 16) * 16
    buffer = torch.full((GUARD_BYTES + padded + GUARD_BYTES,), pattern, dtype=torch.uint8, device=device)
    first = GUARD_BYTES // dtype.itemsize + start
    inside = buffer.view(dtype).as_strided(shape, strides, first)
    poison(inside)
    return Guarded(buffer, inside, pattern, first * dtype.itemsize)


def guarded_like(tensor: torch.Tensor, pattern: int = PATTERN) -> Guarded:
    """A poisoned tensor with the strides of `tensor`, starting at the same element of a 16-byte vector."""
    start = tensor.storage_offset() % (16 // tensor.element_size())
    return guarded(tuple(tensor.shape), tensor.dtype, tensor.device, pattern, tensor.stride(), start)


def poison(tensor: torch.Tensor) -> None:
    """Fills a float tensor of 2, 4 or 8 bytes an element with the poison NaN, in place."""
    _bits(tensor).fill_(POISON[tensor.element_size()])


def touched(guard: Guarded) -> tuple[int, int, int]:
    """How many bytes were changed in front of the tensor, behind it, and between its rows."""
    size, shape, strides = guard.inside.element_size(), guard.inside.shape, guard.inside.stride()
    changed = guard.buffer != guard.pattern
    own = (*shape, size), (*(stride * size for stride in strides), 1)
    changed.as_strided(*own, guard.first).fill_(False)
    end = guard.first + _span(shape, strides) * size
    return tuple(int(part.sum()) for part in (changed[: guard.first], changed[end:], changed[guard.first : end]))


def _span(shape: tuple[int, ...], strides: tuple[int, ...]) -> int:
    """Elements from the first to the last, both counted."""
    if 0 in shape:
        return 0
    return 1 + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))


def holes(tensor: torch.Tensor) -> tuple[int, int]:
    """How many elements still hold the poison, and the flat index of the first."""
    return _count_and_first(_bits(tensor) == POISON[tensor.element_size()])


def differences(tensor: torch.Tensor, reference: torch.Tensor, allowed: torch.Tensor | None = None) -> tuple[int, int]:
    """How many elements differ in a bit, and the flat index of the first; two NaN are equal whatever their bits.

    allowed: how far an element may lie from its reference; None: in no bit.
    """
    same = tensor.isnan() & reference.isnan() | (_bits(tensor) == _bits(reference))
    if allowed is not None:
        same |= (tensor.double() - reference.double()).abs() <= allowed
    return _count_and_first(~same)


def same_bits(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two tensors of one dtype and shape hold the same bits."""
    return bool((_bits(one) == _bits(other)).all())


def _count_and_first(mask: torch.Tensor) -> tuple[int, int]:
    return int(mask.sum()), int(mask.flatten().int().argmax())


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    import torch

    return tensor.view({2: torch.int16, 4: torch.int32, 8: torch.int64}[tensor.element_size()])
