"""A cluster reduction that sends to its peers before they have prepared their mbarrier: it is not counted."""

from faults import softmax_over
from quack_lite import reductions
from quack_lite.evidence.delay import replaced

CAUGHT_BY = ("delay",)
KERNEL = softmax_over("float32", "cluster")


def planted():
    return replaced(reductions, {"peers_ready": lambda: None})
