"""The five dtypes of the model. A register holds a 16-bit float as float32, which is exact; memory rounds it.

Source of the rounding: IEEE 754, round to nearest, ties to even, as PTX's cvt.rn (PTX ISA, "cvt").
"""

import numpy as np

ITEMSIZE = {"float32": 4, "float16": 2, "bfloat16": 2, "int32": 4, "int64": 8}
POISON_INT = -559038737  # 0xDEADBEEF: what an integer holds that nobody may rely on; a float holds NaN


def itemsize(dtype: str) -> int:
    """Bytes of an element. ValueError for a dtype that the model does not have."""
    if dtype not in ITEMSIZE:
        raise ValueError(f"dtype {dtype!r}: the model has {', '.join(ITEMSIZE)}")
    return ITEMSIZE[dtype]


def register(dtype: str) -> np.dtype:
    """The NumPy dtype in which lanes hold values of `dtype`."""
    itemsize(dtype)
    return np.dtype(dtype if dtype.startswith("int") else "float32")


def poison(dtype: str):
    """What a location of `dtype` holds before anybody writes it, and what a race leaves."""
    return POISON_INT if dtype.startswith("int") else np.nan


def rounded(values, dtype: str) -> np.ndarray:
    """The values as `dtype` keeps them, in a register's dtype; float64 by way of float32. ValueError: float to int."""
    given, kept = np.asarray(values), register(dtype)
    if given.dtype.kind not in "biuf" or given.dtype.kind == "f" and kept.kind == "i":
        raise ValueError(f"values of {given.dtype} do not fit {dtype}: convert them yourself, with .astype")
    held = given.astype(kept)
    if dtype == "float16":
        with np.errstate(over="ignore"):
            return held.astype(np.float16).astype(np.float32)
    return _nearest_bfloat16(held) if dtype == "bfloat16" else held


def _nearest_bfloat16(values: np.ndarray) -> np.ndarray:
    """Adds half of the last kept bit, less one where that bit is 0, and cuts: a tie goes to the even neighbour."""
    bits = values.view(np.uint32) if values.ndim else values.reshape(1).view(np.uint32).reshape(())
    cut = (bits + np.uint32(0x7FFF) + (bits >> np.uint32(16) & np.uint32(1))) & np.uint32(0xFFFF0000)
    return np.where(np.isnan(values), np.float32(np.nan), cut.view(np.float32))


def differs(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Where two values are not the same; NaN is the same as NaN."""
    return (one != other) & ~((one != one) & (other != other))
