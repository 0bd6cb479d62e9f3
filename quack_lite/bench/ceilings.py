"""What this machine's memory can do at best: read, write, copy, and how long one access takes."""

from dataclasses import dataclass
from functools import cache

import torch

from quack_lite import functional, launch
from quack_lite.bench import probes
from quack_lite.bench.protocol import l2_bytes, measure

ELEMENTS = 2**28  # float32: 1 GiB
CHAIN_STEPS = 4096
CHAIN_STRIDE = 1088  # int32 elements from link to link: 4352 bytes, so that no two links share a line or its neighbour


@dataclass(frozen=True)
class Ceilings:
    """read, write, copy: GB/s, a copy counting bytes read and written.  latency: ns of one access to DRAM."""

    read: float
    write: float
    copy: float
    latency: float
    device: str
    sms: int
    l2_bytes: int


@cache
def ceilings() -> Ceilings:
    """Measures the current GPU once a process. Needs 3 GiB of free memory and about three seconds."""
    properties = torch.cuda.get_device_properties()
    x = torch.ones(ELEMENTS, device="cuda")
    y = torch.empty_like(x)
    return Ceilings(
        read=round(max(read_torch(x), read_probe(x)), 1),
        write=round(measure(y.fill_, 1.0, bytes_moved=y.nbytes).gbps, 1),
        copy=round(max(copy_rates(x, y)), 1),
        latency=round(latency(), 1),
        device=properties.name,
        sms=properties.multi_processor_count,
        l2_bytes=l2_bytes(),
    )


def copy_rates(x: torch.Tensor, y: torch.Tensor) -> list[float]:
    """GB/s of torch's copy and of ours, bytes read and written."""
    moved = 2 * x.nbytes
    return [measure(y.copy_, x, bytes_moved=moved).gbps, measure(functional.copy, x, bytes_moved=moved).gbps]


def read_torch(x: torch.Tensor) -> float:
    """GB/s of torch's maximum."""
    return measure(torch.amax, x, bytes_moved=x.nbytes).gbps


def read_probe(x: torch.Tensor) -> float:
    """GB/s of our own reading kernel."""
    unused = torch.zeros(1, device="cuda")
    read = launch.build(probes.read, x, unused)
    return measure(read, x, unused, bytes_moved=x.nbytes).gbps


def latency() -> float:
    """ns from one link to the next of a chain in DRAM, followed by one thread."""
    links = torch.arange(CHAIN_STEPS * CHAIN_STRIDE, dtype=torch.int32, device="cuda") + CHAIN_STRIDE
    end = torch.empty(1, dtype=torch.int32, device="cuda")
    chase = launch.build(probes.chase, links, end)
    seconds = [
        measure(lambda count=count: chase(links, end.fill_(count)), bytes_moved=0).seconds
        for count in (CHAIN_STEPS // 2, CHAIN_STEPS - 1)
    ]
    return (seconds[1] - seconds[0]) / (CHAIN_STEPS // 2 - 1) * 1e9
