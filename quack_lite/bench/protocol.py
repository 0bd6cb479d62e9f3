"""The one way in which this project takes a time."""

import contextlib
import fcntl
import os
import statistics
import tempfile
from collections.abc import Callable
from dataclasses import dataclass

import torch

WARM_UP_SECONDS = 0.05
SAMPLES = (10, 100)  # at least, at most
SAMPLING_SECONDS = 0.3
HELD = []  # by this process; at most one, since what is inside takes nothing


@dataclass(frozen=True)
class Timing:
    """seconds: the median.  spread: half the way from the 10th to the 90th percentile, as a share of the median."""

    seconds: float
    spread: float
    samples: int
    bytes_moved: int

    @property
    def gbps(self) -> float:
        """Useful bytes over time, in GB/s (10**9 bytes a second)."""
        return self.bytes_moved / self.seconds / 1e9


def measure(
    fn: Callable,
    *args,
    bytes_moved: int,
    check: Callable[[], None] | None = None,
    samples: tuple[int, int] = SAMPLES,
    seconds: float = SAMPLING_SECONDS,
) -> Timing:
    """The time of fn(*args) on the GPU: warmed up, L2 flushed before each call, events round it, median of many.

    bytes_moved: useful bytes of one call.  check: called after timing; raises if the result is wrong.
    samples: calls that are timed, at least and at most; between them, as many as fit in `seconds`.
    Raises TypeError for a @cute.jit function that is not compiled: it would be traced anew in each call.
    """
    refuse_uncompiled(fn)
    with gpu_lock(exclusive=True):
        flush = torch.empty(4 * l2_bytes(), dtype=torch.int8, device="cuda")
        estimate = sample(fn, args, flush)
        repeat(max(1, int(WARM_UP_SECONDS / estimate)), fn, args, flush)
        low, high = samples
        count = min(high, max(low, int(seconds / estimate)))
        times = sorted(repeat(count, fn, args, flush))
    if check is not None:
        check()
    median = statistics.median(times)
    return Timing(median, (times[int(0.9 * count)] - times[int(0.1 * count)]) / 2 / median, count, bytes_moved)


def repeat(count: int, fn: Callable, args: tuple, flush: torch.Tensor) -> list[float]:
    """Seconds of `count` calls, queued one behind the other."""
    pairs = [queue(fn, args, flush) for _ in range(count)]
    torch.cuda.synchronize()
    return [begin.elapsed_time(end) / 1e3 for begin, end in pairs]


def sample(fn: Callable, args: tuple, flush: torch.Tensor) -> float:
    """Seconds of the second of two calls, at least a microsecond."""
    return max(1e-6, repeat(2, fn, args, flush)[1])


def queue(fn: Callable, args: tuple, flush: torch.Tensor) -> tuple[torch.cuda.Event, torch.cuda.Event]:
    """Queues a flush of the L2 and a call between two events."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    flush.zero_()
    begin.record()
    fn(*args)
    end.record()
    return begin, end


def refuse_uncompiled(fn: Callable) -> None:
    """TypeError for a @cute.jit function."""
    if hasattr(fn, "_dsl_cls") or hasattr(fn, "_dsl_object"):
        raise TypeError(
            f"{fn.__name__} is not compiled: it would be traced anew at every call, and that would be timed; "
            "hand over build(...)'s result"
        )


def l2_bytes() -> int:
    """The size of the current GPU's L2 cache."""
    return torch.cuda.get_device_properties().L2_cache_size


@contextlib.contextmanager
def gpu_lock(exclusive: bool):
    """Holds this GPU among this machine's users of the package: shared to check, exclusive to time.

    Inside another of this process it takes nothing. RuntimeError for an exclusive one inside a shared one, which would
    wait for itself.
    """
    if exclusive and holds() == "shared":
        raise RuntimeError("the GPU is held to check and is wanted to time: end the check's gpu_lock before")
    if holds():
        yield
        return
    name = f"quack_lite-{os.getuid()}-{torch.cuda.get_device_properties().uuid}.lock"
    with open(os.path.join(tempfile.gettempdir(), name), "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH)
        HELD.append("exclusive" if exclusive else "shared")
        try:
            yield
        finally:
            HELD.pop()


def holds() -> str:
    """How this process holds the GPU: "exclusive", "shared", or empty."""
    return HELD[-1] if HELD else ""
