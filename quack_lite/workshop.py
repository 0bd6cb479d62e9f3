"""quack-lite doctor --workshop: what thirty people need that one does not, looked at on the day before."""

from __future__ import annotations

import importlib.metadata
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from quack_lite import doctor, machine
from quack_lite.doctor import Line
from quack_lite.grading import names

ROOT = Path(__file__).resolve().parents[1]
PEOPLE = 30
NUMBERS = ("00", "01", "02", "05", "08", "09", "10")  # of the lessons that the syllabi of WORKSHOP.md name
GIB = 2**30
DISK = 5 * GIB
MEMORY = 1.5 * GIB  # a rule of thumb: a person's notebook and grader, both with torch and the DSL
GPU_MEMORY = 6 * GIB  # lesson 01 takes 4 GB where they are free, and each process has a context beside
SLOW_SECONDS = 15.0
PIN = re.compile(r"([\w.-]+)==([^\s;]+)")
GPU_FIELDS = "index,name,memory.free,mig.mode.current,compute_mode"


def run(people: int = PEOPLE, json: bool = False, root: Path = ROOT) -> int:
    """Prints what doctor finds and what so many people need, as a table or as JSON; 0 if all is well, else 1.

    ValueError for fewer than one person.
    """
    if people < 1:
        raise ValueError(f"--workshop {people}: give how many people come, 1 or more")
    return doctor.tell([*doctor.lines(), *lines(people, root)], json)


def lines(people: int, root: Path = ROOT) -> list[Line]:
    """What a workshop needs beside what doctor looks at."""
    looks = {
        "lessons": lambda: _lessons(root),
        "solutions": lambda: _solutions(root),
        "versions": lambda: _versions(root),
        "disk": lambda: _disk(root),
        "memory": lambda: _memory(people),
        "grader": lambda: _grader(root),
    }
    return [doctor.safely(name, look) for name, look in looks.items()] + gpus(people, _nvidia_smi)


def _lessons(root: Path):
    missing = [
        f"{folder}/{number}"
        for folder in ("notebooks", "exercises")
        for number in NUMBERS
        if not any(names.number(path) == number for path in names.exercises(root / folder))
    ]
    if missing:
        return "wrong", f"not here: {', '.join(missing)}", "git pull, or git checkout notebooks exercises."
    return "ok", "all that the syllabi name, with their exercises"


def _solutions(root: Path):
    if names.exercises(root / "solutions"):
        return "ok", "in this copy", "For a copy without them: make student-release."
    return "ok", "not in this copy"


def _versions(root: Path):
    wanted = {}
    for name in ("requirements-lite.txt", "requirements.txt"):
        wanted |= dict(PIN.findall((root / name).read_text(encoding="utf-8")))
    if sys.platform != "linux":
        wanted = {name: version for name, version in wanted.items() if not name.startswith(("nvidia", "apache"))}
    others = [
        f"{name} {there or 'missing'} (not {version})"
        for name, version in wanted.items()
        if (there := _installed(name)) != version
    ]
    if others:
        return "wrong", "; ".join(others), "make lab in this clone sets up the versions that the course was tried with."
    return "ok", f"all {len(wanted)} are those of the requirements files"


def _installed(name: str) -> str:
    try:
        return importlib.metadata.version(name).split("+")[0]
    except importlib.metadata.PackageNotFoundError:
        return ""


def _disk(root: Path):
    free = {str(place): shutil.disk_usage(place).free for place in (root, Path(tempfile.gettempdir()))}
    found = ", ".join(f"{size / GIB:.0f} GiB free at {place}" for place, size in free.items())
    if min(free.values()) < DISK:
        return "wrong", found, f"Have {DISK // GIB} GiB free at each: graders write there."
    return "ok", found


def _memory(people: int):
    import psutil

    each = psutil.virtual_memory().available / people
    found = f"{each / GIB:.1f} GiB free and {psutil.cpu_count() / people:.1f} CPUs for each of {people}"
    if each < MEMORY:
        return "wrong", found, f"Count {MEMORY / GIB:g} GiB a person: another machine beside, or two people at a seat."
    return "ok", found


def _grader(root: Path):
    from quack_lite.grading import notebook, spawn

    [exercise, *_] = names.exercises(root / "exercises")
    began = time.monotonic()
    [verdict, *_] = spawn.grade(notebook.answers(exercise))
    seconds = time.monotonic() - began
    if verdict.begun:
        return "wrong", f"of a stub it said: {verdict.sentence or verdict.status}", "Mend the lines above."
    found = f"graded the stubs of {exercise.stem} in {seconds:.1f} s"
    if seconds > SLOW_SECONDS:
        return "wrong", found, "Slow even for one: is the disk a network's? Put the clone and .venv on a local one."
    return "ok", found


def gpus(people: int, ask: Callable[[], list[str]]) -> list[Line]:
    """A line for each GPU that nvidia-smi shows, with its part of the people. ask: nvidia-smi's lines of GPU_FIELDS."""
    told = [[field.strip() for field in line.split(",")] for line in ask()]
    if not told:
        absent = "Kernel tasks are parked; the 2 hours of the syllabus work all the same."
        return [Line("GPUs", "absent", "none that nvidia-smi shows", absent)]
    seats = -(-people // len(told))
    return [Line(f"GPU {index}", *_gpu(seats, *fields)) for index, *fields in told]


def _gpu(seats: int, name: str, free: str, mig: str, mode: str):
    found = f"{name}, {free} free, for {seats} people; MIG {mig.lower()}"
    if mode != "Default":
        todo = "nvidia-smi -c DEFAULT (as root): in this mode one notebook keeps all others out."
        return "wrong", f"{found}; {mode}", todo
    mib = float(free.split()[0]) if free[:1].isdigit() else 0.0
    if mib * 2**20 < GPU_MEMORY * seats and mig != "Enabled":
        return (
            "wrong",
            found,
            f"Count {GPU_MEMORY / GIB:g} GiB a person; lesson 01 in turns, release() after each lesson.",
        )
    if mig == "Enabled":
        return "ok", found, "Give each seat one instance by CUDA_VISIBLE_DEVICES; WORKSHOP.md says what that changes."
    return "ok", found


def _nvidia_smi() -> list[str]:
    if not machine.driver_devices():
        return []
    lines = machine.nvidia_smi(f"--query-gpu={GPU_FIELDS}")
    return [line for line in lines if line.count(",") == GPU_FIELDS.count(",")]
