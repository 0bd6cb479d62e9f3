"""Whether a kernel's source is still what Python imported: the DSL reads it when it compiles, not before."""

import inspect
import os
import types
import weakref

READ = weakref.WeakSet()  # functions that were compared; the DSL replaces their code when it compiles them


def refuse_edited(host) -> None:
    """RuntimeError if the file of a host function was edited between its import and its first compilation.

    Otherwise the DSL would take the new text in silence, or fail with a sentence about code objects.
    """
    for function in functions_beside(host):
        path = function.__code__.co_filename
        if function not in READ and function.__code__ not in present_code(path):
            raise RuntimeError(
                f"{path} was edited after {function.__name__} was imported, and the compiler reads it only now: "
                "restart Python (or the notebook's kernel)"
            )
        READ.add(function)


def functions_beside(host) -> list:
    """The functions of the host function's file, itself among them; none where there is no such file, as for a cell."""
    function = inspect.unwrap(host)
    path = function.__code__.co_filename
    if not os.path.exists(path):
        return []
    beside = (inspect.unwrap(value) for value in function.__globals__.values() if hasattr(value, "_dsl_cls"))
    return [function, *(other for other in beside if other.__code__.co_filename == path)]


def present_code(path: str) -> set:
    """The code of all functions, as the file is now."""
    with open(path, encoding="utf-8") as file:
        return set(nested(compile(file.read(), path, "exec")))


def nested(code: types.CodeType):
    """A code object and those within it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from nested(constant)
