"""Liger's operators (liger-kernel) by its autograd functions. Imported only where it is installed.

Norms are asked to compute in float32, as everybody else does here, and not to write gradients over their inputs.
"""

from liger_kernel.ops import (
    LigerCrossEntropyFunction,
    LigerFusedAddRMSNormFunction,
    LigerLayerNormFunction,
    LigerRMSNormFunction,
    LigerSiLUMulFunction,
    LigerSoftmaxFunction,
)
from liger_kernel.ops.swiglu import swiglu_backward as liger_swiglu_backward

from quack_lite.bench.cases import EPS
from quack_lite.bench.peers import Peer, peer
from quack_lite.reference.losses import IGNORED

OFFSET, CASTING, IN_PLACE = 0.0, "gemma", False


def softmax(x):
    return LigerSoftmaxFunction.apply(x)


def rms_norm(x, w):
    return LigerRMSNormFunction.apply(x, w, EPS, OFFSET, CASTING, IN_PLACE)


def add_rms_norm(x, residual, w):
    return LigerFusedAddRMSNormFunction.apply(x, residual, w, EPS, OFFSET, CASTING, IN_PLACE)


def layer_norm(x, w, b):
    return LigerLayerNormFunction.apply(x, w, b, EPS)


def cross_entropy(x, target):
    weight, square_scale, smoothing = None, 0.0, 0.0
    return LigerCrossEntropyFunction.apply(x, target, weight, IGNORED, square_scale, smoothing, "none")[0]


def swiglu(gate, up):
    return LigerSiLUMulFunction.apply(gate, up)


def swiglu_backward(gate, up):
    """It writes the gradients over gate and up, so it gets copies; the first call's result is the right one."""
    written = gate.clone(), up.clone()
    return (swiglu(gate, up),), lambda dy: liger_swiglu_backward(*written, dy)


PEERS = {
    "softmax": peer(softmax),
    "rms_norm": peer(rms_norm),
    "add_rms_norm": peer(add_rms_norm),
    "layer_norm": peer(layer_norm),
    "cross_entropy": peer(cross_entropy),
    "swiglu": Peer(swiglu, swiglu_backward),
}
