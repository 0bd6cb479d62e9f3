"""`quack-lite bench`: ours and the peers on the same bytes, in one run, as tables and records."""

import time
from collections.abc import Sequence

import torch
from rich.console import Console
from rich.table import Table

from quack_lite import ratios
from quack_lite.bench import records, runs
from quack_lite.bench.cases import DTYPES, INPUTS, Job, all_jobs

SECONDS = 480  # of a run that is given no other limit
LAST = ("small_work", "host_time")  # alone, behind the others: each is a module here with a record of its name


def run(operator: str, dtype: str, backward: bool = False, json: bool = False) -> int:
    """Measures one operator anew, prints table or record, writes records/bench_OPERATOR[_backward]_DTYPE.json.

    0, or 1 with a sentence without a GPU or where the process ended. ValueError for an operator or a dtype that there
    is not, and for a backward of copy.
    """
    known("operator", operator, INPUTS)
    known("dtype", dtype, DTYPES)
    if backward and operator == "copy":
        raise ValueError("copy has no backward: the gradient goes through as it is; leave --backward out")
    return measure([task(Job(operator, backward, dtype), runs.shares(1, runs.cores())[1])], SECONDS, json)


def run_all(seconds: float = SECONDS, json: bool = False) -> int:
    """Measures what no record holds for, prints the tables; stops before `seconds` are over and says what is left.

    All operators in bf16 both ways and in fp32 forward, then small work and the host's time. 0 if nothing failed.
    """
    left = [job for job in all_jobs() if not records.holds(f"bench_{job.name}")]
    _, helpers = runs.shares(len(left), runs.cores())
    tasks = [task(job, helpers) for job in left]
    tasks += [runs.Task(name, f"quack_lite.bench.{name}") for name in LAST if not records.holds(name)]
    return measure(tasks, seconds, json)


def task(job: Job, helpers: int) -> runs.Task:
    """The process of a job."""
    words = (job.name, "--helpers", str(helpers))
    return runs.Task(f"bench_{job.name}", "quack_lite.bench.worker", words, renewed=True)


def measure(tasks: Sequence[runs.Task], seconds: float, json: bool = False) -> int:
    """Runs the tasks and prints what comes of each; json: on stderr, and on stdout the records that were written."""
    console = Console(width=160, highlight=False, stderr=json)
    if not torch.cuda.is_available():
        console.print("bench needs an NVIDIA GPU and none answers here; records/ has what was measured elsewhere.")
        return 1
    deadline = time.monotonic() + seconds
    jobs, last = ([each for each in tasks if each.renewed is renewed] for renewed in (True, False))

    def tell(ended: runs.Ended) -> None:
        console.print(*told(ended), sep="\n")

    ended = runs.run(jobs, runs.shares(len(jobs), runs.cores())[0], deadline, tell)
    ended += runs.run(last, 1, deadline, tell)
    console.print(summary(ended))
    if json:
        print(ratios.as_json(records.read(each.name) for each in ended if not each.problem and not each.unfinished))
    return 1 if any(each.problem for each in ended) else 0


def told(ended: runs.Ended) -> list:
    """What is printed of a task that ended."""
    if ended.unfinished:
        return []
    if ended.problem:
        return [f"{ended.name}: {ended.problem}"]
    record = records.read(ended.name)
    return [table(record)] if "ceilings" in record else [f"{ended.name}: written"]


def summary(ended: Sequence[runs.Ended]) -> str:
    """How many records were written, and what is left."""
    written = sum(not each.problem and not each.unfinished for each in ended)
    left = [each.name for each in ended if each.unfinished]
    more = f"; left, run again and it goes on from here: {', '.join(left)}" if left else ""
    return f"{written} records written{more}"


def known(what: str, given: str, allowed: dict) -> None:
    """ValueError if `given` is not among the allowed."""
    if given not in allowed:
        raise ValueError(f"{what} {given!r} was given; there are {', '.join(allowed)}")


def table(record: dict) -> Table:
    """A record as a table: GB/s and shares of the ceiling."""
    names = list(dict.fromkeys(name for row in record["rows"] for name in row["gbps"]))
    limit = ratios.ceiling(record)
    title = f"{record['operator']} {ratios.direction(record)} {record['dtype']}, GB/s (share of the {limit} ceiling)"
    limits = record["ceilings"]
    caption = f"ceilings: copy {limits['copy']:.0f}, read {limits['read']:.0f}, write {limits['write']:.0f} GB/s"
    result = Table("rows x n", *names, title=title, caption=caption)
    for row in record["rows"]:
        result.add_row(ratios.shape(row), *(cell(row["gbps"].get(name, "-"), limits[limit]) for name in names))
    return result


def cell(gbps: float | str, ceiling: float) -> str:
    """A table's cell; of a sentence the start."""
    return ":".join(gbps.split(":")[:2]) if isinstance(gbps, str) else f"{gbps:.0f} ({gbps / ceiling:.2f})"
