"""The processes that grading starts: who they are, what they hold, and their end."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Mapping
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parents[2]
LOCKS = Path("/proc/locks")  # a line with -> is somebody who waits: "1: -> FLOCK ADVISORY WRITE 4711 ..."
MARK = "QUACK_LITE_RUN"  # in the environment of all of one run, inherited by whatever they start
END_SECONDS = 5.0  # a process with a GPU context needs a moment to let go of it


def environment(more: Mapping[str, str]) -> dict[str, str]:
    """This process's own, with the package on Python's path, and more."""
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    return {**os.environ, "PYTHONPATH": path, **more}


def of(pid: int) -> list[psutil.Process]:
    """The running descendants of a process; those that have ended and are not collected yet do not count."""
    try:
        return [process for process in psutil.Process(pid).children(recursive=True) if _runs(process)]
    except psutil.Error:
        return []


def marked(mark: str) -> list[psutil.Process]:
    """The running processes, wherever they belong by now, that were started with this mark."""
    return [process for process in psutil.process_iter() if _environment(process).get(MARK) == mark]


def hold_more_than(limit: int, processes: list[psutil.Process]) -> bool:
    """Whether they have more than `limit` bytes of memory together. What forks share is divided among them."""
    return _sum(_resident, processes) > limit and _sum(_share, processes) > limit


def wait_for_a_lock(processes: list[psutil.Process]) -> bool:
    """Whether one of them waits for a file's lock, as for a GPU that somebody else times on; False where none tells."""
    try:
        lines = [line.split() for line in LOCKS.read_text().splitlines()]
    except OSError:
        return False
    waiting = {words[5] for words in lines if words[1:3] == ["->", "FLOCK"]}
    return any(str(process.pid) in waiting for process in processes)


def end(mark: str) -> None:
    """Ends every process with this mark, and what they start meanwhile."""
    deadline = time.monotonic() + END_SECONDS
    while (found := marked(mark)) and time.monotonic() < deadline:
        for process in found:
            with contextlib.suppress(psutil.Error):
                process.kill()
        psutil.wait_procs(found, timeout=0.1)


def _runs(process):
    try:
        return process.status() not in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
    except psutil.Error:
        return False


def _environment(process):
    try:
        return process.environ()
    except (psutil.Error, OSError):
        return {}


def _sum(measure, processes):
    total = 0
    for process in processes:
        with contextlib.suppress(psutil.Error):
            total += measure(process)
    return total


def _resident(process):
    return process.memory_info().rss


def _share(process):
    """Its resident memory, a page that k processes share counted 1/k; where the system does not tell, all of it."""
    full = process.memory_full_info()
    return getattr(full, "pss", full.rss)
