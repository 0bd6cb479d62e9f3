"""One block of each cluster sleeps at each point of the cluster protocol; the bits of the result must not change.

The sanitizer does not follow st.async, so a missing wait is found here. The protocol's functions are replaced by
delayed ones while a kernel is traced; the kernel itself knows nothing of it. Which block sleeps where is read by the
running kernel from a switch in global memory, so that one compilation serves all points and ranks.
"""

import contextlib

import cutlass
import cutlass.cute as cute
import torch
from cutlass import Int32

from quack_lite import catalog, launch, reductions

POINTS = ("before expect_peers", "before peers_ready", "before send_to_peers", "before the wait", "before the end")
AWAKE = -1
LAUNCHES = 20
ROWS = 24
NAPS = 32
NAP_NS = 2000


@cute.jit
def nap(address: cutlass.Constexpr, point: cutlass.Constexpr):
    """Sleeps about NAPS * NAP_NS ns in the block whose rank the switch (point, rank) at `address` names."""
    switch = cute.make_tensor(cute.make_ptr(Int32, address, cute.AddressSpace.gmem), cute.make_layout(2))  # (2)
    if switch[0] == point and switch[1] == cute.arch.block_idx_in_cluster():
        for _ in cutlass.range(NAPS, unroll=1):
            cute.arch.inline_ptx("nanosleep.u32 {$r0};", read_only_args=[Int32(NAP_NS)])


@contextlib.contextmanager
def delayed(address: int):
    """While it lasts, kernels are traced with a nap at each point, obeying the switch at this address."""
    names = ("expect_peers", "peers_ready", "send_to_peers", "cluster_reduce")
    right = {name: getattr(reductions, name) for name in names}

    def expect_peers(*arguments):
        nap(address, 0)
        return right["expect_peers"](*arguments)

    def peers_ready():
        nap(address, 1)
        right["peers_ready"]()

    def send_to_peers(*arguments):
        nap(address, 2)
        right["send_to_peers"](*arguments)
        nap(address, 3)

    def cluster_reduce(*arguments):
        value = right["cluster_reduce"](*arguments)
        nap(address, 4)
        return value

    late = (expect_peers, peers_ready, send_to_peers, cluster_reduce)
    with replaced(reductions, dict(zip(names, late, strict=True))):
        yield


@contextlib.contextmanager
def replaced(module, functions: dict):
    """While it lasts, these attributes of a module are other ones."""
    right = {name: getattr(module, name) for name in functions}
    for name, function in functions.items():
        setattr(module, name, function)
    try:
        yield
    finally:
        for name, function in right.items():
            setattr(module, name, function)


def compile_delayed(kernel: catalog.Kernel, switch: torch.Tensor) -> launch.Built:
    """The kernel with naps in it. RuntimeError if they did not get into the code: then nothing would be tested."""
    with delayed(switch.data_ptr()):
        built = catalog.compile_kernel(kernel)
    if built.ptx.count("nanosleep") < len(POINTS):
        raise RuntimeError(f"{kernel.name}: not every nap is in the PTX: the protocol's functions were not replaced")
    return built


def problems(kernel: catalog.Kernel, right: launch.Built, x: torch.Tensor) -> list[str]:
    """One sentence for each point and rank at which a delay changed the bits of kernel(x); right: undelayed."""
    switch = torch.full((2,), AWAKE, dtype=torch.int32, device=x.device)
    late = compile_delayed(kernel, switch)
    wanted = result(right, x)
    found = []
    for point, where in enumerate(POINTS):
        for rank in (0, kernel.plan.cluster - 1):
            switch.copy_(torch.tensor([point, rank], dtype=torch.int32))
            wrong = sum(not torch.equal(result(late, x), wanted) for _ in range(LAUNCHES))
            if wrong:
                found.append(f"block {rank} asleep {where}: other bits in {wrong} of {LAUNCHES} launches")
    return found


def result(built: launch.Built, x: torch.Tensor) -> torch.Tensor:
    """The bits of built(x), as integers, since NaN is equal to nothing."""
    y = torch.zeros_like(x)
    built(x, y)
    return y.view(torch.int32 if x.itemsize == 4 else torch.int16)
