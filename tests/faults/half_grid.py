"""Half of the blocks are launched: the PTX is the same, the launch in the IR is not."""

import cutlass.cute as cute

from faults import kernel_of
from quack_lite import grid
from quack_lite.evidence.delay import replaced

CAUGHT_BY = ("guard",)
KERNEL = kernel_of("softmax", "float32", "block")

right_launch = grid.a_group_a_row


def a_group_a_row(mX, plan):
    launch = right_launch(mX, plan)
    blocks, *rest = launch["grid"]
    return {**launch, "grid": (cute.ceil_div(blocks, 2), *rest)}


def planted():
    return replaced(grid, {"a_group_a_row": a_group_a_row})
