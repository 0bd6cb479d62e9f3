"""Squares that are kept in float16: those of 256 and more are inf."""

from cutlass import Float16, Float32

from faults import kernel_of
from quack_lite import reductions
from quack_lite.evidence.delay import replaced

CAUGHT_BY = ("values",)
KERNEL = kernel_of("rms_norm", "float16")

right_sum = reductions.sum_of


def planted():
    return replaced(reductions, {"sum_of": lambda x: right_sum(x.to(Float16).to(Float32))})
