"""One block of each cluster sleeps at each point of the cluster protocol; the bits of the result must not change.

The sanitizer does not follow st.async, so a missing wait is found here. The protocol's functions are replaced by
delayed ones while a kernel is traced; the kernel itself knows nothing of it. Which block sleeps where is read by the
running kernel from a switch in global memory, so that one compilation serves all points and ranks. The kernel as it is
then runs many times, one launch behind the other.
"""

import contextlib
from typing import NamedTuple

import cutlass
import cutlass.cute as cute
import torch
from cutlass import Int32

from quack_lite import catalog, launch, reductions
from quack_lite.evidence import operands, values
from quack_lite.evidence.cases import MANY_ROWS, Case


class Point(NamedTuple):
    """Where a block sleeps: before or behind a function of reductions."""

    name: str
    function: str
    is_before: bool


POINTS = (
    Point("before expect_peers", "expect_peers", True),
    Point("before peers_ready", "peers_ready", True),
    Point("before send_to_peers", "send_to_peers", True),
    Point("before the wait", "send_to_peers", False),
    Point("before the end", "cluster_reduce", False),
)
AWAKE = -1
LAUNCHES = 6
ROWS = 24
NAPS = 32
NAP_NS = 2000
BACK_TO_BACK = 10_000
SLOTS = 8  # results that are compared at once


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
    late = {}
    for number, point in enumerate(POINTS):
        function = late.get(point.function) or getattr(reductions, point.function)
        late[point.function] = with_nap(function, address, number, point.is_before)
    with replaced(reductions, late):
        yield


def with_nap(function, address: int, number: int, is_before: bool):
    """The function with a nap before or behind it."""

    def napping(*arguments, **named):
        if is_before:
            nap(address, number)
        result = function(*arguments, **named)
        if not is_before:
            nap(address, number)
        return result

    return napping


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


def problems(kernel: catalog.Kernel, right: launch.Built, device="cuda") -> list[str]:
    """One sentence for each point and rank at which a delay changed the bits, and one if a run of launches did."""
    switch = torch.full((2,), AWAKE, dtype=torch.int32, device=device)
    late = compile_delayed(kernel, switch)
    vector, (low, high) = kernel.plan.vector, catalog.lengths(kernel)
    shortest = Trial(kernel, -(-low // vector) * vector, ROWS, device)
    longest = Trial(kernel, high // vector * vector, turns_rows(kernel, high, device), device)
    wanted = longest.results(late, 1)  # awake; another compilation may contract a product and a sum differently
    found = []
    for point, where in enumerate(POINTS):
        for rank in (0, kernel.plan.cluster - 1):
            switch.copy_(torch.tensor([point, rank], dtype=torch.int32))
            if wrong := longest.wrong(late, wanted, LAUNCHES):
                found.append(f"block {rank} asleep {where.name}: other bits in {wrong} of {LAUNCHES} launches")
    if wrong := shortest.wrong(right, shortest.results(right, 1), BACK_TO_BACK):
        found.append(f"one launch behind the other: other bits in {wrong} of {BACK_TO_BACK} launches")
    return found


def turns_rows(kernel: catalog.Kernel, n: int, device) -> int:
    """Rows of n elements that take a block more than one turn, where it goes on over rows."""
    return operands.at_once(kernel, MANY_ROWS, n, device) + 1 if operands.is_persistent(kernel) else ROWS


class Trial:
    """A kernel's inputs for rows of n elements, whole vectors, on which it is launched again and again."""

    def __init__(self, kernel: catalog.Kernel, n: int, m: int, device):
        self.kernel, self.n, self.m, self.device = kernel, n, m, device
        self.inputs, self.numbers = Case("delay", self.m, n).contents(kernel, device)

    def results(self, built: launch.Built, launches: int) -> list[torch.Tensor]:
        """The bits (launches, ...) of each output, as integers, since NaN is equal to nothing."""
        partial = operands.at_once(self.kernel, self.m, self.n, self.device)
        outputs = [
            torch.zeros(launches, *item.shape(self.m, self.n, partial), dtype=item.dtype, device=self.device)
            for item in operands.form(self.kernel).outputs
        ]
        for i in range(launches):
            values.run(self.kernel, built, self.inputs, [y[i] for y in outputs], self.numbers)
        return [values.as_integers(y) for y in outputs]

    def wrong(self, built: launch.Built, wanted: list[torch.Tensor], launches: int) -> int:
        """In how many launches the bits differ from those wanted (1, ...)."""
        count = torch.zeros((), dtype=torch.int64, device=self.device)
        for done in range(0, launches, SLOTS):
            slots = min(SLOTS, launches - done)
            differs = torch.zeros(slots, dtype=torch.bool, device=self.device)
            for bits, right in zip(self.results(built, slots), wanted, strict=True):
                differs |= (bits != right).flatten(1).any(1)
            count += differs.sum()
        return int(count)
