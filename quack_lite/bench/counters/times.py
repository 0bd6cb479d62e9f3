"""Where counts are not time: a thread that reads 8 neighbours one by one, and one that reads them at once, measured."""

import torch

from quack_lite.bench.ceilings import ceilings
from quack_lite.bench.counters.builds import build
from quack_lite.bench.protocol import measure
from quack_lite.simt.patterns import AT_ONCE, ONE_BY_ONE, Pattern

THREADS = 256
BLOCKS = 2**17  # 2**28 elements of bfloat16: 512 MiB


def times() -> dict:
    """{read_ceiling: GB/s, rows: [{pattern, elements, us, gbps}]} of the two patterns over the same large array."""
    return {"read_ceiling": ceilings().read, "rows": [timed(pattern) for pattern in (ONE_BY_ONE, AT_ONCE)]}


def timed(pattern: Pattern) -> dict:
    """The pattern over many blocks. RuntimeError for a wrong result."""
    built = build(pattern, BLOCKS, THREADS)
    count = pattern.numbers["count"]
    x = torch.ones(BLOCKS * THREADS * count, dtype=torch.bfloat16, device="cuda")
    y = torch.zeros(BLOCKS * THREADS, device="cuda")

    def check() -> None:
        if not bool((y == count).all()):
            raise RuntimeError(f"{pattern.name}: wrong sums")

    found = measure(built, x, y, bytes_moved=x.nbytes + y.nbytes, check=check)
    return {
        "pattern": pattern.name,
        "elements": x.numel(),
        "us": round(found.seconds * 1e6, 1),
        "gbps": round(found.gbps),
    }
