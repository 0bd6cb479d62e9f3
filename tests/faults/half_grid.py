"""Half of the blocks are launched: the PTX is the same, the launch in the IR is not."""

import cutlass
import cutlass.cute as cute

from faults import softmax_over
from quack_lite import catalog
from quack_lite.evidence.delay import replaced
from quack_lite.kernels.softmax import softmax_kernel

CAUGHT_BY = ("guard",)
KERNEL = softmax_over("float32", "block")


@cute.jit
def softmax(mX: cute.Tensor, mY: cute.Tensor, stream, plan: cutlass.Constexpr):
    blocks = cute.ceil_div(cute.ceil_div(mX.shape[0], plan.rows) * plan.cluster, 2)
    softmax_kernel(mX, mY, plan).launch(
        grid=(blocks, 1, 1), block=(plan.block, 1, 1), cluster=(plan.cluster, 1, 1), stream=stream
    )


def planted():
    return replaced(catalog, {"softmax": softmax})
