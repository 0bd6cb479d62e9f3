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
    "guard": ("outside the output were written", "of the output were not written"),
    "delay": ("other bits", "hangs", "CUDA error", "cudaError"),
}


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


def missed(check: str, name: str, deadline: float) -> str:
    """Runs a check on a planted fault: empty if it caught it, else a sentence."""
    kernel = load(name).KERNEL
    if check in sanitizers.TOOLS:
        result = sanitizers.examine(check, [kernel], deadline, plant=name)[kernel]
        caught = result.get("said", False)
    else:
        step = "delay" if check == "delay" else "values"
        result = processes.run(step, [kernel], deadline, plant=name)[kernel]
        caught = any(word in problem for problem in result.get("problems", []) for word in WORDS[check])
    if caught:
        return ""
    said = "; ".join(result.get("problems", [])) or ("no answer in time" if result.get("unfinished") else "nothing")
    return f"{check} misses the planted fault {name} (it says: {said})"


def run(deadline: float, lanes: int, listener: Callable[[], None]) -> list[str]:
    """One sentence for each planted fault that its check misses."""

    def one(pair):
        sentence = missed(*pair, deadline)
        listener()
        return sentence

    with ThreadPoolExecutor(lanes) as pool:
        return list(filter(None, pool.map(one, pairs())))
