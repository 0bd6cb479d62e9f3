"""A cluster reduction that sends to its peers before they have prepared their mbarrier: it is not counted."""

from faults import kernel_of
from quack_lite import reductions
from quack_lite.evidence.delay import replaced

CAUGHT_BY = ("delay",)
KERNEL = kernel_of("softmax", "float32", "cluster")


def planted():
    return replaced(reductions, {"peers_ready": lambda plan: None})
