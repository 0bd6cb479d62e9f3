"""One file an exercise, by its slug: the specification, the gates and the hints of its tasks."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator

from quack_lite.grading.task import Task


def slugs() -> list[str]:
    """The exercises that can be graded, in alphabetical order."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__))


def of(slug: str) -> tuple[Task, ...]:
    """The tasks of one exercise. ValueError where the slug names none."""
    if slug not in slugs():
        raise ValueError(f"no exercise is called {slug!r}: there are {', '.join(slugs())}")
    return importlib.import_module(f"{__name__}.{slug}").TASKS


def every() -> Iterator[Task]:
    """All tasks of the course."""
    for slug in slugs():
        yield from of(slug)


def find(task_id: str) -> Task:
    """The task with this id, such as "bytes_in_flight.cast". ValueError with the ids there are."""
    slug = task_id.partition(".")[0]
    known = of(slug)
    for task in known:
        if task.id == task_id:
            return task
    raise ValueError(f"no task is called {task_id!r}: {slug} has {', '.join(task.id for task in known)}")
