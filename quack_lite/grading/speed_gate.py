"""The speed gate of a kernel task: the share of this run's copy ceiling."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from typing import Any

from quack_lite import machine
from quack_lite.grading import guards
from quack_lite.grading.feedback import GradeFailed
from quack_lite.grading.kernel_gates import Cases, fresh, judge_again
from quack_lite.grading.task import Gate, Submission

ADVICE = "count the bytes that a thread has in flight, and see that neighbours in a warp are neighbours in memory"
ROUNDS = 3
FRESH_CALLS = 5
SLOWER = 1.25  # on values that it has not seen; a single call in a busy queue is timed to within a few percent
BUSY_PERCENT = 5
IDLE_SECONDS = 1.1  # nvidia-smi tells the utilisation of up to the last second, in which this process was busy


def speed(cases: Cases, size: Any, bytes_moved: int, share: float, advice: str = ADVICE) -> Gate:
    """Best of three at `size`, L2 flushed, at least `share` of the copy ceiling; values are compared again afterwards.

    Then a few calls on new values in the same tensors: who keeps results from the calls before is slower there.
    bytes_moved: each input read once and each output written once.  advice: where to look if it is too slow.
    """
    return Gate("speed", "gpu", lambda submission: _time(submission, cases, size, bytes_moved, share, advice))


def _time(submission: Submission, cases: Cases, size: Any, bytes_moved: int, share: float, advice: str) -> str:
    import torch

    from quack_lite import bench

    shared = gpu_is_shared()
    try:
        seconds = _best_seconds(submission, cases, size, bytes_moved)
    except torch.OutOfMemoryError:
        raise GradeFailed("too little GPU memory is free to time it: release() it in the other notebooks") from None
    reached = bytes_moved / seconds / 1e9
    return judge_speed(reached, bench.ceilings().copy, theoretical_peak(), share, shared, advice)


def _best_seconds(submission: Submission, cases: Cases, size: Any, bytes_moved: int) -> float:
    import torch

    from quack_lite import bench

    kernel, generator = submission.built, fresh("cuda")
    inputs = cases.inputs(size, generator)
    wanted = cases.wanted(inputs)
    outputs = [inputs[position] for _, position in cases.updated] or [torch.empty_like(wanted[0][0])]
    own = [] if cases.updated else outputs
    before = [out.clone() for out in outputs if cases.updated]
    for out in own:
        guards.poison(out)
    rounds = [bench.measure(kernel, *inputs, *own, bytes_moved=bytes_moved) for _ in range(ROUNDS)]
    if cases.updated:  # the timed calls have gone on from one another's results: once more from the start
        for out, kept in zip(outputs, before, strict=True):
            out.copy_(kept)
        kernel(*inputs)
    judge_again(outputs, wanted, "after timing")
    best = min(timing.seconds for timing in rounds)
    judge_fresh(_fresh_seconds(kernel, cases, size, inputs, outputs, generator), best)
    return best


def _fresh_seconds(kernel: Callable, cases: Cases, size: Any, inputs: tuple, outputs: list, generator: Any) -> float:
    """The shortest of FRESH_CALLS calls, each on new values in the tensors of `inputs`, with an own output poisoned."""
    import torch

    from quack_lite import bench
    from quack_lite.bench import protocol

    flush = torch.empty(4 * protocol.l2_bytes(), dtype=torch.int8, device="cuda")
    own = [] if cases.updated else outputs
    seconds = []
    with bench.gpu_lock(exclusive=True):
        for _ in range(FRESH_CALLS):
            renewed = cases.inputs(size, generator)
            handed = [
                new if isinstance(new, float) else old.copy_(new) for old, new in zip(inputs, renewed, strict=True)
            ]
            for out in own:
                guards.poison(out)
            seconds += protocol.repeat(1, kernel, (*handed, *own), flush)
            judge_again(outputs, cases.wanted(renewed), "timed on new values,")
    return min(seconds)


def judge_fresh(fresh_seconds: float, seconds: float) -> None:
    """GradeFailed where a call takes much longer on values that no call has seen."""
    if fresh_seconds > SLOWER * seconds:
        raise GradeFailed(
            f"on new values a call takes {fresh_seconds / seconds:.1f} times as long as on values that it has seen: "
            "keep no result from one call to the next"
        )


def judge_speed(
    reached: float, ceiling: float, peak: float | None, share: float, shared: bool, advice: str = ADVICE
) -> str:
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
        raise GradeFailed(f"{words}, and {share:.0%} is asked: {advice}")
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
    """What nvidia-smi says of torch's current device; another GPU of the machine has no part in it."""
    import torch

    return machine.nvidia_smi(query, "-i", f"GPU-{torch.cuda.get_device_properties().uuid}")
