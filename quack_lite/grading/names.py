"""Names of exercises: NN_SLUG.ipynb belongs to lesson NN, project_X_SLUG.ipynb to part X of the course."""

import re
from pathlib import Path

NAME = re.compile(r"(\d\d|project_[a-z])_(\w+)")


def exercises(folder: Path) -> list[Path]:
    """The exercises, or their solutions, in a folder, by name."""
    return sorted(path for path in folder.glob("*.ipynb") if NAME.fullmatch(path.stem))


def number(path: Path) -> str:
    """As "05", or "project_a"."""
    return NAME.fullmatch(path.stem)[1]


def slug(path: Path) -> str:
    """As "bytes_in_flight"."""
    return NAME.fullmatch(path.stem)[2]


def means(target: str, path: Path) -> bool:
    """Whether a reader who writes `target` means this exercise: its number, its slug, or both."""
    return target in (number(path), number(path).lstrip("0") or "0", slug(path), path.stem)
