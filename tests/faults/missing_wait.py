"""A cluster reduction that reads what its peers send without waiting for it."""

import cutlass.cute as cute

from faults import kernel_of
from quack_lite.evidence.delay import replaced

CAUGHT_BY = ("delay",)
KERNEL = kernel_of("softmax", "float32", "cluster")


def planted():
    return replaced(cute.arch, {"mbarrier_wait": lambda *arguments: None})
