"""The operators as torch knows them: each is registered with torch.library, forward and backward.

A forward takes tensors of any leading shape and any strides, and returns fresh contiguous ones.
"""

from quack_lite.ops.add_rms_norm import add_rms_norm
from quack_lite.ops.copy import copy
from quack_lite.ops.cross_entropy import cross_entropy
from quack_lite.ops.layer_norm import layer_norm
from quack_lite.ops.rms_norm import rms_norm
from quack_lite.ops.softmax import log_softmax, softmax
from quack_lite.ops.swiglu import swiglu

__all__ = ["add_rms_norm", "copy", "cross_entropy", "layer_norm", "log_softmax", "rms_norm", "softmax", "swiglu"]
