"""Tells whether an answer replaced something that the grader relies on: its own code, a clock, a comparison."""

from __future__ import annotations

import builtins
import dataclasses
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import CellType, FunctionType
from typing import Any, NamedTuple

PACKAGES = ("quack_lite", "__main__")  # the grader itself is __main__
OUTSIDE = ("builtins", "json", "math", "os", "time", "numpy", "numpy.random", "torch", "torch.cuda")
CLASSES = (("torch", "Tensor"), ("torch.cuda", "Event"), ("torch.cuda", "Stream"))


class Note(NamedTuple):
    """What stood under `key` of `holder`: a dictionary's entry, or an attribute of a function or a cell.

    value: None where nothing stood there, so that what is found elsewhere cannot be shadowed.
    """

    name: str
    holder: Any
    key: Any
    value: Any


def taken() -> Callable[[], str]:
    """Notes what is loaded now. The function that it returns names the first thing replaced since; empty if none."""
    notes = [*_outside(), *_inside()]

    def broken() -> str:
        for name, holder, key, value in notes:
            found = getattr(holder, key, None) if isinstance(holder, FunctionType | CellType) else holder.get(key)
            if found is not value:
                return name
        return ""

    return broken


def _outside() -> Iterator[Note]:
    """The functions and classes of other modules, and the methods of a few of their classes."""
    for name in OUTSIDE:
        if name in sys.modules:
            yield Note(name, sys.modules, name, sys.modules[name])
            yield from _callables(name, vars(sys.modules[name]))
    for module, name in CLASSES:
        if module in sys.modules:
            kind = getattr(sys.modules[module], name)
            yield from _callables(f"{module}.{name}", vars(kind))
            yield from _gaps(f"{module}.{name}", vars(kind), dir(kind))


def _callables(name: str, space: Mapping[str, Any]) -> Iterator[Note]:
    for key, value in list(space.items()):
        if callable(value):
            yield Note(f"{name}.{key}", space, key, value)
            if isinstance(value, FunctionType):
                yield Note(f"{name}.{key}", value, "__code__", value.__code__)


def _gaps(name: str, space: Mapping[str, Any], keys: Iterable[str]) -> Iterator[Note]:
    yield from (Note(f"{name}.{key}", space, key, None) for key in keys if key not in space)


def _inside() -> Iterator[Note]:
    """All that the package's modules are made of: functions, classes, tasks and gates, down to what a gate encloses."""
    roots = [(name, module) for name, module in sys.modules.items() if name.partition(".")[0] in PACKAGES]
    for name, module in roots:
        yield Note(name, sys.modules, name, module)
        yield from _gaps(name, vars(module), vars(builtins))
    waiting, known = roots, set()
    while waiting:
        name, thing = waiting.pop()
        if id(thing) not in known:
            known.add(id(thing))
            for note in _notes(name, thing):
                yield note
                waiting += [(note.name, part) for part in _parts(note)]


def _notes(name: str, thing: Any) -> list[Note]:
    if isinstance(thing, FunctionType):
        keys = ("__code__", "__defaults__") if _is_of_dsl(thing) else ("__code__", "__defaults__", "__closure__")
        return [Note(name, thing, key, getattr(thing, key)) for key in keys]
    if isinstance(thing, CellType):
        return [Note(name, thing, "cell_contents", thing.cell_contents)] if _is_filled(thing) else []
    space = thing if isinstance(thing, dict) else vars(thing)
    return [Note(f"{name}.{key}", space, key, value) for key, value in list(space.items())]


def _parts(note: Note) -> list[Any]:
    """What is worth a look inside it: a constant's table, what a function encloses, whatever is ours."""
    if isinstance(note.value, dict) and str(note.key).isupper():
        return [note.value]
    return [part for part in _flat(note.value) if isinstance(part, CellType) or _is_ours(part)]


def _is_of_dsl(function: FunctionType) -> bool:
    """Whether @cute.jit or @cute.kernel made it; the function inside is written anew when it is first traced."""
    return str(function.__globals__.get("__name__")).partition(".")[0] == "cutlass"


def _flat(value: Any) -> list[Any]:
    return [part for item in value for part in _flat(item)] if isinstance(value, tuple) else [value]


def _is_filled(cell: CellType) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True


def _is_ours(value: Any) -> bool:
    """Whether it is a function, a class or a data class's instance of the package."""
    kind = value if isinstance(value, FunctionType | type) else type(value)
    of_package = str(kind.__module__).partition(".")[0] in PACKAGES
    return of_package and (kind is value or dataclasses.is_dataclass(kind) and hasattr(value, "__dict__"))
