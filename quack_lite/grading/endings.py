"""What is said of an answer that was stopped, or that ended the process in which it ran."""

from __future__ import annotations

import signal
from pathlib import Path

LAST_BYTES = 4096
LAST_CHARACTERS = 200
CRASHES = ("SIGSEGV", "SIGBUS", "SIGABRT", "SIGILL", "SIGFPE")

TIME = (
    "no answer after {:.0f} s, so it was stopped: look for a loop or a wait without end; on a busy machine check again"
)
MEMORY = "it took more than {:g} GiB of memory and was stopped: see what it makes"
OUTPUT = "it printed more than {:g} MiB and was stopped: take the print out of the loop"
PROCESSES = "it ran more than {} processes and was stopped: do the work in one"
LEFT = "your code left a process running, which was ended: wait for what you start, or do without it"
FORGED = "a verdict came that the grader did not write: leave its files alone, and let your functions return"


def ended(code: int) -> str:
    """The sentence for a process that ended by itself, with subprocess's returncode."""
    if code >= 0:
        return f"the process that ran it ended (exit code {code}): look for what ends Python, as os._exit does"
    name = signal.Signals(-code).name
    advice = "look for code that ends processes"
    if name in CRASHES:
        advice = "look for an access outside the tensors"
    if name == "SIGKILL":
        advice += "; the system does it too, where memory is short"
    return f"the process that ran it ended ({name}): {advice}"


def not_started(code: int | None, log: Path) -> str:
    """The sentence for a grader that did not come so far as to look at an answer; `code` is None while it runs."""
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - LAST_BYTES))
        lines = file.read().decode(errors="replace").strip().splitlines()
    silent = "it took too long" if code is None else f"exit code {code}"
    why = lines[-1][:LAST_CHARACTERS] if lines else silent
    return f"the grader did not start ({why}): see quack-lite doctor, release() GPU memory"
