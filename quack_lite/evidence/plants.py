"""Runs the checks on the planted faults of tests/faults first: a check that misses its fault proves nothing."""

import importlib
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from quack_lite.evidence import processes, sanitizers
from quack_lite.evidence.receipts import ROOT

FOLDER = ROOT / "tests" / "faults"

# What a check says when it has seen the fault; another end, as a crash, is not a catch.
WORDS = {
    "values": ("of the tolerance",),
    "guard": ("outside the output got a value", "of the output got no value"),
    "delay": ("other bits", "hangs", "CUDA error", "cudaError"),
}
SAID = 5  # problems that are shown


def names() -> list[str]:
    """The planted faults."""
    return sorted(path.stem for path in FOLDER.glob("[!_]*.py"))


def load(name: str):
    """The module of a planted fault: CAUGHT_BY (checks), KERNEL (name in the list), planted() (context manager)."""
    if str(FOLDER.parent) not in sys.path:
        sys.path.insert(0, str(FOLDER.parent))
    return importlib.import_module(f"faults.{name}")


def pairs() -> list[tuple[str, str]]:
    """(check, fault) for each check that must catch a fault."""
    return [(check, name) for name in names() for check in load(name).CAUGHT_BY]


def runs(pairs: list[tuple[str, str]]) -> dict[tuple[str, str], list[str]]:
    """{(what is run, fault): the checks that it is for}: values and guard regions are looked at in one run."""
    found = {}
    for check, name in pairs:
        found.setdefault(("values" if check == "guard" else check, name), []).append(check)
    return found


def missed(step: str, name: str, checks: list[str], deadline: float) -> list[str]:
    """Runs a planted fault: a sentence for each of the checks that missed it."""
    kernel = load(name).KERNEL
    if step in sanitizers.TOOLS:
        result = sanitizers.examine(step, [kernel], deadline, plant=name)[kernel]
    else:
        result = processes.run(step, [kernel], deadline, plant=name)[kernel]
    problems = result.get("problems", [])
    said = "; ".join(problems[:SAID]) or ("no answer in time" if result.get("unfinished") else "nothing")
    return [
        f"{check} misses the planted fault {name} (it says: {said})" for check in checks if not caught(check, result)
    ]


def caught(check: str, result: dict) -> bool:
    """Whether a check says what it has to say of its fault."""
    if check in sanitizers.TOOLS:
        return result.get("said", False)
    return any(word in problem for problem in result.get("problems", []) for word in WORDS[check])


def run(deadline: float, lanes: int, listener: Callable[[], None]) -> list[str]:
    """One sentence for each check that misses a planted fault."""

    def one(item):
        (step, name), checks = item
        sentences = missed(step, name, checks, deadline)
        listener()
        return sentences

    with ThreadPoolExecutor(lanes) as pool:
        return [sentence for found in pool.map(one, runs(pairs()).items()) for sentence in found]
