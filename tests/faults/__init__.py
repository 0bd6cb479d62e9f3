"""Planted faults: a check that does not catch its fault, every time, proves nothing by its silence.

Each module says which checks must catch it (CAUGHT_BY), in which kernel of the list (KERNEL), and plants it while a
kernel is compiled (planted). `quack-lite verify` and test_faults.py run them on a GPU.
"""


def softmax_over(dtype: str, group: str) -> str:
    """The name of the first softmax kernel of this dtype with wide loads whose row takes a "block" or a "cluster"."""
    from quack_lite import catalog

    return next(
        kernel.name
        for kernel in catalog.listed()
        if (kernel.operator, kernel.dtype) == ("softmax", dtype) and kernel.plan.vector > 1
        if (kernel.plan.threads > 32 if group == "block" else kernel.plan.cluster > 1)
    )
