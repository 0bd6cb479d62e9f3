"""The process in which answers run: python -m quack_lite.grading.grader FOLDER (see warden.py, which starts it).

FOLDER/jobs.json lists the answers. `ready` appears when the imports are done, then verdict0.json, verdict1.json ...
with the key that stands on standard input: by it spawn.py knows a verdict from a file that an answer wrote.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import json
import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from quack_lite import machine
from quack_lite.grading import seal, tasks
from quack_lite.grading.feedback import Verdict
from quack_lite.grading.judge import explain, judge
from quack_lite.grading.task import Task
from quack_lite.loading import load


def main(folder: Path, key: str) -> None:
    """Grades every job of the folder; stops early when an answer has made this process useless for the next."""
    jobs = json.loads((folder / "jobs.json").read_text(encoding="utf-8"))
    here = machine.places()
    if any(tasks.find(job["task"]).kind == "K" for job in jobs):
        _warm_up(here)
        if here["compiler"]:
            for prepare in {tasks.find(job["task"]).prepare for job in jobs} - {None}:
                prepare()
    myself, threads, broken = os.getpid(), threading.active_count(), seal.taken()
    (folder / "ready").touch()
    for index, job in enumerate(jobs):
        verdict = _judge(tasks.find(job["task"]), folder / job["file"], here, broken)
        if os.getpid() != myself:
            os._exit(0)  # a fork that the answer made of us
        with contextlib.suppress(ValueError):  # where the answer closed it
            sys.stdout.flush()
        part = folder / f"verdict{index}.part"
        part.write_text(json.dumps({"key": key, "verdict": dataclasses.asdict(verdict)}), encoding="utf-8")
        part.rename(part.with_suffix(".json"))
        if broken() or threading.active_count() > threads or here["gpu"] and not _gpu_lives():
            return
    signal.pause()  # whoever started us looks at what the last answer left, and ends us


def _judge(task: Task, path: Path, here: dict[str, bool], broken: Callable[[], str]) -> Verdict:
    """The verdict, unless the answer replaced something that it rests on."""
    gate = task.gates[0].name
    verdict = _grade(task, path, here)
    if task.forget and path.stem in sys.modules:
        task.forget(sys.modules[path.stem])
    replaced = broken()
    if not replaced:
        return verdict
    sentence = f"your code replaced {replaced}, which the grader relies on: give what you write a name of its own"
    return Verdict(task.id, "failed", gate, sentence)


def _warm_up(here: dict[str, bool]) -> None:
    """Does what takes seconds and is not the answer's doing."""
    if here["compiler"]:
        importlib.import_module("cutlass.cute")
        importlib.import_module("quack_lite.launch")
    if here["gpu"]:
        import torch

        torch.zeros(1, device="cuda")
        importlib.import_module("quack_lite.bench").ceilings()


def _grade(task: Task, path: Path, here: dict[str, bool]) -> Verdict:
    if task.kind == "K" and not here["compiler"]:
        return judge(task, None, here)
    try:
        answer = load(path.stem, path).answer  # a kernel's source must stand in a file for the compiler to read it
    except BaseException as error:
        sentence = explain(error, str(path))
        if isinstance(error, NameError | ImportError):
            sentence += "; the cells must run on their own: restart the kernel and run them all"
        return Verdict(task.id, "failed", task.gates[0].name, sentence)
    return judge(task, answer, here, str(path))


def _gpu_lives() -> bool:
    """Whether this process can still use the GPU: an illegal access ends that for good."""
    torch = sys.modules.get("torch")
    if torch is None:
        return True
    try:
        torch.cuda.synchronize()
    except RuntimeError:
        return False
    return True


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.stdin.readline().strip())
    os._exit(0)  # after an illegal access the ordinary way out can fail or hang
