"""A folder of what learners handed in: who they are, and the answers in their notebooks. Nothing is executed here."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from quack_lite import keeping
from quack_lite.grading import notebook, tasks
from quack_lite.grading.spawn import Answer

BYTES = 2**26  # of a notebook that is read; pictures and all, ours have less than a tenth of it
# At the end of a file's name, behind the learner's.
EXERCISE = re.compile(rf"[ _.-]+(\d\d|project_[a-z])_({'|'.join(tasks.slugs())})$")
REPORTS = (".csv", ".html")


@dataclass
class Learner:
    """answers: {(notebook, task): answer}.  unread: {notebook: why it could not be read}.  Notebooks by their paths."""

    name: str
    answers: dict[tuple[str, str], Answer] = field(default_factory=dict)
    unread: dict[str, str] = field(default_factory=dict)


def learners(folder: Path) -> list[Learner]:
    """Everybody who has a file or a folder there, by name.

    A folder is called after its learner. Of a copy of the course work/ counts, of any other folder all notebooks below
    it. A notebook is called after its learner too, the exercise's name may stand behind: ada_05_bytes_in_flight.ipynb.
    ValueError where there is no such folder, or nothing in it.
    """
    if not folder.is_dir():
        raise ValueError(f"there is no folder {folder}: give the one in which each learner has a folder or a notebook")
    found: dict[str, Learner] = {}
    for entry in sorted(folder.iterdir()):
        if entry.name.startswith(".") or entry.suffix in REPORTS:
            continue
        name = entry.name if entry.is_dir() else EXERCISE.sub("", entry.stem)
        _take(found.setdefault(name, Learner(name)), entry, folder)
    if not found:
        raise ValueError(f"{folder} is empty: it has to have a folder or a notebook for each learner")
    return list(found.values())


def _take(learner: Learner, entry: Path, folder: Path) -> None:
    notebooks = list(_notebooks(entry))
    if not notebooks:
        learner.unread[entry.name] = _nothing(entry)
    for path in notebooks:
        name = path.relative_to(folder).as_posix()
        try:
            learner.answers |= {(name, answer.task): answer for answer in read(path)}
        except ValueError as error:
            learner.unread[name] = str(error)


def read(path: Path) -> list[Answer]:
    """The answers to tasks of the course in a notebook, of a task that is checked twice the last.

    ValueError, with why, where the file cannot be read, is too large, or checks no task of the course.
    """
    known = {task.id for task in tasks.every()}
    try:
        if path.stat().st_size > BYTES:
            raise ValueError(f"{path.name} has more than {BYTES / 2**20:g} MiB: clear its outputs and save it again")
        found = {answer.task: answer for answer in notebook.answers(path) if answer.task in known}
    except UnicodeEncodeError:  # of the parser, for half a surrogate pair
        raise ValueError(f"{path.name} has characters that no file can hold") from None
    except ValueError:
        raise
    except Exception as error:  # whatever its cells make of Python's parser, and the disk of a file
        raise ValueError(f"{path.name} cannot be taken apart ({type(error).__name__})") from None
    if not found:
        raise ValueError(f"{path.name} checks no task of the course: is it the exercise, with its check cells?")
    return list(found.values())


def _notebooks(entry: Path) -> Iterator[Path]:
    if not entry.is_dir():
        if entry.suffix == ".ipynb":
            yield entry
        return
    course = (entry / "work").is_dir() or (entry / "quack_lite").is_dir()
    for folder, folders, files in os.walk(entry / "work" if course else entry):
        folders[:] = sorted(name for name in folders if not (name.startswith(".") or name == keeping.ASIDE))
        paths = (Path(folder) / name for name in sorted(files) if name.endswith(".ipynb") and name[0] != ".")
        yield from (path for path in paths if path.is_file() and not path.is_symlink())


def _nothing(entry: Path) -> str:
    if not entry.is_dir():
        return f"{entry.name} is no notebook: unpack it, so that its learner has a folder"
    if (entry / "quack_lite").is_dir() and not (entry / "work").is_dir():
        return f"{entry.name} is a copy of the course without work/, which git leaves out: ask for the files in work/"
    return f"{entry.name} has no notebook in it"
