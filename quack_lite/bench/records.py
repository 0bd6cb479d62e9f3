"""Measured results as JSON, with the device, the versions and the date they hold for."""

import datetime
import hashlib
import json
import subprocess
from pathlib import Path

from quack_lite import machine
from quack_lite.ratios import RECORDS

PACKAGE = Path(__file__).resolve().parents[1]
DISTRIBUTIONS = ("torch", "nvidia-cutlass-dsl", "nvidia-cutlass-dsl-libs-cu12", "nvidia-cutlass-dsl-libs-cu13")
DISTRIBUTIONS += ("apache-tvm-ffi", "quack-kernels", "liger-kernel", "triton")
# What a measured time depends on: a record made from other files is out of date.
MEASURED = ("functional.py", "checks.py", "ops/*.py", "rows.py", "catalog.py", "kernels/*.py", "launch.py", "copies.py")
MEASURED += ("grid.py", "staged.py", "turns.py", "reductions.py", "tiling.py")
MEASURED += ("bench/cases.py", "bench/check.py", "bench/protocol.py", "bench/worker.py")
MEASURED += ("bench/peers.py", "bench/quack_kernels.py", "bench/liger_kernel.py")


def circumstances() -> dict:
    """The device, its driver, the versions of what ran, today's date, and the files that it ran from."""
    import torch

    return {
        "device": torch.cuda.get_device_name(),
        "driver": driver(),
        "versions": versions(),
        "date": datetime.date.today().isoformat(),
        "source": source(),
    }


def driver() -> str:
    """The NVIDIA driver's version."""
    asked = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.split()[0]


def versions() -> dict[str, str]:
    """{distribution: version} of those that are installed."""
    return {name: version for name in DISTRIBUTIONS if (version := machine.version(name))}


def source() -> str:
    """SHA-256 of the files that a measured time depends on."""
    digest = hashlib.sha256()
    for path in sorted(path for pattern in MEASURED for path in PACKAGE.glob(pattern) if path.is_file()):
        digest.update(path.relative_to(PACKAGE).as_posix().encode() + path.read_bytes())
    return digest.hexdigest()


def holds(name: str) -> bool:
    """Whether records/NAME.json was made from the files as they are."""
    return (RECORDS / f"{name}.json").exists() and read(name).get("source") == source()


def write(name: str, content: dict) -> Path:
    """Writes records/NAME.json, whole or not at all, and says where."""
    RECORDS.mkdir(exist_ok=True)
    path = RECORDS / f"{name}.json"
    part = path.with_suffix(".part")
    part.write_text(json.dumps(content, indent=1) + "\n")
    part.replace(path)
    return path


def read(name: str) -> dict:
    """The content of records/NAME.json."""
    return json.loads((RECORDS / f"{name}.json").read_text())
