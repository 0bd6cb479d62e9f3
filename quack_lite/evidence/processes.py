"""Starts worker processes, and collects what they say of each kernel."""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from quack_lite.evidence.receipts import ROOT
from quack_lite.leash import leashed

MARK = "@receipt "
UNFINISHED = {"unfinished": True}
ERROR_LINE = re.compile(r"[A-Za-z_.]+(Error|Exception)\b")


def nothing(result: dict) -> None:
    """A listener that does not listen."""


def run(
    step: str,
    kernels: Sequence[str],
    deadline: float,
    *,
    plant: str | None = None,
    objects: str | None = None,
    prefix: Sequence[str] = (),
    listener: Callable[[dict], None] = nothing,
) -> dict[str, dict]:
    """{kernel: what the worker says of it} of one worker process, killed at the deadline (time.monotonic()).

    A process that ends early leaves a problem that says so at the kernel it was at, with "ended". Kernels that were
    not reached are "unfinished".  plant, objects: options of the worker.  prefix: a command in front of the worker's.
    listener: hears each result at once.
    """
    options = [f"--{name}={value}" for name, value in (("plant", plant), ("objects", objects)) if value]
    command = [*prefix, sys.executable, "-m", "quack_lite.evidence.worker", step, *options, *kernels]
    with tempfile.TemporaryDirectory() as folder, open(os.path.join(folder, "stderr"), "w+") as stderr:
        process = subprocess.Popen(
            leashed(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            cwd=folder,
            env=environment(step, folder),
            start_new_session=True,
        )
        found, killed = collect(process, deadline, listener)
        stderr.seek(0)
        said = stderr.read()
    missing = [kernel for kernel in kernels if kernel not in found]
    found |= {kernel: UNFINISHED for kernel in missing}
    if missing and not killed:
        found[missing[0]] = {"problems": [ending(step, process.returncode, said)], "ended": True}
    return found


def run_all(step: str, kernels: Sequence[str], deadline: float, **options) -> dict[str, dict]:
    """As run; where a process ends early, another takes the kernels that are left."""
    found = run(step, kernels, deadline, **options)
    left = [kernel for kernel in kernels if found[kernel].get("unfinished")]
    ended = any(found[kernel].get("ended") for kernel in kernels)
    return {**found, **run_all(step, left, deadline, **options)} if left and ended else found


def spread(step: str, kernels: Sequence[str], deadline: float, processes: int, **options) -> dict[str, dict]:
    """As run_all, in several processes at once."""
    parts = [kernels[i::processes] for i in range(min(processes, len(kernels)))]
    with ThreadPoolExecutor(len(parts) or 1) as pool:
        results = pool.map(lambda part: run_all(step, part, deadline, **options), parts)
    return {kernel: result for found in results for kernel, result in found.items()}


def collect(process: subprocess.Popen, deadline: float, listener: Callable) -> tuple[dict[str, dict], bool]:
    """({kernel: result} from the worker's lines, whether it had to be killed)."""
    found = {}
    killed = threading.Event()
    clock = threading.Timer(max(0, deadline - time.monotonic()), kill, (process, killed))
    clock.start()
    for line in process.stdout:
        if line.startswith(MARK):
            result = json.loads(line.removeprefix(MARK))
            found[result.pop("kernel")] = result
            listener(result)
    process.wait()
    clock.cancel()
    return found, killed.is_set()


def kill(process: subprocess.Popen, killed: threading.Event) -> None:
    """Ends a worker and what it has started."""
    killed.set()
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)


def ending(step: str, returncode: int, stderr: str) -> str:
    """One sentence on a process that ended early."""
    if "Timeout (" in stderr:
        return f"{step}: hangs: nothing came back, and the process was ended"
    lines = [line for line in stderr.splitlines() if line.strip()] or ["without a word"]
    errors = [line for line in lines if ERROR_LINE.match(line)]
    return f"{step}: the process ended with code {returncode}: {(errors or lines)[-1][:300]}"


def environment(step: str, folder: str) -> dict[str, str]:
    """For a worker: IR kept and the DSL's files in `folder`; under a tool, each tensor an allocation of its own."""
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    kept = {"CUTE_DSL_KEEP": "ptx,ir", "CUTE_DSL_DUMP_DIR": folder}
    allocations = {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"} if step == "tool" else {}
    return {**os.environ, **kept, **allocations, "PYTHONPATH": path}
