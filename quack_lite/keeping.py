"""A learner's files: each is written whole or not at all, and none is replaced before it is kept aside.

A process may be killed at any moment: a file is then the old one or the new one. What is left of a write that did not
end is a hidden file, .NAME.part, which the next write of that name takes over.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import date
from itertools import count
from pathlib import Path
from typing import BinaryIO

ASIDE = "aside"
LOCK = ".lock"


@contextmanager
def alone(work: Path) -> Iterator[None]:
    """Keeps other processes, and other calls of this one, from changing what is in work/; made if it is not there.

    It ends with the process. Where the file system knows no locks there is none.
    """
    work.mkdir(exist_ok=True)
    with (work / LOCK).open("a") as file:
        with suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextmanager
def whole(path: Path) -> Iterator[BinaryIO]:
    """A file to write to that becomes `path` at the end; after an error `path` is what it was."""
    part = path.with_name(f".{path.name}.part")
    try:
        with part.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())  # the machine may stop as well, and the name must not come before the bytes
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def write(path: Path, data: bytes) -> None:
    """Puts the bytes in the place of the file, or of no file."""
    with whole(path) as file:
        file.write(data)


def keep_aside(path: Path, work: Path) -> Path:
    """Copies a file of work/ to work/aside/, today's date in its name, and returns the copy; once for equal bytes."""
    data = path.read_bytes()
    folder = work / ASIDE / path.parent.relative_to(work)
    folder.mkdir(parents=True, exist_ok=True)
    for number in count(1):
        again = f"-{number}" if number > 1 else ""
        kept = folder / f"{path.stem}.{date.today().isoformat()}{again}{path.suffix}"
        if not kept.exists():
            write(kept, data)
        if kept.read_bytes() == data:
            return kept


def is_ours(name: str) -> bool:
    """Whether a file or folder of this name is a tool's own and no learner's work."""
    return name in (LOCK, ".ipynb_checkpoints", "__pycache__") or name.startswith(".") and name.endswith(".part")
