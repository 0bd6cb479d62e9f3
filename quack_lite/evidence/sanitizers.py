"""compute-sanitizer's tools over worker processes, many kernels at once; a batch that is not clean is split.

A clean summary counts only with the launch record of the worker that the tool watched: each kernel's output had to
turn from a pattern into the right values.
"""

import itertools
import re
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from quack_lite import machine
from quack_lite.evidence import processes


class Tool(NamedTuple):
    """options: of its own.  words: what it says of the fault it is there for."""

    options: tuple[str, ...]
    words: str


# Padding is memory that no allocation owns, so that an access past one does not land in the next. API errors are left
# out since torch and the DSL make, and handle, calls that fail while they start.
TOOLS = {
    "memcheck": Tool(("--padding", "1048576", "--report-api-errors", "no"), "Invalid __global__ read"),
    "racecheck": Tool((), "Race reported"),
    "initcheck": Tool((), "Uninitialized __global__ memory read"),
    "synccheck": Tool((), "Barrier error detected"),
}
SUMMARY = re.compile(r"^=+ (?:ERROR|RACECHECK) SUMMARY: (\d+)", re.M)
TAIL_LINES = 4
PARTS = 4  # into which a batch that is not clean is split
FIRST_PORT, PORTS_EACH = 49152, 16
ports = itertools.cycle(range(FIRST_PORT, FIRST_PORT + 100 * PORTS_EACH, PORTS_EACH))


def find() -> str | None:
    """compute-sanitizer, as machine.tool finds it; None without it."""
    return machine.tool("compute-sanitizer")


def examine(tool: str, kernels: Sequence[str], deadline: float, **options) -> dict[str, dict]:
    """{kernel: {"problems": sentences, "tool": what was run, its last lines}} of one tool.

    options: of processes.run. A batch that is not clean is split.
    """
    found, log = watch(tool, kernels, deadline, options)
    errors = count(log)
    ended = any(result.get("ended") for result in found.values())
    if errors is None and not ended and time.monotonic() >= deadline:
        return {kernel: processes.UNFINISHED for kernel in kernels}
    if (errors != 0 or ended) and len(kernels) > 1:
        return in_parts(tool, kernels, deadline, options)
    return {kernel: judged(tool, result, errors, log) for kernel, result in found.items()}


def in_parts(tool: str, kernels: Sequence[str], deadline: float, options: dict) -> dict[str, dict]:
    """As examine, in parts, at once, so that those that are clean are told from the others."""
    parts = [kernels[i::PARTS] for i in range(min(PARTS, len(kernels)))]
    options = {name: value for name, value in options.items() if name != "listener"}
    with ThreadPoolExecutor(PARTS) as pool:
        results = pool.map(lambda part: examine(tool, part, deadline, **options), parts)
        return {kernel: result for found in results for kernel, result in found.items()}


def watch(tool: str, kernels: Sequence[str], deadline: float, options: dict) -> tuple[dict[str, dict], str]:
    """(what the worker says of each kernel, what the tool wrote)."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        own = ["--port", str(next(ports)), "--log-file", str(log)]
        prefix = [find(), "--tool", tool, *TOOLS[tool].options, *own]
        found = processes.run("tool", kernels, deadline, prefix=prefix, **options)
        return found, log.read_text(errors="replace") if log.is_file() else ""


def count(log: str) -> int | None:
    """Errors or hazards in the tool's summary, None without a summary."""
    found = SUMMARY.findall(log)
    return sum(map(int, found)) if found else None


def judged(tool: str, result: dict, errors: int | None, log: str) -> dict:
    """A worker's result together with what the tool found."""
    if result.get("unfinished"):
        return processes.UNFINISHED
    problems = [f"{tool}: {sentence}" for sentence in result.get("problems", [])]
    if errors is None:
        problems.append(f"{tool}: the tool wrote no summary: {' / '.join(tail(log)) or 'nothing at all'}")
    elif errors:
        problems.append(f"{tool}: {errors} found, the first: {first_finding(log, TOOLS[tool].words)}")
    record = {"options": list(TOOLS[tool].options), "tail": tail(log)}
    return {"problems": problems, "tool": record, "said": TOOLS[tool].words in log}


def tail(log: str) -> list[str]:
    """The tool's last lines, as they are."""
    return log.splitlines()[-TAIL_LINES:]


def first_finding(log: str, words: str) -> str:
    """The first finding and the line behind it."""
    lines = [line.strip("= ") for line in log.splitlines()]
    at = next((i for i, line in enumerate(lines) if words in line), 1)
    return ", ".join(lines[at : at + 2])[:300]
