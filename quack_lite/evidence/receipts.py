"""Receipts: one JSON file a kernel, what was seen of it on a GPU, and whether it still holds."""

import json
from collections.abc import Sequence
from pathlib import Path

import quack_lite

ROOT = Path(quack_lite.__file__).parents[1]
FOLDER = ROOT / "records" / "receipts"


def read(name: str, folder: Path = FOLDER) -> dict | None:
    """The receipt of the kernel of this name, None without one."""
    path = folder / f"{name}.json"
    return json.loads(path.read_text()) if path.is_file() else None


def write(receipt: dict, folder: Path = FOLDER) -> None:
    """Writes a receipt under the name of its kernel; an older one is replaced as a whole."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{receipt['kernel']}.json"
    unfinished = path.with_suffix(".new")
    unfinished.write_text(json.dumps(receipt, indent=1) + "\n")
    unfinished.replace(path)


def remove(name: str, folder: Path = FOLDER) -> None:
    """Removes the receipt of the kernel of this name, if there is one."""
    (folder / f"{name}.json").unlink(missing_ok=True)


def lacks(name: str, digests: dict[str, str], folder: Path = FOLDER) -> str:
    """Why no receipt holds for a kernel with these digests; empty if one does."""
    receipt = read(name, folder)
    if receipt is None:
        return "never ran on a GPU"
    changed = [part for part in digests if receipt["digests"][part] != digests[part]]
    return f"changed since it last ran on a GPU (its {' and '.join(changed)})" if changed else ""


def unwatched(name: str, tools: Sequence[str], folder: Path = FOLDER) -> list[str]:
    """Those of the sanitizer's tools that a kernel's receipt has nothing of."""
    receipt = read(name, folder) or {"tools": {}}
    return [tool for tool in tools if tool not in receipt["tools"]]


def faults(digests: dict[str, dict], folder: Path = FOLDER) -> list[str]:
    """One sentence for each kernel of {name: digests} that no receipt holds for."""
    reasons = {name: lacks(name, found, folder) for name, found in digests.items()}
    return [f"{name} {reason}: `make verify` on one" for name, reason in reasons.items() if reason]


def flavours(folder: Path = FOLDER) -> set[str]:
    """The flavours of the DSL that the receipts were written with."""
    return {json.loads(path.read_text())["versions"]["flavour"] for path in folder.glob("*.json")}
