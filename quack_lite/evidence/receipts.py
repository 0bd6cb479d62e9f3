"""Receipts: one JSON file a kernel, what was seen of it on a GPU, and whether it still holds.

records/unverified.json names the kernels, with their digests, that no run of `quack-lite verify` has reached yet; it
goes shorter as receipts are written, and a kernel that changes is not covered by it.
"""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

import quack_lite

ROOT = Path(quack_lite.__file__).parents[1]
FOLDER = ROOT / "records" / "receipts"
UNVERIFIED = ROOT / "records" / "unverified.json"


def read(name: str, folder: Path = FOLDER) -> dict | None:
    """The receipt of the kernel of this name, None without one."""
    path = folder / f"{name}.json"
    return json.loads(path.read_text()) if path.is_file() else None


def write(receipt: dict, folder: Path = FOLDER) -> None:
    """Writes a receipt under the name of its kernel; an older one is replaced as a whole."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{receipt['kernel']}.json"
    replace(path, receipt)


def replace(path: Path, content: dict) -> None:
    """Writes a JSON file as a whole."""
    unfinished = path.with_suffix(".new")
    unfinished.write_text(json.dumps(content, indent=1) + "\n")
    unfinished.replace(path)


def unverified(path: Path = UNVERIFIED) -> dict[str, dict]:
    """{name: digests} of the kernels that wait for a GPU."""
    return json.loads(path.read_text()) if path.is_file() else {}


def no_longer_unverified(names: Iterable[str], path: Path = UNVERIFIED) -> None:
    """Takes kernels off the list of those that wait; the file goes with the last one."""
    left = {name: digests for name, digests in unverified(path).items() if name not in set(names)}
    if left:
        replace(path, left)
    else:
        path.unlink(missing_ok=True)


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


def faults(digests: dict[str, dict], folder: Path = FOLDER, path: Path = UNVERIFIED) -> list[str]:
    """One sentence for each kernel of {name: digests} that no receipt holds for, and that is not known to wait."""
    waiting = unverified(path)
    reasons = {name: lacks(name, found, folder) for name, found in digests.items() if waiting.get(name) != found}
    return [f"{name} {reason}: `make verify` on one" for name, reason in reasons.items() if reason]


def flavours(folder: Path = FOLDER) -> set[str]:
    """The flavours of the DSL that the receipts were written with."""
    return {json.loads(path.read_text())["versions"]["flavour"] for path in folder.glob("*.json")}
