"""Planted faults: each is in the code while it is planted, and on a GPU each of its checks catches it."""

import time

import pytest

from quack_lite.evidence import plants

ONLY_IN_THE_IR = {"half_grid"}
SECONDS = 170


def compiled(name):
    from quack_lite import catalog

    return catalog.compile_kernel(next(kernel for kernel in catalog.listed() if kernel.name == name))


@pytest.mark.compile
@pytest.mark.parametrize("name", plants.names())
def test_a_fault_is_in_the_code_while_it_is_planted_and_gone_afterwards(name):
    fault = plants.load(name)
    right = compiled(fault.KERNEL)
    with fault.planted():
        wrong = compiled(fault.KERNEL)
    assert (wrong.ptx == right.ptx) == (name in ONLY_IN_THE_IR)
    assert compiled(fault.KERNEL).ptx == right.ptx


@pytest.mark.compile
def test_the_delay_test_naps_at_each_point_of_the_protocol_and_leaves_the_kernel_alone():
    from quack_lite import catalog
    from quack_lite.evidence import delay

    class Switch:
        def data_ptr(self):
            return 4096

    kernel = next(kernel for kernel in catalog.listed() if kernel.plan.cluster > 1)
    right = catalog.compile_kernel(kernel)
    late = delay.compile_delayed(kernel, Switch())
    assert "nanosleep" not in right.ptx
    assert late.ptx.count("nanosleep") == len(delay.POINTS)
    at = 0
    for step in ("mbarrier.init", "cluster.wait", "st.async", "try_wait", "st.global"):
        at = late.ptx.index(step, late.ptx.index("nanosleep", at))
    assert catalog.compile_kernel(kernel).ptx == right.ptx


@pytest.mark.compile
def test_a_delay_that_does_not_get_into_the_code_is_refused(monkeypatch):
    from quack_lite import catalog
    from quack_lite.evidence import delay

    kernel = next(kernel for kernel in catalog.listed() if kernel.plan.cluster == 1)
    with pytest.raises(RuntimeError, match="not every nap is in the PTX"):
        delay.compile_delayed(kernel, type("Switch", (), {"data_ptr": lambda self: 4096})())


@pytest.mark.hopper
@pytest.mark.parametrize("name", plants.names())
def test_each_check_of_a_fault_catches_it(name):
    deadline = time.monotonic() + SECONDS
    pairs = [(check, name) for check in plants.load(name).CAUGHT_BY]
    missed = [
        said for (step, _), checks in plants.runs(pairs).items() for said in plants.missed(step, name, checks, deadline)
    ]
    assert not missed, "\n".join(missed)
