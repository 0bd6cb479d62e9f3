"""Measured results as JSON, with the device, the versions and the date they hold for."""

import datetime
import json
import subprocess
from pathlib import Path

from quack_lite import machine

RECORDS = Path(__file__).resolve().parents[2] / "records"
DISTRIBUTIONS = ("torch", "nvidia-cutlass-dsl", "nvidia-cutlass-dsl-libs-cu12", "nvidia-cutlass-dsl-libs-cu13")
DISTRIBUTIONS += ("apache-tvm-ffi", "quack-kernels", "triton")


def circumstances() -> dict:
    """The device, its driver, the versions of what ran, and today's date."""
    import torch

    return {
        "device": torch.cuda.get_device_name(),
        "driver": driver(),
        "versions": versions(),
        "date": datetime.date.today().isoformat(),
    }


def driver() -> str:
    """The NVIDIA driver's version."""
    asked = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.split()[0]


def versions() -> dict[str, str]:
    """{distribution: version} of those that are installed."""
    return {name: version for name in DISTRIBUTIONS if (version := machine.version(name))}


def write(name: str, content: dict) -> Path:
    """Writes records/NAME.json and says where."""
    RECORDS.mkdir(exist_ok=True)
    path = RECORDS / f"{name}.json"
    path.write_text(json.dumps(content, indent=1) + "\n")
    return path


def read(name: str) -> dict:
    """The content of records/NAME.json."""
    return json.loads((RECORDS / f"{name}.json").read_text())
