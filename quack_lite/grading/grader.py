"""The process in which answers run: python -m quack_lite.grading.grader FOLDER (see spawn.py, which starts it).

FOLDER/jobs.json lists the answers. `ready` appears when the imports are done, then verdict0.json, verdict1.json ...
"""

from __future__ import annotations

import dataclasses
import importlib
import importlib.util
import json
import os
import sys
from pathlib import Path
from types import ModuleType

from quack_lite import machine
from quack_lite.grading import tasks
from quack_lite.grading.feedback import Verdict
from quack_lite.grading.judge import explain, judge
from quack_lite.grading.task import Task


def main(folder: Path) -> None:
    """Grades every job of the folder; stops early when a GPU error has made this process useless."""
    jobs = json.loads((folder / "jobs.json").read_text(encoding="utf-8"))
    here = machine.places()
    if any(tasks.find(job["task"]).kind == "K" for job in jobs):
        _warm_up(here)
    (folder / "ready").touch()
    for index, job in enumerate(jobs):
        verdict = _grade(tasks.find(job["task"]), folder / job["file"], here)
        part = folder / f"verdict{index}.part"
        part.write_text(json.dumps(dataclasses.asdict(verdict)), encoding="utf-8")
        part.rename(part.with_suffix(".json"))
        if here["gpu"] and not _gpu_lives():
            break


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
        answer = _load(path).answer
    except Exception as error:
        sentence = f"{explain(error, str(path))}; the cells must run on their own: restart the kernel and run them all"
        return Verdict(task.id, "failed", task.gates[0].name, sentence)
    return judge(task, answer, here, str(path))


def _load(path: Path) -> ModuleType:
    """The answer's file as a module: a kernel's source must stand in a file for the compiler to read it."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


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
    main(Path(sys.argv[1]))
    sys.stdout.flush()
    os._exit(0)  # after an illegal access the ordinary way out can fail or hang
