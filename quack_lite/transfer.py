"""From one machine to the next: work/, with the progress in it, as a zip file.

Nothing on either machine is lost: what an import replaces is kept aside before, and an import that was stopped is
ended by the next.
"""

from __future__ import annotations

import os
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from itertools import count
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from quack_lite import keeping
from quack_lite.grading.progress import Damaged, Progress, Tables, parse

ROOT = Path(__file__).resolve().parents[1]
PROGRESS = "work/progress.json"


def pack(target: str | None = None, root: Path = ROOT) -> int:
    """Writes work/ to the file, or to quack-lite-DATE.zip in the course's folder, and says what to do next; returns 0.

    Links, checkpoints and caches are left out. ValueError where there is no work/, where the file exists, and where it
    cannot be written.
    """
    work = root / "work"
    if not work.exists():
        raise ValueError("there is no work/ to export: make lab, or quack-lite start NN, makes it")
    Progress(root / PROGRESS).read()  # sets a damaged one aside
    with keeping.alone(work), _explained("the export"):
        place = Path(target) if target else _free(root)
        if place.exists():
            raise ValueError(f"{place} exists and is not overwritten: give another name")
        files = _files(work)
        with keeping.whole(place) as file, _archive(file) as archive:
            for path in files:
                archive.write(path, PurePosixPath("work", path.relative_to(work).as_posix()).as_posix())
    print(f"{place.resolve()}: {_files_words(len(files))} of work/.")
    print(f"Copy it to the next machine, and there, in the course's folder: quack-lite import {place.name}")
    return 0


def unpack(source: str, root: Path = ROOT) -> int:
    """Takes work/ and the progress out of an exported file, and prints what became of each file; returns 0.

    A file that differs from the one here takes its place, and the one here is copied to work/aside/ unless it is as the
    course has it. One that is as the course has it replaces nothing. Of progress the further counts.
    ValueError, before anything is written, for a file that is no export.
    """
    work, progress = root / "work", Progress(root / PROGRESS)
    progress.read()  # refuses one of a newer version while nothing is changed
    files, tables = _read(Path(source))
    for name in files:
        _refuse_outside(root, name)
    with keeping.alone(work), _explained("the import"):
        for name, data in files.items():
            print(_put(root / name, data, work))
    if tables is not None:
        progress.add(tables)
    print(f"{source}: {_files_words(len(files))}" + ("." if tables is None else " and the progress."))
    return 0


def _put(target: Path, data: bytes, work: Path) -> str:
    name = target.relative_to(work.parent).as_posix()
    course = work.parent / "exercises" / target.name
    original = course.read_bytes() if target.parent == work and course.exists() else None
    here = target.read_bytes() if target.exists() else None
    if data == here:
        return f"{name}: the same here."
    if here is not None and data == original:
        return f"{name}: kept as it is here; the other is as the course has it."
    kept = None
    if here is not None and here != original:
        kept = keeping.keep_aside(target, work).relative_to(work.parent).as_posix()
    target.parent.mkdir(parents=True, exist_ok=True)
    keeping.write(target, data)
    return f"{name}: taken" + (f"; the one here is now {kept}." if kept else ".")


def _read(source: Path) -> tuple[dict[str, bytes], Tables | None]:
    """The files by name, and the tables of the progress file, which is not among them."""
    if not source.is_file():
        raise ValueError(f"there is no file {source}: give one that quack-lite export wrote")
    try:
        with zipfile.ZipFile(source) as archive:
            files = {entry.filename: archive.read(entry) for entry in archive.infolist() if not entry.is_dir()}
        text = files.pop(PROGRESS, None)
        return files, None if text is None else parse(text)
    except Damaged:
        reason = "its progress file is damaged"
    except (zipfile.BadZipFile, zlib.error, OSError, EOFError, NotImplementedError, RuntimeError) as error:
        reason = str(error)
    raise ValueError(f"{source} is no whole export ({reason}): copy it again, or write it again with quack-lite export")


def _refuse_outside(root: Path, name: str) -> None:
    """ValueError for a name that is not of a file in work/."""
    work = (root / "work").resolve()
    if PurePosixPath(name).parts[:1] != ("work",) or work not in (root / name).resolve().parents:
        raise ValueError(f"it holds {name!r}, which is not in work/: only what quack-lite export wrote can be imported")


def _files(work: Path) -> list[Path]:
    """What a learner has in work/, sorted."""
    found = []
    for folder, folders, files in os.walk(work):
        folders[:] = [name for name in folders if not keeping.is_ours(name)]
        paths = (Path(folder) / name for name in files if not keeping.is_ours(name))
        found += [path for path in paths if path.is_file() and not path.is_symlink()]
    return sorted(found)


def _files_words(number: int) -> str:
    return f"{number} file" + ("" if number == 1 else "s")


def _archive(file: BinaryIO) -> zipfile.ZipFile:
    return zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, strict_timestamps=False)


def _free(root: Path) -> Path:
    """The first of quack-lite-DATE.zip, quack-lite-DATE-2.zip ... that is not there."""
    names = (f"quack-lite-{date.today().isoformat()}{'' if number == 1 else f'-{number}'}.zip" for number in count(1))
    return next(root / name for name in names if not (root / name).exists())


@contextmanager
def _explained(what: str) -> Iterator[None]:
    """A failing disk or a forbidden folder as a sentence. What is written already is whole."""
    try:
        yield
    except OSError as error:
        raise ValueError(f"{what} stopped ({error}): mend that and call it again") from None
