"""quack-lite doctor: what this machine can do, a line each, and what to do about each line that is not right."""

import json as json_module
import platform
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass

from quack_lite import machine, surroundings

PYTHONS = ((3, 11), (3, 13))
GLIBC = (2, 28)
FLAVOUR = "cu12"
_version = machine.version


@dataclass(frozen=True)
class Line:
    """One finding. `state` is "ok", "absent" (this place cannot have it; nothing is broken) or "wrong"."""

    name: str
    state: str
    found: str
    todo: str = ""


def run(json: bool = False) -> int:
    """Print the findings as a table, or as JSON; 0 if everything works that this machine can have, else 1."""
    return tell(lines(), json)


def tell(found: list[Line], json: bool) -> int:
    """Print these findings as a table, or as JSON; 0 if none of them is wrong, else 1."""
    wrong = any(line.state == "wrong" for line in found)
    if json:
        print(
            json_module.dumps(
                {"ok": not wrong, "places": machine.places(), "lines": [asdict(x) for x in found]}, indent=2
            )
        )
    else:
        _print_table(found)
    return int(wrong)


def lines() -> list[Line]:
    """All findings, in the order in which they are worth mending."""
    found = [safely(name, look) for name, look in _LOOKS.items()]
    if machine.places()["gpu"]:
        found += _measured()
    return found


def safely(name: str, look: Callable[[], tuple[str, ...]]) -> Line:
    """What `look` finds (state, found, and what to do); a look that raises is a finding too."""
    try:
        return Line(name, *look())
    except Exception as error:
        return Line(name, "wrong", _one_line(error), "Mend the lines above; if they are right, file a bug.")


def _one_line(error: Exception) -> str:
    text = " ".join(str(error).split()) or "no message"
    return f"{type(error).__name__}: {text[:200]}"


# Each look returns (state, found) or (state, found, todo).


def _python():
    version = sys.version_info[:2]
    if PYTHONS[0] <= version <= PYTHONS[1]:
        return "ok", f"{platform.python_version()} in {sys.prefix}"
    return "wrong", platform.python_version(), "Install Python 3.11, 3.12 or 3.13, remove .venv, and make lab again."


def _system():
    system = surroundings.name_of_system()
    if platform.system() != "Linux":
        return "absent", system, "The Model works here. For Compiler and GPU, take a Linux machine."
    library, version = platform.libc_ver()
    if library != "glibc":
        return "absent", f"{system}, not glibc", "NVIDIA's wheels need glibc 2.28 or newer: take Debian or Ubuntu."
    if tuple(map(int, version.split(".")[:2])) < GLIBC:
        return "wrong", f"{system}, glibc {version}", "NVIDIA's wheels need glibc 2.28 or newer: take a newer system."
    return "ok", f"{system}, glibc {version}"


def _torch():
    version = _version("torch")
    if version is None:
        return "absent", "not installed", "The Model works without it. For the rest: make lab."
    import torch

    if torch.version.cuda is None and machine.driver_devices():
        public = version.split("+")[0]
        return (
            "wrong",
            f"{version}, built without CUDA, and there is a GPU",
            f"pip uninstall -y torch; pip install torch=={public}",
        )
    return "ok", f"{version}, " + (f"CUDA {torch.version.cuda}" if torch.version.cuda else "CPU only")


def _driver():
    newest = machine.driver_cuda()
    if newest is None:
        return "absent", "no NVIDIA driver", "Model and Compiler need none; kernel tasks are parked."
    runs = f"runs CUDA up to {newest[0]}.{newest[1]}"
    if _version("torch") is None:
        return "ok", runs
    import torch

    if torch.version.cuda and int(torch.version.cuda.split(".")[0]) > newest[0]:
        return (
            "wrong",
            f"{runs}; torch was built for {torch.version.cuda}",
            f"Update the driver, or install a torch built for CUDA {newest[0]} (pytorch.org, Get Started).",
        )
    return "ok", runs


def _gpu():
    if not machine.driver_devices():
        return "absent", "none", "Model and Compiler work without. The README says how to rent a Hopper GPU."
    if _version("torch") is None:
        return "absent", "there is one, and no torch to use it", "make lab installs torch."
    import torch

    if not torch.cuda.is_available():
        return "wrong", "the driver shows a GPU, torch does not", "Mend the lines torch and driver."
    capability = torch.cuda.get_device_capability()
    name = f"{torch.cuda.get_device_name()}, compute capability {capability[0]}.{capability[1]}"
    return "ok", *_judge_gpu(name, capability)


def _judge_gpu(name: str, capability: tuple[int, int]) -> tuple[str, str]:
    if capability[0] == machine.HOPPER:
        return name, ""
    if capability < machine.OLDEST_CAPABILITY:
        return name, "Too old for the GPU cells: Ampere (8.0) is the oldest. Model and Compiler work."
    return name, (
        "Not a Hopper. Parts A and B are written for Ampere and newer and were tried on Hopper only; "
        "cells tagged hopper (part C) do not run."
    )


def _dsl():
    version = _version("nvidia-cutlass-dsl")
    if version is None or not machine.has_dsl():
        return "absent", "not installed", "The Model works without it. For the rest, on Linux: make lab."
    pinned = _pinned("nvidia-cutlass-dsl")
    if pinned and version != pinned:
        return "wrong", f"{version}; the course was tried with {pinned}", f"pip install nvidia-cutlass-dsl=={pinned}"
    return "ok", version


def _flavour():
    there = [cuda for cuda in ("cu12", "cu13") if _version(f"nvidia-cutlass-dsl-libs-{cuda}")]
    if _version("nvidia-cutlass-dsl") is None:
        return "absent", "none"
    if there == [FLAVOUR]:
        return "ok", FLAVOUR
    if not there:
        return (
            "wrong",
            "neither cu12 nor cu13",
            "pip install nvidia-cutlass-dsl-libs-cu12=={}".format(_version("nvidia-cutlass-dsl")),
        )
    if len(there) == 2:
        return (
            "ok",
            "cu12 and cu13: the DSL takes the newest that the driver runs",
            "To compare with the receipts: pip uninstall nvidia-cutlass-dsl-libs-cu13",
        )
    return "ok", "cu13", "Kernels work. The receipts are cu12's, so the test that compares them is skipped."


def _tvm_ffi():
    version = _version("apache-tvm-ffi")
    if version is None:
        return "absent", "not installed", "The Model works without it. For the rest, on Linux: make lab."
    return "ok", version


def _compiler_works():
    if not machine.places()["compiler"]:
        return "absent", machine.reasons("compiler"), "The Model works. Kernel tasks are parked."
    from quack_lite import catalog, launch

    built = catalog.compile_kernel(catalog.listed()[0])
    return "ok", f"compiled a copy for {launch.architecture()}: {built.facts.registers} registers a thread"


def _gpu_works():
    if not machine.places()["gpu"]:
        return "absent", machine.reasons("gpu"), "Kernel tasks are parked."
    import torch

    import quack_lite

    given = torch.arange(1000, device="cuda", dtype=torch.float32).view(8, 125)
    if not torch.equal(quack_lite.copy(given), given):
        return "wrong", "quack_lite.copy ran and its values are wrong", "Run make verify, and file this as a bug."
    return "ok", "launched a copy, its values are right"


_LOOKS = {
    "Python": _python,
    "environment": surroundings.environment,
    "system": _system,
    "disk": surroundings.disk,
    "torch": _torch,
    "driver": _driver,
    "GPU": _gpu,
    "MIG": surroundings.parts_of_gpu,
    "GPU's memory": surroundings.memory_of_gpu,
    "DSL": _dsl,
    "DSL's CUDA": _flavour,
    "apache-tvm-ffi": _tvm_ffi,
    "Compiler works": _compiler_works,
    "GPU works": _gpu_works,
    "NVIDIA's tools": surroundings.tools,
    "counters": surroundings.counters,
}


def _measured() -> list[Line]:
    try:
        from quack_lite import bench

        ceilings = bench.ceilings()
    except Exception as error:
        return [Line("ceilings", "wrong", _one_line(error), "Is another process busy on this GPU? Try again.")]
    rates = [Line(name, "ok", f"{getattr(ceilings, name):.0f} GB/s") for name in ("read", "write", "copy")]
    return [*rates, Line("DRAM latency", "ok", f"{ceilings.latency:.0f} ns")]


def _pinned(name: str) -> str | None:
    """The version that requirements.txt pins; None where the course is not run from its clone."""
    from quack_lite.desk import ROOT

    try:
        text = (ROOT / "requirements.txt").read_text()
    except OSError:
        return None
    pins = [line.split(";")[0].strip() for line in text.splitlines()]
    return next((pin.removeprefix(f"{name}==") for pin in pins if pin.startswith(f"{name}==")), None)


def _print_table(found: list[Line]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False)
    for column in ("", "", "found", "what to do"):
        table.add_column(column, overflow="fold")
    marks = {"ok": "[green]ok[/]", "absent": "[yellow]-[/]", "wrong": "[red]wrong[/]"}
    for line in found:
        table.add_row(line.name, marks[line.state], Text(line.found), Text(line.todo))
    console = Console(highlight=False)
    console.print(table)
    have = [
        name
        for name, place in (("Model", "model"), ("Compiler", "compiler"), ("GPU", "gpu"))
        if machine.places()[place]
    ]
    console.print(f"This machine has: {', '.join(have)}.")
