"""Arrows point down only: a module imports what stands on a lower line of LEVELS, or its own folder.

Imports are read from the source, those inside functions too; nothing is executed.
"""

import ast
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "quack_lite"

LEVELS = """
__main__
cli
workshop
lesson doctor slides
classroom desk publish site surroundings transfer
grading evidence
bench draw
__init__
functional simt
checks ops
rows
catalog
kernels
turns
staged
copies reductions launch
counted grid leash tiling facts reference keeping listings loading machine ratios sources
"""
HEIGHT = {unit: -line for line, units in enumerate(LEVELS.split("\n")) for unit in units.split()}

# Run on any laptop: from the package they may use one another, and never torch or the DSL.
LITE = {"simt", "tiling", "draw", "ratios", "facts", "counted"}
# Import heavy things only where they are used, so that the command and a lesson start fast and everywhere.
LAZY = {"__init__", "__main__", "cli", "lesson", "grading", "machine", "desk", "doctor", "publish", "site", "transfer"}
LAZY |= {"surroundings", "slides", "classroom"}
FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
HEAVY = {"torch", "cutlass", "functional", "bench"}


def sources(package=PACKAGE):
    """{"grading/judge.py": source} of all modules."""
    return {path.relative_to(package).as_posix(): path.read_text() for path in sorted(package.rglob("*.py"))}


def unit_of(name):
    """The file or folder of the package that a module belongs to: grading/judge.py is of grading."""
    return name.split("/")[0].removesuffix(".py")


def imported(name, source):
    """(dotted name, whether at the top of the file, line) of each import."""
    tree = ast.parse(source)
    inside = {id(node) for block in ast.walk(tree) if runs_later(block) for node in ast.walk(block)}
    for node in ast.walk(tree):
        for dotted in targets(node, name):
            yield dotted, id(node) not in inside, node.lineno


def runs_later(node):
    """Whether what stands in it does not run at import: a function, or a block for type checkers."""
    return isinstance(node, FUNCTIONS) or isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def targets(node, name):
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if not isinstance(node, ast.ImportFrom):
        return []
    base = node.module or ""
    if node.level:
        folder = ["quack_lite", *name.split("/")[:-1]]
        base = ".".join([*folder[: len(folder) + 1 - node.level], *filter(None, [node.module])])
    return [f"{base}.{alias.name}" for alias in node.names]


def resolve(dotted):
    """quack_lite.grading.judge is "grading"; quack_lite.softmax, a function, is "__init__"; torch.cuda is "torch"."""
    first, *rest = dotted.split(".")
    if first != "quack_lite":
        return first
    return rest[0] if rest and rest[0] in HEIGHT else "__init__"


def faults(files):
    """One sentence for each import that is not allowed, and for each module without a level."""
    found = []
    for name, source in files.items():
        unit = unit_of(name)
        if unit not in HEIGHT:
            found.append(f"{name}: {unit} has no line in LEVELS")
            continue
        for dotted, at_top, line in imported(name, source):
            if reason := arrow_fault(unit, resolve(dotted)) or (at_top and too_early(name, dotted)):
                found.append(f"{name}:{line}: imports {dotted}: {reason}")
    return found


def arrow_fault(unit, what):
    """Why `unit` may not import `what`; empty if it may."""
    if unit in LITE and (what in ("torch", "cutlass") or what in HEIGHT and what not in LITE):
        return "works without torch and the DSL"
    if unit == "reference" and what not in {"torch", unit, *sys.stdlib_module_names}:
        return "torch only"
    if unit == "simt" and what not in {"numpy", "counted", unit, *sys.stdlib_module_names}:
        return "numpy only"
    if what in HEIGHT and what != unit and HEIGHT[what] >= HEIGHT[unit]:
        return "an arrow that points up"
    return ""


def too_early(name, dotted):
    """Why a file may not import this at its top; empty if it may."""
    return "inside the function that uses it" if unit_of(name) in LAZY and resolve(dotted) in HEAVY else ""


def test_all_arrows_point_down():
    assert faults(sources()) == []


@pytest.mark.parametrize(
    "name, source, says",
    [
        ("tiling.py", "from quack_lite import functional", "works without"),
        ("tiling.py", "def f():\n    import torch.cuda", "works without"),
        ("simt/run.py", "from cutlass import cute", "works without"),
        ("simt/run.py", "import matplotlib", "numpy only"),
        ("simt/run.py", "from quack_lite import tiling", "numpy only"),
        ("draw/maps.py", "from quack_lite.launch import build", "works without"),
        ("copies.py", "from quack_lite.kernels.softmax import softmax", "points up"),
        ("copies.py", "from quack_lite import reductions", "points up"),
        ("copies.py", "from quack_lite import turns", "points up"),
        ("grid.py", "from quack_lite import copies", "points up"),
        ("kernels/softmax.py", "from ..functional import softmax", "points up"),
        ("kernels/softmax.py", "import quack_lite.bench", "points up"),
        ("functional.py", "def f():\n    from quack_lite import softmax", "points up"),
        ("bench/peers.py", "from quack_lite.grading import tasks", "points up"),
        ("grading/judge.py", "from quack_lite import lesson", "points up"),
        ("grading/judge.py", "import torch", "inside the function"),
        ("cli.py", "from quack_lite import bench", "inside the function"),
        ("lesson.py", "from quack_lite import functional", "inside the function"),
        ("reference.py", "import numpy", "torch only"),
        ("utils.py", "", "no line in LEVELS"),
    ],
)
def test_a_planted_arrow_is_found(name, source, says):
    (fault,) = faults({name: source})
    assert says in fault


@pytest.mark.parametrize(
    "name, source",
    [
        ("draw/maps.py", "from quack_lite import simt, tiling\nimport matplotlib.pyplot as plt"),
        ("kernels/softmax.py", "import cutlass\nfrom quack_lite import copies, reductions\nfrom . import copy"),
        ("grading/judge.py", "from quack_lite.grading import task\n\ndef f():\n    import torch"),
        ("lesson.py", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import torch"),
        ("cli.py", "def f():\n    from quack_lite import bench"),
        ("reference.py", "import math\nimport torch.nn.functional as F"),
    ],
)
def test_a_right_arrow_is_left_alone(name, source):
    assert faults({name: source}) == []
