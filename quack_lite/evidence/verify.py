"""quack-lite verify: runs what has no receipt on this GPU, and writes the receipts; the next run goes on from there."""

import math
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from rich.console import Console
from rich.progress import Progress

from quack_lite import machine
from quack_lite.evidence import digest, plants, processes, receipts, sanitizers

BATCH = 12  # kernels a process
STEPS = ("values", "delay", *sanitizers.TOOLS)
SECONDS_TO_TIME = 2  # a kernel
RESERVE = 30  # seconds to start the timing and to write the receipts
SHOWN_PROBLEMS = 3


class Outcome(NamedTuple):
    """Names of kernels: with a new receipt, {name: sentences} of those that failed, not reached in time."""

    written: list[str]
    failed: dict[str, list[str]]
    left: list[str]


def run(only: str = "", seconds: float = 480) -> int:
    """Verifies the kernels whose names contain `only` and that no receipt holds for; stops before `seconds` are over.

    0 if nothing failed, 1 otherwise. ValueError without a Hopper GPU or compute-sanitizer, or if `only` is in no name.
    """
    console = Console(highlight=False, markup=False, soft_wrap=True)
    deadline = time.monotonic() + seconds
    require(machine.reasons("hopper"), sanitizers.find(), digest.flavour(), receipts.flavours())
    kernels = named(only)
    console.print(f"{len(kernels)} kernels: compiling them to find those without a receipt")
    digests = processes.spread("digest", kernels, deadline, lanes())
    todo = without_receipt(digests, console)
    if not todo:
        console.print("every kernel has a receipt that holds")
        return 0
    console.print(f"{len(todo)} without one; first the planted faults, which the checks must catch")
    if missed := faults_first(deadline, console):
        console.print(*missed, "no receipt is written: a check that misses its fault proves nothing", sep="\n")
        return 1
    outcome = rounds(todo, digests, deadline, console)
    console.print(*summary(outcome), sep="\n")
    return 1 if outcome.failed else 0


def require(no_hopper: str, sanitizer: str | None, flavour: str, receipts_of: set[str]) -> None:
    """ValueError with what to do if something is missing, or the receipts are another flavour's."""
    if no_hopper:
        raise ValueError(f"the kernels are verified on a Hopper GPU (H100, H200), and {no_hopper}")
    if sanitizer is None:
        raise ValueError("compute-sanitizer is not here: install CUDA's, or pip install -r requirements-tools.txt")
    if flavour not in digest.FLAVOURS:
        raise ValueError(f"one flavour of the DSL is needed, and {flavour} is installed: see `quack-lite doctor`")
    if receipts_of - {flavour}:
        raise ValueError(f"the DSL here is {flavour}, the receipts are {'+'.join(receipts_of)}'s: install that flavour")


def named(only: str) -> list[str]:
    """The names in the list that contain `only`."""
    from quack_lite import catalog

    names = [kernel.name for kernel in catalog.listed()]
    found = [name for name in names if only in name]
    if not found:
        raise ValueError(f"no kernel's name contains {only!r}; the names look like {names[0]}")
    return found


def lanes() -> int:
    """Processes at once."""
    return max(2, min(16, len(os.sched_getaffinity(0))))


def without_receipt(digests: dict[str, dict], console: Console) -> list[str]:
    """The kernels that no receipt holds for, with a line for each reason; ValueError for one that does not compile."""
    reasons = {}
    for name, result in digests.items():
        if "digests" not in result:
            raise ValueError(f"{name} was not compiled: {result.get('problems', ['the time was over'])[0]}")
        reasons[name] = receipts.lacks(name, result["digests"])
    found = {name: reason for name, reason in reasons.items() if reason}
    for reason in sorted(set(found.values())):
        console.print(f"  {sum(reason == other for other in found.values())} {reason}")
    return list(found)


def faults_first(deadline: float, console: Console) -> list[str]:
    """Sentences on the planted faults that were missed."""
    with Progress(console=console) as progress:
        bar = progress.add_task("planted faults", total=len(plants.pairs()))
        return plants.run(deadline, lanes(), lambda: progress.advance(bar))


def rounds(todo: list[str], digests: dict[str, dict], deadline: float, console: Console) -> Outcome:
    """Round after round while there is time for another one."""
    outcome, longest = Outcome([], {}, todo), 0.0
    with Progress(console=console) as progress:
        bar = progress.add_task("kernels x steps", total=len(todo) * len(STEPS))
        while outcome.left and time.monotonic() + longest + RESERVE < deadline:
            start, before = time.monotonic(), outcome
            outcome = one_round(before, digests, deadline, lambda result: progress.advance(bar), console)
            longest = max(longest, time.monotonic() - start)
            if len(outcome.left) == len(before.left):
                break
    return outcome


def one_round(before: Outcome, digests, deadline: float, listener: Callable, console: Console) -> Outcome:
    """Takes the next kernels through all steps, writes the receipts of those without a fault."""
    size = math.ceil(lanes() / len(STEPS)) * BATCH
    part, left = before.left[:size], before.left[size:]
    results = checked(part, deadline - RESERVE - SECONDS_TO_TIME * len(part), listener)
    clean = [name for name in part if not problems(results[name]) and not unfinished(results[name])]
    for name, result in timed(clean, deadline).items():
        results[name]["time"] = result
    written, failed = list(before.written), dict(before.failed)
    for name in part:
        if found := problems(results[name]):
            failed[name] = found
            console.print(f"  {name}: FAILED", *found[:SHOWN_PROBLEMS], sep="\n    ")
        elif unfinished(results[name]):
            left.append(name)
        else:
            receipts.write(receipt(name, digests[name]["digests"], results[name]))
            written.append(name)
            console.print(f"  {name}: right, {results[name]['time']['time']['of_copy']:.0%} of the copy ceiling")
    return Outcome(written, failed, left)


def problems(steps: dict[str, dict]) -> list[str]:
    """All that is wrong with a kernel."""
    return [problem for result in steps.values() for problem in result.get("problems", [])]


def unfinished(steps: dict[str, dict]) -> bool:
    """Whether the time was over in some step."""
    return any(result.get("unfinished") for result in steps.values())


def checked(kernels: Sequence[str], deadline: float, listener: Callable) -> dict[str, dict[str, dict]]:
    """{kernel: {step: result}}: all steps but the timing, at once, since they disturb each other's speed only."""
    batches = [kernels[i : i + BATCH] for i in range(0, len(kernels), BATCH)]
    jobs = [(step, batch) for batch in batches for step in STEPS]

    def one(job):
        step, batch = job
        if step in sanitizers.TOOLS:
            return sanitizers.examine(step, batch, deadline, listener=listener)
        return processes.run_all(step, batch, deadline, listener=listener)

    found = {kernel: {} for kernel in kernels}
    with ThreadPoolExecutor(lanes()) as pool:
        for (step, _), results in zip(jobs, pool.map(one, jobs), strict=True):
            for kernel, result in results.items():
                found[kernel][step] = result
    return found


def timed(kernels: Sequence[str], deadline: float) -> dict[str, dict]:
    """The timing, alone on the GPU."""
    return processes.run_all("time", kernels, deadline) if kernels else {}


def receipt(name: str, digests: dict[str, str], steps: dict[str, dict]) -> dict:
    """What is written down of a kernel. ValueError if what ran is not what was looked up."""
    values, timing = steps["values"], steps["time"]
    if values["digests"] != digests:
        raise ValueError(f"{name}: two compilations gave different code: was a file changed meanwhile? Run again")
    return {
        "kernel": name,
        **{key: values[key] for key in ("digests", "options", "values", "guard_elements")},
        "delay": steps["delay"]["delay"],
        "tools": {tool: steps[tool]["tool"] for tool in sanitizers.TOOLS},
        "faults_caught": [f"{check}: {fault}" for check, fault in plants.pairs()],
        **{key: timing[key] for key in ("time", "device", "driver", "versions", "date")},
    }


def summary(outcome: Outcome) -> list[str]:
    """The last lines."""
    lines = [f"{len(outcome.written)} receipts written"]
    if outcome.failed:
        lines.append(f"{len(outcome.failed)} kernels failed: {', '.join(outcome.failed)}")
    if outcome.left:
        lines.append(f"{len(outcome.left)} kernels are left: run `make verify` again, it goes on from here")
    return lines
