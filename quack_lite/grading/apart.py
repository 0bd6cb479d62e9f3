"""Runs a function of a notebook in a Python of its own, so that what it breaks stays there.

python -m quack_lite.grading.apart FOLDER is that Python: FOLDER/task.py defines `answer`, and how calling it ended is
written to FOLDER/ended.json.
"""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from quack_lite.grading import family
from quack_lite.grading.feedback import first_line, plain
from quack_lite.leash import leashed
from quack_lite.loading import load

SECONDS = 120.0
PATH_LINE = re.compile(r"^\s*--> .*\n", re.M)  # of the compiler: a cell's file has another name each time
MACHINE = re.compile(r"(\n\s*= note:( error code \d+)?\s*)*\n- Error name.*", re.S)  # what it adds about this machine
FINDING = re.compile(r"^=+ (Invalid .*|Program hit .*)$", re.M)
DETAIL = re.compile(r"^=+\s+(by thread .*|.* (?:after|before|inside) the nearest allocation .*)$", re.M)
SUMMARY = re.compile(r"^=+ (ERROR SUMMARY: .*)$", re.M)
ADDRESS = re.compile(r" (?:at|in) (?:address )?0x[0-9a-f]+(?: in [^\n]*)?")


@dataclass(frozen=True)
class End:
    """said: on stdout.  error: what it raised, or how its process ended, the stable part; empty where all went well."""

    said: str
    error: str


def run(text: str, prefix: Sequence[str] = (), more: Mapping[str, str] | None = None, seconds: float = SECONDS) -> End:
    """Runs `answer()` of a Python file in a new process.

    prefix: a command in front of it.  more: environment variables beside this process's own.
    """
    with tempfile.TemporaryDirectory(prefix="quack_lite_") as folder:
        (Path(folder) / "task.py").write_text(text, encoding="utf-8")
        process = subprocess.Popen(
            leashed([*prefix, sys.executable, "-m", "quack_lite.grading.apart", folder]),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=family.environment({"PYTHONUNBUFFERED": "1", **(more or {})}),
            start_new_session=True,
        )
        leash, process.stdin = process.stdin, None  # communicate would let go of it
        try:
            said, _ = process.communicate(timeout=seconds)
            late = False
        except subprocess.TimeoutExpired:
            leash.close()
            said, _ = process.communicate()
            late = True
        finally:
            leash.close()
        ended = Path(folder) / "ended.json"
        error = json.loads(ended.read_text(encoding="utf-8")) if ended.exists() else _ending(process, late, seconds)
    return End(said, error)


def _ending(process: subprocess.Popen, late: bool, seconds: float) -> str:
    if late:
        return f"the process was ended: nothing came back for {seconds:g} s"
    if process.returncode < 0:
        return f"the process was ended by {signal.Signals(-process.returncode).name}"
    return f"the process ended with code {process.returncode}"


def stable(error: BaseException) -> str:
    """What an error says, without what differs from run to run.

    Of the compiler's errors everything but the path; of others the first line, since CUDA's go on with advice.
    """
    text = plain(error)
    if not re.search(r"^error(\[\w+\])?:", text, re.M):
        return f"{type(error).__name__}: {first_line(error)}"
    return re.sub(r"\n{2,}", "\n", PATH_LINE.sub("", MACHINE.sub("", text))).strip()


def findings(log: str, most: int = 1) -> str:
    """The first findings of compute-sanitizer and its summary, without addresses."""
    starts = [match.start() for match in FINDING.finditer(log)]
    lines = []
    for first, end in zip(starts[:most], [*starts[1:], len(log)], strict=False):
        part = log[first:end]
        found = [FINDING.search(part)[1], *(match[1] for match in DETAIL.finditer(part))]
        lines += [re.sub("^and is ", "it is ", ADDRESS.sub("", line).strip()) for line in found]
    lines += [match[1] for match in SUMMARY.finditer(log)]
    return "\n".join(lines) or "the tool wrote no summary"


def main(folder: str) -> None:
    """Calls `answer` and writes how it ended; what CUDA says while the process goes down is not waited for."""
    error = ""
    try:
        load("task", Path(folder) / "task.py").answer()
    except BaseException as caught:
        error = stable(caught)
    sys.stdout.flush()
    (Path(folder) / "ended.json").write_text(json.dumps(error), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
