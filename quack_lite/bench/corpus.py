"""Text that is on every machine with Python: the sources of its standard library, as bytes."""

import hashlib
import platform
import sysconfig
from pathlib import Path

import torch


def text() -> bytes:
    """The modules in the standard library's top folder, by name, one behind the other. ValueError if there are none."""
    folder = Path(sysconfig.get_path("stdlib"))
    content = b"".join(path.read_bytes() for path in sorted(folder.glob("*.py")))
    if not content:
        raise ValueError("this Python has no standard library as files, which is the text to train on: use another")
    return content


def description(content: bytes) -> dict:
    """What a record says of the text; it differs between versions of Python."""
    name = f"standard library of Python {platform.python_version()}, sources of the top folder"
    return {"text": name, "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}


def starts(content: bytes, steps: int, batch: int, length: int, seed: int) -> torch.Tensor:
    """(steps, batch) int64: where the sequences of each step begin, drawn evenly."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(len(content) - length, (steps, batch), generator=generator)


def sequences(content: torch.Tensor, begins: torch.Tensor, length: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Tokens and targets, (batch, length) int64: targets are the tokens one further on.

    content: (bytes) uint8.  begins: (batch) int64 on the same device.
    """
    places = begins[:, None] + torch.arange(length + 1, device=begins.device)
    chosen = content[places].long()
    return chosen[:, :-1], chosen[:, 1:]
