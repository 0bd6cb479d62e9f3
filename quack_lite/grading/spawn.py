"""Runs answers in a process of their own, so that a crash, a hang or a full memory stays there."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from quack_lite.grading import tasks
from quack_lite.grading.feedback import Verdict

START_SECONDS = 60.0  # imports of torch and the DSL from a cold disk; not the answer's fault
ANSWER_SECONDS = 9.0  # with a warm start-up of a few seconds the reader hears within 15
MEMORY_BYTES = 8 * 2**30
POLL_SECONDS = 0.02
ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Answer:
    """A task's id and the text of the file that defines `answer`."""

    task: str
    text: str


def grade(answers: list[Answer]) -> list[Verdict]:
    """A verdict an answer, in order. A process that dies costs only the answer that it was at."""
    verdicts: list[Verdict] = []
    with tempfile.TemporaryDirectory(prefix="quack_lite_") as folder:
        while len(verdicts) < len(answers):
            run = _Run(Path(folder) / f"run{len(verdicts)}", answers[len(verdicts) :])
            verdicts += run.verdicts()
    return verdicts


class _Run:
    """One grader process over a list of answers, until the list or the process ends."""

    def __init__(self, folder: Path, answers: list[Answer]):
        self.folder, self.answers = folder, answers
        folder.mkdir()
        for index, answer in enumerate(answers):
            (folder / f"answer{index}.py").write_text(answer.text, encoding="utf-8")
        jobs = [{"task": answer.task, "file": f"answer{index}.py"} for index, answer in enumerate(answers)]
        (folder / "jobs.json").write_text(json.dumps(jobs), encoding="utf-8")
        path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
        self.log = (folder / "log").open("wb")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "quack_lite.grading.grader", str(folder)],
            stdin=subprocess.DEVNULL,
            stdout=self.log,
            stderr=subprocess.STDOUT,
            env={**os.environ, "PYTHONPATH": path},
            start_new_session=True,
        )

    def verdicts(self) -> list[Verdict]:
        """At least one verdict; fewer than answers where the process had to end."""
        done: list[Verdict] = []
        try:
            stop = "start" if self._wait(self.folder / "ready", START_SECONDS) else ""
            while not stop and len(done) < len(self.answers):
                path = self.folder / f"verdict{len(done)}.json"
                stop = self._wait(path, ANSWER_SECONDS)
                if not stop:
                    done.append(_read(path))
        finally:
            self._end()
        if stop and not (done and self.process.returncode == 0):
            done.append(self._failure(self.answers[len(done)].task, stop))
        return done

    def _wait(self, path: Path, seconds: float) -> str:
        """Waits for the file; returns "" when it is there, otherwise why it will not come."""
        limit = time.monotonic() + seconds
        while not path.exists():
            if self.process.poll() is not None:
                return "" if path.exists() else "ended"
            if time.monotonic() > limit:
                return "time"
            if _resident_bytes(self.process.pid) > MEMORY_BYTES:
                return "memory"
            time.sleep(POLL_SECONDS)
        return ""

    def _end(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.log.close()

    def _failure(self, task_id: str, stop: str) -> Verdict:
        sentences = {
            "start": f"the grader did not start ({self._last_words()}): see quack-lite doctor, release() GPU memory",
            "time": f"no answer after {ANSWER_SECONDS:.0f} s, so it was stopped: look for a loop or a wait without end",
            "memory": f"it took more than {MEMORY_BYTES / 2**30:g} GiB of memory and was stopped: see what it makes",
            "ended": f"the process that ran it ended ({self._last_words()}): look for an access outside the tensors",
        }
        gate = tasks.find(task_id).gates[0].name
        return Verdict(task_id, "failed", gate, sentences[stop])

    def _last_words(self) -> str:
        code = self.process.returncode
        if code is not None and code < 0:
            return signal.Signals(-code).name
        lines = (self.folder / "log").read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return lines[-1] if lines else f"exit code {code}"


def _read(path: Path) -> Verdict:
    fields = json.loads(path.read_text(encoding="utf-8"))
    fields["seen"] = tuple(map(tuple, fields["seen"]))
    return Verdict(**fields)


def _resident_bytes(pid: int) -> int:
    """What the process holds in memory; 0 where the system has no /proc."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    kib = [line.split()[1] for line in status.splitlines() if line.startswith("VmRSS:")]
    return int(kib[0]) * 1024 if kib else 0
