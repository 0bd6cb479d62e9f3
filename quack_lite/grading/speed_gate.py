"""The speed gate of a kernel task: the share of this run's copy ceiling."""

from __future__ import annotations

import ctypes
import subprocess
import time
from collections.abc import Callable
from typing import Any

from quack_lite.grading import guards
from quack_lite.grading.feedback import GradeFailed
from quack_lite.grading.kernel_gates import Cases, fresh
from quack_lite.grading.task import Gate, Submission

ROUNDS = 3
BUSY_PERCENT = 5
IDLE_SECONDS = 1.1  # nvidia-smi tells the utilisation of up to the last second, in which this process was busy


def speed(cases: Cases, size: Any, bytes_moved: int, share: float) -> Gate:
    """Best of three at `size`, L2 flushed, at least `share` of the copy ceiling; values are compared again afterwards.

    bytes_moved: each input read once and each output written once.
    """
    return Gate("speed", "gpu", lambda submission: _time(submission, cases, size, bytes_moved, share))


def _time(submission: Submission, cases: Cases, size: Any, bytes_moved: int, share: float) -> str:
    import torch

    from quack_lite import bench

    shared = gpu_is_shared()
    try:
        seconds = _best_seconds(submission, cases, size, bytes_moved)
    except torch.OutOfMemoryError:
        raise GradeFailed("too little GPU memory is free to time it: release() it in the other notebooks") from None
    return judge_speed(bytes_moved / seconds / 1e9, bench.ceilings().copy, theoretical_peak(), share, shared)


def _best_seconds(submission: Submission, cases: Cases, size: Any, bytes_moved: int) -> float:
    import torch

    from quack_lite import bench

    inputs = cases.inputs(size, fresh("cuda"))
    expected = cases.reference(*inputs)
    allowed = cases.allowed(*inputs) if cases.allowed else None
    kept = [inputs[position].clone() for _, position in cases.updated]
    outputs = [] if kept else [torch.empty_like(expected)]
    for out in outputs:
        guards.poison(out)
    rounds = [bench.measure(submission.built, *inputs, *outputs, bytes_moved=bytes_moved) for _ in range(ROUNDS)]
    if kept:  # the timed calls have gone on from one another's results: once more from the start
        outputs = [inputs[position].copy_(old) for (_, position), old in zip(cases.updated, kept, strict=True)]
        submission.built(*inputs)
    judge_leftovers(outputs, expected, allowed)
    return min(timing.seconds for timing in rounds)


def judge_leftovers(outputs: list, expected: Any, allowed: Any) -> None:
    """GradeFailed where what timing left behind is not the reference."""
    expected, allowed = ((given if isinstance(given, tuple) else (given,)) for given in (expected, allowed))
    allowed = (None,) * len(expected) if allowed == (None,) else allowed
    for out, right, most in zip(outputs, expected, allowed, strict=True):
        wrong, first = guards.differences(out, right, most)
        if wrong:
            raise GradeFailed(f"after timing {wrong} values were wrong, the first at {first}: look for leftovers")


def judge_speed(reached: float, ceiling: float, peak: float | None, share: float, shared: bool) -> str:
    """Words for a speed that is enough, GradeFailed for one that is not. All in GB/s; `share` from 0 to 1.

    Only a speed above the hardware's theoretical peak is refused as impossible; the ceiling is a measurement and a
    kernel may beat it. On a GPU that others use at the same time the speed is told and not judged.
    """
    words = f"{reached:.0f} GB/s, {reached / ceiling:.0%} of this run's copy ceiling"
    if peak is not None and reached > peak:
        raise GradeFailed(f"{words}: more than the memory's peak of {peak:.0f} GB/s, so it did not move all the bytes")
    if shared:
        return f"{words}; measured, not judged: another process uses this GPU"
    if reached < share * ceiling:
        raise GradeFailed(
            f"{words}, and {share:.0%} is asked: count the bytes that a thread has in flight, and see that neighbours "
            "in a warp are neighbours in memory"
        )
    return words


def theoretical_peak() -> float | None:
    """The memory's peak in GB/s: two transfers a clock times the bus width; None where the driver does not tell.

    Source: CUDA C++ Best Practices Guide, "Theoretical Bandwidth Calculation"; clock and width from
    cuDeviceGetAttribute (CUDA driver API).
    """
    clock_khz, width_bits = (_device_attribute(number) for number in (36, 37))
    return peak_of(clock_khz, width_bits) if clock_khz and width_bits else None


def peak_of(clock_khz: int, width_bits: int) -> float:
    """GB/s of a memory with this clock and bus, at two transfers a clock."""
    return 2 * clock_khz * 1e3 * width_bits / 8 / 1e9


def _device_attribute(number: int) -> int:
    """An attribute of torch's current device from the driver; 0 where it cannot be had."""
    import torch

    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return 0
    value, device = ctypes.c_int(0), ctypes.c_int(0)
    if driver.cuInit(0) or driver.cuDeviceGet(ctypes.byref(device), torch.cuda.current_device()):
        return 0
    return 0 if driver.cuDeviceGetAttribute(ctypes.byref(value), number, device) else value.value


def gpu_is_shared(ask: Callable[[str], list[str]] | None = None) -> bool:
    """Whether a process other than this one uses the GPU now: others hold it, and it is busy while we are not.

    Another notebook that is idle does not count. False where nvidia-smi cannot tell.
    """
    ask = ask or _nvidia_smi
    if len(ask("--query-compute-apps=pid")) < 2:
        return False
    time.sleep(IDLE_SECONDS)
    words = [line.split()[0] for line in ask("--query-gpu=utilization.gpu")]
    return max((int(word) for word in words if word.isdigit()), default=0) >= BUSY_PERCENT


def _nvidia_smi(query: str) -> list[str]:
    try:
        told = subprocess.run(["nvidia-smi", query, "--format=csv,noheader"], capture_output=True, text=True, timeout=5)
    except (OSError, subprocess.TimeoutExpired):
        return []
    return [line for line in told.stdout.splitlines() if line.strip()] if told.returncode == 0 else []
