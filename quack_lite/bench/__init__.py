"""One timing protocol, this machine's ceilings, the peers, the records."""

from quack_lite.bench.ceilings import Ceilings, ceilings
from quack_lite.bench.protocol import Timing, gpu_lock, measure

__all__ = ["Ceilings", "Timing", "ceilings", "gpu_lock", "measure"]
