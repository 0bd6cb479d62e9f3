"""The gradient of the new residual is added to that of the output, before the derivative of the norm."""

import contextlib

from cutlass import BFloat16

from faults import kernel_of
from quack_lite import turns
from quack_lite.evidence.delay import replaced

CAUGHT_BY = ("values",)
KERNEL = kernel_of("add_rms_norm_backward", "bfloat16+float32")

right_send, right_receive = turns.send, turns.receive
sent = []


def send(sX, mX, tile, turn, plan):
    """Keeps what is sent, in the kernel's order: residual, gradient, gradient of the new residual."""
    sent.append((sX, mX))
    right_send(sX, mX, tile, turn, plan)


def receive(sX, mX, tile, turn, plan):
    """The gradient with the residual's added; the residual's as zeros."""
    values = right_receive(sX, mX, tile, turn, plan)
    stages_dr, mdR = sent[2]
    if mX.element_type is BFloat16:
        return values + right_receive(stages_dr, mdR, tile, turn, plan)
    return values * 0.0 if sX is stages_dr else values


@contextlib.contextmanager
def planted():
    sent.clear()
    with replaced(turns, {"send": send, "receive": receive}):
        yield
