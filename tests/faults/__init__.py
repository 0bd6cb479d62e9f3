"""Planted faults: a check that does not catch its fault, every time, proves nothing by its silence.

Each module says which checks must catch it (CAUGHT_BY), in which kernel of the list (KERNEL), and plants it while a
kernel is compiled (planted). `quack-lite verify` and test_faults.py run them on a GPU.
"""


def kernel_of(operator: str, dtype: str, group: str = "rows") -> str:
    """The name of an operator's first kernel of this dtype, of all or of those with a "block" or a "cluster" a row."""
    from quack_lite import catalog

    return next(
        kernel.name
        for kernel in catalog.listed()
        if (kernel.operator, kernel.dtype) == (operator, dtype)
        if group == "rows" or (kernel.plan.rows == 1 and (kernel.plan.cluster > 1) == (group == "cluster"))
    )
