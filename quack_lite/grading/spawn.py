"""Runs answers in processes of their own, so that a crash, a hang or a full memory stays there.

A run is a warden, the grader that it starts, and whatever the answers start (warden.py, grader.py).
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from quack_lite.grading import endings, family, stamps, tasks
from quack_lite.grading.feedback import Verdict

START_SECONDS = 60.0  # imports of torch and the DSL from a cold disk; not the answer's fault
ANSWER_SECONDS = 9.0  # with a warm start-up of a few seconds the reader hears within 15
QUEUE_SECONDS = 60.0  # in which an answer waits for a GPU that others time on: not counted as its own
END_SECONDS = 3.0  # for the warden to end what an answer left
MEMORY_BYTES = 8 * 2**30  # resident, of all processes of a run together
OUTPUT_BYTES = 4 * 2**20  # printed by one answer
PROCESSES = 64
VERDICT_BYTES = 2**24
POLL_SECONDS = 0.02
LOOK_SECONDS = 0.1  # from one look at the processes to the next, which takes some milliseconds
ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Answer:
    """A task's id and the text of the file that defines `answer`."""

    task: str
    text: str


def grade(answers: list[Answer]) -> list[Verdict]:
    """A verdict an answer, in order. A process that dies or is spoilt costs only the answer that it was at."""
    verdicts: list[Verdict] = []
    with tempfile.TemporaryDirectory(prefix="quack_lite_", ignore_cleanup_errors=True) as folder:
        while len(verdicts) < len(answers):
            run = _Run(Path(folder) / f"run{len(verdicts)}", answers[len(verdicts) :])
            verdicts += run.verdicts()
    return verdicts


class _Run:
    """One grader process over a list of answers, until the list or the process ends."""

    def __init__(self, folder: Path, answers: list[Answer]):
        self.folder, self.answers = folder, answers
        self.key, self.mark = secrets.token_hex(), f"{os.getpid()}-{secrets.token_hex(8)}"
        folder.mkdir()
        for index, answer in enumerate(answers):
            (folder / f"answer{index}.py").write_text(answer.text, encoding="utf-8")
        jobs = [{"task": answer.task, "file": f"answer{index}.py"} for index, answer in enumerate(answers)]
        (folder / "jobs.json").write_text(json.dumps(jobs), encoding="utf-8")
        self.log = (folder / "log").open("wb")
        self.process = self._start()
        self.printed = 0
        self.stamps = stamps.taken(ROOT)

    def _start(self) -> subprocess.Popen:
        process = subprocess.Popen(
            [sys.executable, "-m", "quack_lite.grading.warden", str(self.folder)],
            stdin=subprocess.PIPE,
            stdout=self.log,
            stderr=subprocess.STDOUT,
            env=family.environment({family.MARK: self.mark}),
            start_new_session=True,
            bufsize=0,
        )
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(f"{self.key}\n".encode())
        return process

    def verdicts(self) -> list[Verdict]:
        """At least one verdict; fewer than answers where the process had to end."""
        done: list[Verdict] = []
        try:
            if self._wait(self.folder / "ready", START_SECONDS):
                return [self._failure(0, endings.not_started(self.process.poll(), self.folder / "log"))]
            for index in range(len(self.answers)):
                stop = self._wait(self.folder / f"verdict{index}.json", ANSWER_SECONDS)
                if stop and done and self.process.poll() == 0:
                    break  # the grader asks for a fresh process
                verdict = None if stop else self._read(index)
                stop = stop or self._objection(verdict)
                self.printed += self._said()
                done.append(self._failure(index, stop) if stop else verdict)
                if stop:
                    break
        finally:
            self._end()
        return done

    def _objection(self, verdict: Verdict | None) -> str:
        """Why, after this verdict, the run must end; "" where it goes on."""
        changed = stamps.sentence(self.stamps, stamps.taken(ROOT))
        if verdict is None:
            return endings.FORGED
        if changed:
            return changed
        if self.process.poll():
            return endings.ended(self.process.returncode)
        if self._said() > OUTPUT_BYTES:
            return endings.OUTPUT.format(OUTPUT_BYTES / 2**20)
        return endings.LEFT if len(family.of(self.process.pid)) > 1 else ""  # the one is the grader

    def _read(self, index: int) -> Verdict | None:
        """The verdict in the grader's file; None where the file is not the grader's."""
        path = self.folder / f"verdict{index}.json"
        try:
            if not path.is_file() or path.stat().st_size > VERDICT_BYTES:
                return None
            told = json.loads(path.read_text(encoding="utf-8"))
            fields = told["verdict"]
            fields["seen"] = tuple(map(tuple, fields["seen"]))
            verdict = Verdict(**fields)
        except (OSError, ValueError, TypeError, KeyError, RecursionError):
            return None
        gates = [gate.name for gate in tasks.find(self.answers[index].task).gates]
        met = [gate for gate, _ in verdict.seen]
        whole = verdict.status != "passed" or met == gates
        ours = told["key"] == self.key and verdict.task == self.answers[index].task
        return verdict if ours and whole else None

    def _wait(self, path: Path, seconds: float) -> str:
        """Waits for the file; returns "" when it is there, otherwise a sentence on why it will not come."""
        begin = self.looked = time.monotonic()
        self.queued = 0.0
        while not path.exists():
            if self.process.poll() is not None:
                return "" if path.exists() else endings.ended(self.process.returncode)
            if time.monotonic() - begin > seconds + min(self.queued, QUEUE_SECONDS):
                return endings.TIME.format(seconds)
            if reason := self._excess():
                return reason
            time.sleep(POLL_SECONDS)
        return ""

    def _excess(self) -> str:
        """A sentence on the limit that is passed, or ""; adds up the time in which the answer waits for a lock."""
        if self._said() > OUTPUT_BYTES:
            return endings.OUTPUT.format(OUTPUT_BYTES / 2**20)
        since, now = self.looked, time.monotonic()
        if now < since + LOOK_SECONDS:
            return ""
        self.looked = now
        processes = family.of(self.process.pid)
        self.queued += (now - since) * family.wait_for_a_lock(processes)
        if len(processes) > PROCESSES:
            return endings.PROCESSES.format(PROCESSES)
        over = family.hold_more_than(MEMORY_BYTES, processes)
        return endings.MEMORY.format(MEMORY_BYTES / 2**30) if over else ""

    def _said(self) -> int:
        """Bytes printed since the last verdict."""
        return os.fstat(self.log.fileno()).st_size - self.printed

    def _end(self) -> None:
        """Ends the grader and all that the answers started; the warden knows them all, unless it was killed itself."""
        self.process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(END_SECONDS)
        self.process.kill()
        self.process.wait()
        family.end(self.mark)
        self.log.close()

    def _failure(self, index: int, sentence: str) -> Verdict:
        task = tasks.find(self.answers[index].task)
        return Verdict(task.id, "failed", task.gates[0].name, sentence)
