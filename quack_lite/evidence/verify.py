"""quack-lite verify: runs what has no receipt on this GPU, and writes the receipts; the next run goes on from there.

Each kernel is compiled and timed once, while nothing else runs. Its values, guard regions and delays are checked from
the object file that the compilation left, and its receipt is written. Then the sanitizer's tools watch the kernels
whose receipt has nothing of them yet, and what they say is added.
"""

import os
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from rich.console import Console
from rich.progress import Progress

from quack_lite import machine
from quack_lite.counted import counted
from quack_lite.evidence import digest, plants, processes, receipts, sanitizers

CHECKED = 3  # kernels a process
WATCHED = {"memcheck": 48, "racecheck": 4, "initcheck": 48, "synccheck": 48}  # the same; most take long to start
RACE_LANES = 6  # of the lanes, for racecheck: it fills the GPU, and more of them at once take longer
KERNELS_A_LANE = 3  # in a round: short ones, since none is begun that may not end in time
RESERVE = 10  # seconds to write the receipts
TOOLS = tuple(sanitizers.TOOLS)
SHOWN_PROBLEMS = 3


class Prepared(NamedTuple):
    """kernels: {name: what was compiled, and its time if it has no receipt}.  circumstances: ceilings, device, date.

    folder: of the object files.
    """

    kernels: dict[str, dict]
    circumstances: dict
    folder: str


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
    with tempfile.TemporaryDirectory() as folder:
        given = counted(len(kernels), "kernels")
        console.print(f"{given}: compiling to find what has no receipt, and timing that")
        prepared = prepare(kernels, deadline, folder, console)
        start = sorted_out(prepared, console)
        if not start.left and not start.failed and not to_watch(kernels):
            console.print("every kernel has a receipt that holds")
            return 0
        console.print(f"{len(start.left)} to examine; first the planted faults, which the checks must catch")
        if missed := faults_first(deadline, console):
            console.print(*missed, "no receipt is written: a check that misses its fault proves nothing", sep="\n")
            return 1
        outcome = rounds(start, prepared, deadline, console)
        outcome = watched(outcome, kernels, folder, deadline, console)
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


def prepare(kernels: list[str], deadline: float, folder: str, console: Console) -> Prepared:
    """Compiles the kernels, times those without a receipt, and measures what they are compared to."""
    with ThreadPoolExecutor(1) as pool, Progress(console=console) as progress:
        bar = progress.add_task("compiled", total=len(kernels))
        ceilings = pool.submit(processes.run, "ceilings", kernels[:1], deadline)
        options = {"objects": folder, "listener": lambda result: progress.advance(bar)}
        found = processes.spread("prepare", kernels, deadline, lanes(), **options)
    circumstances = ceilings.result()[kernels[0]]
    if "ceilings" not in circumstances:
        raise ValueError(f"the ceilings were not measured: {why(circumstances)}")
    return Prepared(found, circumstances, folder)


def why(result: dict) -> str:
    """What a worker says of having no result."""
    return "; ".join(result.get("problems", ["the time was over"]))


def sorted_out(prepared: Prepared, console: Console) -> Outcome:
    """The kernels that are left to examine and those that failed already, with a line for each reason."""
    failed, reasons = {}, {}
    for name, result in prepared.kernels.items():
        if "digests" not in result:
            failed[name] = [f"was not compiled or timed: {why(result)}"]
            console.print(f"  {name}: FAILED", *failed[name], sep="\n    ")
        elif reason := receipts.lacks(name, result["digests"]):
            reasons[name] = reason
    for reason in sorted(set(reasons.values())):
        console.print(f"  {sum(reason == other for other in reasons.values())} {reason}")
    return Outcome([], failed, list(reasons))


def faults_first(deadline: float, console: Console) -> list[str]:
    """Sentences on the planted faults that were missed."""
    with Progress(console=console) as progress:
        bar = progress.add_task("planted faults", total=len(plants.runs(plants.pairs())))
        return plants.run(deadline, lanes(), lambda: progress.advance(bar))


def rounds(start: Outcome, prepared: Prepared, deadline: float, console: Console) -> Outcome:
    """Round after round while there is time for another one."""
    outcome, longest = start, 0.0
    with Progress(console=console) as progress:
        bar = progress.add_task("checked", total=len(start.left))
        while outcome.left and time.monotonic() + longest + RESERVE < deadline:
            began, before = time.monotonic(), outcome
            outcome = one_round(before, prepared, deadline, lambda result: progress.advance(bar), console)
            longest = max(longest, time.monotonic() - began)
            if len(outcome.left) == len(before.left):
                break
    return outcome


def one_round(before: Outcome, prepared: Prepared, deadline: float, listener: Callable, console: Console) -> Outcome:
    """Takes the next kernels through all steps, writes the receipts of those without a fault."""
    size = round_size(len(before.left))
    part, left = before.left[:size], before.left[size:]
    results = checked(part, prepared.folder, deadline - RESERVE, listener)
    written, failed = list(before.written), dict(before.failed)
    for name in part:
        if found := problems(results[name]):
            failed[name] = found
            console.print(f"  {name}: FAILED", *found[:SHOWN_PROBLEMS], sep="\n    ")
        elif unfinished(results[name]):
            left.append(name)
        else:
            made = receipt(name, prepared, results[name])
            receipts.write(made)
            written.append(name)
            console.print(f"  {name}: right, {made['time']['of_copy']:.0%} of the copy ceiling")
    return Outcome(written, failed, left)


def round_size(left: int) -> int:
    """Kernels of the next round: as many as in those that follow."""
    return -(-left // -(-left // (KERNELS_A_LANE * lanes())))


def problems(steps: dict[str, dict]) -> list[str]:
    """All that is wrong with a kernel."""
    return [problem for result in steps.values() for problem in result.get("problems", [])]


def unfinished(steps: dict[str, dict]) -> bool:
    """Whether the time was over in some step."""
    return any(result.get("unfinished") for result in steps.values())


def checked(kernels: Sequence[str], folder: str, deadline: float, listener: Callable) -> dict[str, dict[str, dict]]:
    """{kernel: {"check": result}}."""

    def one(batch):
        return processes.run_all("check", batch, deadline, objects=folder, listener=listener)

    with ThreadPoolExecutor(lanes()) as pool:
        results = pool.map(one, batches(kernels, CHECKED))
        return {kernel: {"check": result} for found in results for kernel, result in found.items()}


def to_watch(kernels: Sequence[str]) -> list[tuple[str, list[str]]]:
    """(tool, kernels) for each process that has to be watched."""
    left = {tool: [name for name in kernels if tool in receipts.unwatched(name, TOOLS)] for tool in TOOLS}
    return [(tool, batch) for tool, names in left.items() if names for batch in batches(names, WATCHED[tool])]


def watched(before: Outcome, kernels: Sequence[str], folder: str, deadline: float, console: Console) -> Outcome:
    """Lets the tools watch those of the kernels whose receipt holds, and adds what they say to it."""
    names = [name for name in kernels if name not in before.failed and name not in before.left]
    jobs, failed, lock = to_watch(names), dict(before.failed), threading.Lock()

    def one(job):
        tool, batch = job
        results = sanitizers.examine(tool, batch, deadline - RESERVE, objects=folder)
        with lock:
            for name, found in add_watched(tool, results, failed).items():
                console.print(f"  {name}: FAILED", *found[:SHOWN_PROBLEMS], sep="\n    ")
            progress.advance(bar)

    with Progress(console=console) as progress:
        bar = progress.add_task("watched", total=len(jobs))
        with ThreadPoolExecutor(RACE_LANES) as slow, ThreadPoolExecutor(max(1, lanes() - RACE_LANES)) as others:
            for ended in [(slow if job[0] == "racecheck" else others).submit(one, job) for job in jobs]:
                ended.result()
    left = [name for name in names if name not in failed and receipts.unwatched(name, TOOLS)]
    return Outcome(before.written, failed, [*before.left, *left])


def add_watched(tool: str, results: dict[str, dict], failed: dict[str, list[str]]) -> dict[str, list[str]]:
    """Adds what a tool says of each kernel to its receipt; one that is not clean loses it, and goes to `failed`.

    {kernel: what is wrong} of those.
    """
    wrong = {name: result["problems"] for name, result in results.items() if result.get("problems")}
    for name, found in wrong.items():
        failed[name] = [*failed.get(name, []), *found]
        receipts.remove(name)
    for name in results.keys() - wrong.keys():
        if "tool" in results[name] and (receipt := receipts.read(name)):
            receipts.write(receipt | {"tools": receipt["tools"] | {tool: results[name]["tool"]}})
    return wrong


def batches(kernels: Sequence[str], size: int) -> list[Sequence[str]]:
    """The kernels in batches of at most this size; neighbours, which are alike, are spread."""
    count = -(-len(kernels) // size)
    return [kernels[i::count] for i in range(count)]


def receipt(name: str, prepared: Prepared, steps: dict[str, dict]) -> dict:
    """What is written down of a kernel."""
    made, seen, here = prepared.kernels[name], steps["check"], prepared.circumstances
    ceilings = here["ceilings"]
    return {
        "kernel": name,
        **{key: made[key] for key in ("digests", "options", "entries")},
        **{key: seen[key] for key in ("values", "guard_elements", "delay")},
        "tools": {},
        "faults_caught": [f"{check}: {fault}" for check, fault in plants.pairs()],
        "time": {**made["time"], "of_copy": made["time"]["gbps"] / ceilings["copy"], "ceilings": ceilings},
        **{key: here[key] for key in ("device", "driver", "versions", "date")},
    }


def summary(outcome: Outcome) -> list[str]:
    """The last lines."""
    lines = [f"{counted(len(outcome.written), 'receipts')} written"]
    if outcome.failed:
        lines.append(f"{counted(len(outcome.failed), 'kernels')} failed: {', '.join(outcome.failed)}")
    if outcome.left:
        lines.append(f"{counted(len(outcome.left), 'kernels')} left: run `make verify` again, it goes on from here")
    return lines
