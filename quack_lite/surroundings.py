"""What stands round the course on this machine: system, disk, environment, the GPU's memory and parts, NVIDIA's tools.

Each function returns (state, found) or (state, found, what to do), as a line of quack_lite.doctor has it.
"""

import os
import platform
import shutil
import sys
from pathlib import Path

from quack_lite import machine

ROOT = Path(__file__).resolve().parents[1]
GIB = 2**30
LEAST_DISK = 1  # GiB: notebooks with their outputs, and what compilers leave in the temporary folder
LEAST_GPU = 4  # GiB: the largest tensors of lesson 00, twice 1.2 GB, and the ceilings' 3 GiB
PARAMETERS = Path("/proc/driver/nvidia/params")
STATUS = Path("/proc/self/status")
CAP_SYS_ADMIN = 21  # linux/capability.h


def name_of_system() -> str:
    """As "Debian GNU/Linux 12 (bookworm), x86_64"."""
    try:
        name = platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        name = f"{platform.system()} {platform.release()}"
    return f"{name}, {platform.machine()}"


def disk() -> tuple[str, ...]:
    """Room in the course's folder, and whether it can be written to."""
    if not os.access(ROOT, os.W_OK):
        return "wrong", f"{ROOT} cannot be written to", "Clone the course to a folder of your own: work/ is made in it."
    free = shutil.disk_usage(ROOT).free / GIB
    found = f"{free:.1f} GiB free in {ROOT}"
    if free < LEAST_DISK:
        return "wrong", found, f"Make room: {LEAST_DISK} GiB at least, for notebooks and what is compiled."
    return "ok", found


def environment() -> tuple[str, ...]:
    """Which environment this Python belongs to, and whether it is the one that make sets up."""
    there = ROOT / ".venv"
    if Path(sys.prefix) == there:
        return "ok", "the course's .venv"
    if sys.prefix != sys.base_prefix:
        found = f"another venv, {sys.prefix}"
    elif conda := os.environ.get("CONDA_PREFIX"):
        found = f"conda, {conda}"
    else:
        found = f"none, the Python of {sys.prefix}"
    return ("ok", found, "make set up .venv too: .venv/bin/quack-lite runs in it.") if there.exists() else ("ok", found)


def parts_of_gpu() -> tuple[str, ...]:
    """Whether the GPU is cut into instances (MIG), and which of them this process has."""
    if not machine.driver_devices():
        return "absent", "no GPU"
    modes = machine.nvidia_smi("--query-gpu=mig.mode.current")
    if not modes:
        return "absent", "nvidia-smi does not answer: unknown"
    if "Enabled" not in modes:
        return "ok", "MIG is off"
    todo = "The ceilings are those of its instance: compare speeds with no other machine's."
    return "ok", f"MIG is on; this process has {_instance()}", todo


def _instance() -> str:
    if not machine.places()["gpu"]:
        return "no instance that works"
    import torch

    properties = torch.cuda.get_device_properties()
    return f"{properties.name}: {properties.multi_processor_count} SMs, {properties.total_memory / GIB:.0f} GiB"


def memory_of_gpu() -> tuple[str, ...]:
    """How much of the GPU's memory is free."""
    if not machine.places()["gpu"]:
        return "absent", "no GPU that works"
    import torch

    free, total = (size / GIB for size in torch.cuda.mem_get_info())
    found = f"{free:.1f} of {total:.1f} GiB free"
    if free < LEAST_GPU:
        todo = f"The lessons need {LEAST_GPU} GiB: nvidia-smi names who holds it; close notebooks left open."
        return "wrong", found, todo
    return "ok", found


def tools() -> tuple[str, ...]:
    """Which of NVIDIA's tools are there: profilers, compute-sanitizer, disassemblers."""
    places = {name: machine.tool(name) for name in machine.TOOLS}
    missing = [name for name, place in places.items() if place is None]
    found = ", ".join(name for name, place in places.items() if place) or "none"
    if not missing:
        return "ok", found
    wheels = "pip install -r requirements-tools.txt has all but ncu and nsys; those come with CUDA."
    return "absent", f"{found}; not found: {', '.join(missing)}", f"Only if you want them: {wheels}"


def counters() -> tuple[str, ...]:
    """Whether the driver lets this user read the GPU's counters, which ncu needs."""
    if not machine.driver_devices():
        return "absent", "no GPU"
    try:
        settings = dict(line.split(": ", 1) for line in PARAMETERS.read_text().splitlines() if ": " in line)
        only_admin = settings["RmProfilingAdminOnly"].strip() == "1"
    except (OSError, KeyError):
        return "absent", f"unknown: {PARAMETERS} does not say"
    if not only_admin:
        return "ok", "everybody may read them"
    if _is_admin():
        return "ok", "for administrators, and this process is one"
    todo = (
        "Only ncu needs them. Load the driver with NVreg_RestrictProfilingToAdminUsers=0, or start the container "
        "with --cap-add=SYS_ADMIN; a cloud that does neither has no counters."
    )
    return "absent", "for administrators, and this process is none (ERR_NVGPUCTRPERM)", todo


def _is_admin() -> bool:
    """CAP_SYS_ADMIN, which root in a container usually lacks."""
    try:
        lines = STATUS.read_text().splitlines()
        held = next(int(line.split()[1], 16) for line in lines if line.startswith("CapEff:"))
    except (OSError, StopIteration, ValueError):
        return False
    return bool(held >> CAP_SYS_ADMIN & 1)
