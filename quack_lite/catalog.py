"""The list of all kernels that the package can launch, and their compilation: once each."""

from functools import cache
from typing import NamedTuple

import cutlass
import cutlass.cute as cute

from quack_lite import launch, tiling
from quack_lite.kernels.copy import copy
from quack_lite.kernels.softmax import softmax

FLOATS = {"float32": cutlass.Float32, "float16": cutlass.Float16, "bfloat16": cutlass.BFloat16}


class Kernel(NamedTuple):
    """One entry of the list."""

    operator: str
    dtype: str
    plan: tiling.RowPlan

    @property
    def name(self) -> str:
        """A readable name, unique in the list."""
        plan = self.plan
        cut = f"{plan.vector}x{plan.vectors}-threads{plan.threads}-rows{plan.rows}-cluster{plan.cluster}"
        return f"{self.operator}-{self.dtype}-{cut}"


def listed() -> tuple[Kernel, ...]:
    """Every kernel that the package can launch, in a fixed order."""
    return tuple(
        Kernel(operator, dtype, plan)
        for operator, plans in (("copy", copy_plans), ("softmax", row_plans))
        for dtype in FLOATS
        for plan in plans(FLOATS[dtype].width)
    )


def copy_plans(bits: int) -> tuple[tiling.RowPlan, ...]:
    """The plans of copy for elements of this many bits."""
    return tiling.plan_copy(bits, 1), tiling.plan_copy(bits, tiling.WIDEST_LOAD_BITS)


def row_plans(bits: int) -> tuple[tiling.RowPlan, ...]:
    """The plans of a row operator for elements of this many bits."""
    return tiling.plans(1) + tiling.plans(tiling.WIDEST_LOAD_BITS // bits)


@cache
def compiled(kernel: Kernel) -> launch.Built:
    """The compiled kernel."""
    return compile_kernel(kernel)


def compile_kernel(kernel: Kernel) -> launch.Built:
    """Compiles a kernel of the list anew."""
    dtype, plan = FLOATS[kernel.dtype], kernel.plan
    host, stand_ins = {"copy": (copy, flat_pair), "softmax": (softmax, matrix_pair)}[kernel.operator]
    return launch.compile_host(host, stand_ins(dtype, plan.vector), plan, name=kernel.name)


def flat_pair(dtype, vector: int):
    """Two contiguous 1-D tensors of one length."""
    n = cute.sym_int64()
    return [launch.flat_tensor(dtype, n, vector) for _ in range(2)]


def matrix_pair(dtype, vector: int):
    """Two matrices of one shape, each with its own distance between rows."""
    shape = (cute.sym_int32(), cute.sym_int32(vector))
    return [launch.matrix_tensor(dtype, shape, vector) for _ in range(2)]
