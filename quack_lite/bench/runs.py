"""Starts the processes of a benchmark, several at once, and ends them when the time is over."""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, TextIO

from quack_lite.bench.worker import last_mark
from quack_lite.leash import leashed

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROCESSES = 3  # a job, its helpers among them, when there are more jobs than cores
MOST_HELPERS = 11
MOST_LOST = 3  # peers that end their process, before a job is given up


class Task(NamedTuple):
    """What one process does: python -m MODULE WORDS. name: of its record.  renewed: whether it takes --lost."""

    name: str
    module: str
    words: tuple[str, ...] = ()
    renewed: bool = False


class Ended(NamedTuple):
    """How a task ended: all well with an empty `problem`; unfinished where the time was over."""

    name: str
    problem: str = ""
    unfinished: bool = False


def shares(jobs: int, cores: int) -> tuple[int, int]:
    """(jobs at once, helpers of each) on so many cores."""
    at_once = max(1, min(jobs, cores // PROCESSES))
    return at_once, max(0, min(MOST_HELPERS, cores // at_once - 1))


def cores() -> int:
    """That this process may use."""
    return len(os.sched_getaffinity(0))


def run(tasks: Sequence[Task], at_once: int, deadline: float, listener: Callable[[Ended], None]) -> list[Ended]:
    """Runs them in their order until the deadline (time.monotonic()). listener: hears of each as it ends."""

    def one(task: Task) -> Ended:
        ended = attempts(task, deadline)
        listener(ended)
        return ended

    with ThreadPoolExecutor(at_once) as pool:
        return list(pool.map(one, tasks))


def attempts(task: Task, deadline: float) -> Ended:
    """One task; where a peer ends the process, again without that peer."""
    lost = []
    while True:
        code, heard, error, killed = start(task, lost, deadline)
        if killed:
            return Ended(task.name, unfinished=True)
        if code == 0:
            return Ended(task.name)
        at = last_mark(heard)
        if not task.renewed or at is None or at in lost or len(lost) == MOST_LOST:
            return Ended(task.name, f"ended with code {code} at {at or 'its start'}: {error}")
        lost.append(at)


def start(task: Task, lost: Sequence[str], deadline: float) -> tuple[int, str, str, bool]:
    """(exit code, stdout, the last line of stderr, whether it was killed at the deadline) of one process."""
    if time.monotonic() >= deadline:
        return 1, "", "", True
    command = leashed([sys.executable, "-m", task.module, *task.words, *(f"--lost={at}" for at in lost)])
    with tempfile.TemporaryDirectory() as folder, opened(folder, "stdout") as out, opened(folder, "stderr") as err:
        streams = {"stdin": subprocess.PIPE, "stdout": out, "stderr": err}
        process = subprocess.Popen(command, cwd=folder, env=environment(), start_new_session=True, **streams)
        try:
            code, killed = process.wait(max(0.0, deadline - time.monotonic())), False
        except subprocess.TimeoutExpired:
            code, killed = 1, True
        end(process)
        said, errors = (text(stream) for stream in (out, err))
    lines = [line.strip() for line in errors.splitlines() if line.strip()] or ["without a word"]
    return code, said, lines[-1][:300], killed


def opened(folder: str, name: str) -> TextIO:
    """A file to write to and to read."""
    return open(os.path.join(folder, name), "w+")


def text(file: TextIO) -> str:
    """All that a process has written to it."""
    file.seek(0)
    return file.read()


def end(process: subprocess.Popen) -> None:
    """Ends a process and what it has started, if they are still there."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def environment() -> dict[str, str]:
    """torch.compile compiles in the process that asks: there are processes enough."""
    path = os.pathsep.join(filter(None, [ROOT, os.environ.get("PYTHONPATH")]))
    return {**os.environ, "PYTHONPATH": path, "TORCHINDUCTOR_COMPILE_THREADS": "1"}
