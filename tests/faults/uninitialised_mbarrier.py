"""An mbarrier that is used and was never initialised."""

import cutlass.cute as cute

from faults import kernel_of
from quack_lite.evidence.delay import replaced

CAUGHT_BY = ("synccheck",)
KERNEL = kernel_of("softmax", "float32", "cluster")


def planted():
    return replaced(cute.arch, {"mbarrier_init": lambda *arguments: None})
