"""QuACK's operators (quack-kernels) by its public functions. Imported only where it is installed."""

from quack.cross_entropy import cross_entropy as quack_cross_entropy
from quack.rmsnorm import layernorm_bwd, layernorm_fwd
from quack.rmsnorm import rmsnorm as quack_rmsnorm
from quack.softmax import softmax as quack_softmax

from quack_lite.bench.cases import EPS
from quack_lite.bench.peers import Peer, peer


def rms_norm(x, w):
    return quack_rmsnorm(x, w, eps=EPS)


def add_rms_norm(x, residual, w):
    return quack_rmsnorm(x, w, residual=residual, eps=EPS, prenorm=True)


def layer_norm(x, w, b):
    return layernorm_fwd(x, w, b, eps=EPS)


def layer_norm_backward(x, w, b):
    """It has the two kernels, and no autograd over them."""
    y, rstd, mean = layernorm_fwd(x, w, b, eps=EPS, return_rstd=True, return_mean=True)
    return (y,), lambda dy: layernorm_bwd(x, w, dy, rstd, mean, has_bias=True)


def cross_entropy(x, target):
    return quack_cross_entropy(x, target, reduction="none")


PEERS = {
    "softmax": peer(quack_softmax),
    "rms_norm": peer(rms_norm),
    "add_rms_norm": peer(add_rms_norm),
    "layer_norm": Peer(layer_norm, layer_norm_backward),
    "cross_entropy": peer(cross_entropy),
}
