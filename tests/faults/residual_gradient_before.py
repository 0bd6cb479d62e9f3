"""The gradient of the new residual is added to that of the output, before the derivative of the norm."""

import contextlib

from cutlass import BFloat16

from faults import kernel_of
from quack_lite import copies, turns
from quack_lite.evidence.delay import replaced

CAUGHT_BY = ("values",)
KERNEL = kernel_of("add_rms_norm_backward", "bfloat16+float32")

right_fetch, right_receive = copies.fetch, turns.receive
fetched = []


def fetch(mdR, tile, plan, fill=0.0):
    """Keeps the gradient of the new residual for receive, and gives zeros."""
    dr = right_fetch(mdR, tile, plan, fill)
    fetched.append(copies.widened(dr, plan))
    dr.vectors.fill(0.0)
    dr.edge.fill(0.0)
    return dr


def receive(sX, mX, tile, turn, plan):
    values = right_receive(sX, mX, tile, turn, plan)
    return values + fetched.pop() if mX.element_type is BFloat16 else values


@contextlib.contextmanager
def planted():
    with replaced(copies, {"fetch": fetch}), replaced(turns, {"receive": receive}):
        yield
