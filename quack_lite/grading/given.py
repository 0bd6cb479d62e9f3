"""What a function of an answer returned, as the number that it has to be."""

import math
from typing import Any

from quack_lite.grading.feedback import GradeFailed


def number(name: str, given: Any) -> float:
    """The finite number that `name` returned. GradeFailed for anything else."""
    if isinstance(given, bool) or not hasattr(given, "__float__"):
        raise GradeFailed(f"{name} returned {given!r}: it has to return a number")
    if not math.isfinite(found := float(given)):
        raise GradeFailed(f"{name} returned {found}: it has to return a finite number")
    return found


def whole(name: str, given: Any) -> int:
    """The whole number that `name` returned. GradeFailed for anything else."""
    found = number(name, given)
    if not found.is_integer():
        raise GradeFailed(f"{name} returned {found:g}: what it counts comes in whole numbers")
    return int(found)
