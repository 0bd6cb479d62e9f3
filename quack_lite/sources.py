"""Whether a kernel's source is still what Python imported: the DSL reads it when it compiles, not before."""

import inspect
import os
import types
import weakref

OURS = ("quack_lite", "steps_")  # modules that are looked into
READ = weakref.WeakSet()  # functions that were compared; the DSL replaces their code when it compiles them


def refuse_edited(host) -> None:
    """RuntimeError if a file that the compilation of a host function reads was edited since its import.

    Otherwise the DSL would take the new text in silence, or fail with a sentence about code objects.
    """
    for function in functions_read(host):
        path = function.__code__.co_filename
        if function not in READ and function.__code__ not in present_code(path):
            raise RuntimeError(
                f"{path} was edited after {function.__name__} was imported, and the compiler reads it only now: "
                "restart Python (or the notebook's kernel)"
            )
        READ.add(function)


def functions_read(host) -> list:
    """The DSL's functions in the files of a host function, of what it has imported or encloses from others, and so on.

    None of a file that is not there, as a notebook's cell.
    """
    own = inspect.unwrap(host)
    enclosed = inspect.getclosurevars(own).nonlocals
    found, names = {}, [own.__globals__, enclosed]
    seen = set()
    while names:
        here = names.pop()
        if id(here) in seen:
            continue
        seen.add(id(here))
        for value in list(here.values()):
            if isinstance(value, types.ModuleType) and value.__name__.startswith(OURS):
                names.append(vars(value))
            elif hasattr(value, "_dsl_cls"):
                function = inspect.unwrap(value)
                found[function] = os.path.exists(function.__code__.co_filename)
                names.append(function.__globals__)
    return [function for function, is_in_a_file in found.items() if is_in_a_file]


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
