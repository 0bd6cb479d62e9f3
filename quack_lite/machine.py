"""What this machine has: the places Model, Compiler and GPU, whether the GPU is a Hopper, and what is installed.

Nothing here raises, and torch is imported only where a GPU's driver answers.
"""

import ctypes
import functools
import importlib.metadata
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

OLDEST_CAPABILITY = (8, 0)
HOPPER = 9
SMI_SECONDS = 5
TOOLS = ("ncu", "nsys", "compute-sanitizer", "cuobjdump", "nvdisasm")
# Where CUDA and the profilers' own packages put a tool.
INSTALLED = ("usr/local/cuda*/bin", "opt/nvidia/nsight-compute/*", "opt/nvidia/nsight-systems/*/bin")


def places() -> dict[str, bool]:
    """Which of the places "model", "compiler", "gpu" and "hopper" this machine has."""
    return {place: not reason for place, reason in _reasons().items()}


def reasons(place: str) -> str:
    """One sentence on why this machine lacks `place`; empty where it has it. Unknown places raise ValueError."""
    found = _reasons()
    if place not in found:
        raise ValueError(f"place is {place!r}; there are {', '.join(found)}.")
    return found[place]


@functools.cache
def _reasons() -> dict[str, str]:
    compiler = _why_no_compiler()
    gpu = compiler or _why_no_gpu()
    return {"model": "", "compiler": compiler, "gpu": gpu, "hopper": gpu or _why_no_hopper()}


def has_module(name: str) -> bool:
    """Whether a top-level module is installed, found out without importing it."""
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False


@functools.cache
def version(distribution: str) -> str | None:
    """The version of an installed distribution, None without it."""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def has_dsl() -> bool:
    """Whether nvidia-cutlass-dsl is installed (another package of NVIDIA's has a module cutlass without cute)."""
    if not has_module("cutlass"):
        return False
    folders = importlib.util.find_spec("cutlass").submodule_search_locations or []
    return any((Path(folder) / "cute").is_dir() for folder in folders)


def nvidia_smi(query: str, *options: str) -> list[str]:
    """The lines that nvidia-smi answers a query with, as --query-gpu=name; none where it does not answer."""
    command = ["nvidia-smi", *options, query, "--format=csv,noheader"]
    try:
        told = subprocess.run(command, capture_output=True, text=True, timeout=SMI_SECONDS)
    except (OSError, subprocess.SubprocessError):
        return []
    return [line.strip() for line in told.stdout.splitlines() if line.strip()] if told.returncode == 0 else []


def tool(name: str, root: Path = Path("/")) -> str | None:
    """One of NVIDIA's tools: on the path, from a wheel of requirements-tools.txt, or where CUDA is; None without it."""
    spec = importlib.util.find_spec("nvidia")
    wheels = [path for folder in (spec.submodule_search_locations if spec else []) for path in _in_wheel(folder, name)]
    installed = [path for where in INSTALLED for path in sorted(root.glob(f"{where}/{name}"), reverse=True)]
    usable = (str(path) for path in (*wheels, *installed) if os.access(path, os.X_OK))
    return shutil.which(name) or next(usable, None)


def _in_wheel(folder: str, name: str) -> list[Path]:
    return [path for where in ("bin", name) for path in Path(folder).glob(f"*/{where}/{name}")]


def _why_no_compiler() -> str:
    if not sys.platform.startswith("linux"):
        return f"nvidia-cutlass-dsl runs on Linux, and this is {sys.platform}."
    if not has_module("torch"):
        return "torch is not installed."
    if not has_dsl():
        return "nvidia-cutlass-dsl is not installed."
    if not has_module("tvm_ffi"):
        return "apache-tvm-ffi is not installed."
    return ""


def _why_no_gpu() -> str:
    if driver_cuda() is None:
        return "no NVIDIA driver answers here."
    if not driver_devices():
        return "the NVIDIA driver shows no GPU."
    try:
        import torch

        if not torch.cuda.is_available():
            return f"torch {torch.__version__} cannot use the GPU (quack-lite doctor says why)."
        capability = torch.cuda.get_device_capability()
    except Exception as error:
        return f"torch fails on the GPU: {error}"
    if capability < OLDEST_CAPABILITY:
        return f"the GPU has compute capability {_dotted(capability)}; 8.0 (Ampere) is the oldest that works."
    return ""


def _why_no_hopper() -> str:
    import torch

    capability = torch.cuda.get_device_capability()
    if capability[0] == HOPPER:
        return ""
    return f"{torch.cuda.get_device_name()} is not a Hopper GPU (compute capability {_dotted(capability)}, not 9.0)."


def _dotted(capability: tuple[int, int]) -> str:
    return f"{capability[0]}.{capability[1]}"


@functools.cache
def _driver():
    try:
        return ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None


def driver_cuda() -> tuple[int, int] | None:
    """The newest CUDA version (major, minor) that the installed driver can run; None without a driver."""
    version = ctypes.c_int(0)
    if _driver() is None or _driver().cuDriverGetVersion(ctypes.byref(version)) != 0:
        return None
    return version.value // 1000, version.value % 1000 // 10


def driver_devices() -> int:
    """How many GPUs the driver shows to this process (CUDA_VISIBLE_DEVICES counts)."""
    count = ctypes.c_int(0)
    if _driver() is None or _driver().cuInit(0) != 0 or _driver().cuDeviceGetCount(ctypes.byref(count)) != 0:
        return 0
    return count.value
