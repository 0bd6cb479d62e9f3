"""`python -m quack_lite.bench.counters`: reads the counters of all patterns, takes two times, writes the record.

Needs a Hopper GPU and Nsight Compute's ncu; about a minute.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from quack_lite import machine
from quack_lite.bench.counters import ncu
from quack_lite.simt.counters import RECORD

ROOT = Path(__file__).resolve().parents[3]
SECONDS = 120  # for all runs of ncu together
REST = "rest.json"  # in the raw folder: what the record holds besides counters


def main(arguments: Sequence[str] | None = None) -> int:
    """0 if the record has every pattern and both times; else 1, with a sentence for each that is missing."""
    parser = argparse.ArgumentParser(prog="python -m quack_lite.bench.counters", description=__doc__)
    parser.add_argument("--record", type=Path, default=RECORD, help="the file to write (default: records/simt/)")
    parser.add_argument("--raw", type=Path, help="a folder in which what ncu wrote is kept")
    parser.add_argument("--reread", action="store_true", help="make the record from what is in --raw; needs no GPU")
    given = parser.parse_args(arguments)
    if given.reread and given.raw is None:
        parser.error("--reread needs --raw, the folder of an earlier run")
    with tempfile.TemporaryDirectory() as folder:
        raw = (given.raw or Path(folder)).resolve()
        raw.mkdir(parents=True, exist_ok=True)
        if not given.reread and (lack := gather(raw)):
            print(lack)
            return 1
        return write(raw, given.record)


def gather(raw: Path) -> str:
    """Fills the raw folder. One sentence if this machine lacks something; else empty."""
    if lack := machine.reasons("hopper"):
        return f"the counters are read on a Hopper GPU: {lack}"
    if (tool := ncu.find()) is None:
        return "ncu is not on the path, nor under /usr/local/cuda*/bin or /opt/nvidia/nsight-compute: install it"
    rest = {"ncu": ncu.version(tool), **circumstances()}
    deadline = time.monotonic() + SECONDS
    for number, metrics in enumerate(ncu.QUESTIONS):
        ask(tool, metrics, raw, number, deadline)
        if answer(raw, number)[0]:
            break
    (raw / REST).write_text(json.dumps({"times": try_times(), **rest}))
    return ""


def write(raw: Path, record: Path) -> int:
    """Makes the record from the raw folder, prints what is missing in it; without any counters it writes none."""
    rest = json.loads((raw / REST).read_text())
    rows, problems = [], []
    for number in range(len(ncu.QUESTIONS)):
        rows, found = answer(raw, number)
        problems = [*problems, *found] if not rows else found
        if rows:
            break
    if "problem" in rest["times"]:
        problems.append(f"times: {rest['times']['problem']}")
    print(*problems, sep="\n", end="\n" if problems else "")
    if rows:
        record.parent.mkdir(parents=True, exist_ok=True)
        record.write_text(json.dumps({"patterns": rows, **rest}, indent=1) + "\n")
    print(f"{len(rows)} patterns read, {len(problems)} problems; {'written: ' + str(record) if rows else 'no record'}")
    return 1 if problems else 0


def ask(tool: str, metrics: Sequence[str], raw: Path, number: int, deadline: float) -> None:
    """Runs the worker under ncu; what they write goes to the raw folder: .csv of ncu, .out of both, .jsonl."""
    log, out, told = (raw / f"run{number}.{end}" for end in ("csv", "out", "jsonl"))
    program = [sys.executable, "-m", "quack_lite.bench.counters.worker", str(told)]
    command = ncu.command(tool, metrics, log, program)
    with out.open("w") as file:
        process = subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT, cwd=ROOT, start_new_session=True)
        try:
            process.wait(max(1.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            file.write("\n==ERROR== ended, since the time was over\n")


def answer(raw: Path, number: int) -> tuple[list[dict], list[str]]:
    """(rows of the record, problems) of one run of ncu; neither if it did not take place."""
    said = "\n".join(text_of(raw / f"run{number}.{end}") for end in ("csv", "out"))
    launches = [json.loads(line) for line in text_of(raw / f"run{number}.jsonl").splitlines()]
    rows, problems = rows_of(launches, ncu.parse(said))
    if not rows:
        problems += [f"ncu, run {number}: {line}" for line in ncu.messages(said) or said.splitlines()[-4:] if line]
    return rows, problems


def text_of(path: Path) -> str:
    """A file's text; empty without the file."""
    return path.read_text(errors="replace") if path.is_file() else ""


def rows_of(launches: Sequence[dict], seen: Sequence[ncu.Launch]) -> tuple[list[dict], list[str]]:
    """([{name, numbers, ptx, gpu: {stem: {what: count}}}], a sentence for each pattern without its counters)."""
    of_kernel = {launch.kernel.split("(")[0]: ncu.counts(launch) for launch in seen}
    rows, problems = [], []
    for launch in launches:
        counts = of_kernel.get(launch["entry"], {})
        if launch["problem"]:
            problems.append(f"{launch['name']}: {launch['problem']}")
        elif not all(what in counts.get(stem, {}) for stem, what in ncu.COUNTERS):
            problems.append(f"{launch['name']}: ncu has no counters for {launch['entry']}")
        else:
            rows.append({**{key: launch[key] for key in ("name", "numbers", "ptx")}, "gpu": counts})
    return rows, problems


def try_times() -> dict:
    """The two times, or {problem: why there are none}."""
    try:
        from quack_lite.bench.counters.times import times

        return times()
    except Exception as error:  # the counters are still of use
        return {"problem": f"{type(error).__name__}: {error}"}


def circumstances() -> dict:
    """Device, driver, versions and date."""
    from quack_lite.bench import records

    found = records.circumstances()
    return {key: found[key] for key in ("device", "driver", "versions", "date")}


if __name__ == "__main__":
    raise SystemExit(main())
