"""One step for many kernels, in a process: python -m quack_lite.evidence.worker STEP [--plant NAME] KERNEL...

Prints a line of JSON behind MARK for each kernel. Started by processes.run, which sets what must stand in the
environment before the DSL is imported. --plant plants a fault of tests/faults in the kernels first.
"""

import argparse
import contextlib
import dataclasses
import datetime
import faulthandler
import json
import platform

import torch

from quack_lite import bench, catalog, launch, machine, reference
from quack_lite.bench import records
from quack_lite.evidence import delay, digest, guard, plants, tools, values
from quack_lite.evidence.cases import DTYPES, Case, cases, lengths
from quack_lite.evidence.processes import MARK

TIMED_ELEMENTS = 2**26
PATIENCE_SECONDS, WATCHED_PATIENCE_SECONDS = 40, 90  # for one kernel; a hang ends the process


def main(argv=None) -> None:
    """Runs the step for each kernel and prints what came of it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("step", choices=STEPS)
    parser.add_argument("--plant")
    parser.add_argument("kernels", nargs="+")
    arguments = parser.parse_args(argv)
    listed = {kernel.name: kernel for kernel in catalog.listed()}
    planted = plants.load(arguments.plant).planted if arguments.plant else contextlib.nullcontext
    patience = WATCHED_PATIENCE_SECONDS if arguments.step == "tool" else PATIENCE_SECONDS
    for name in arguments.kernels:
        faulthandler.dump_traceback_later(patience, exit=True)
        result = STEPS[arguments.step](listed[name], planted)
        print(MARK + json.dumps({"kernel": name, **result}), flush=True)
    faulthandler.cancel_dump_traceback_later()


def compile_planted(kernel: catalog.Kernel, planted):
    """The kernel, compiled while the fault is planted."""
    with planted():
        return catalog.compile_kernel(kernel)


def digest_step(kernel, planted) -> dict:
    """The digests; needs no GPU."""
    built = compile_planted(kernel, planted)
    return {"digests": digest.digests(built.ptx, built.ir)}


def values_step(kernel, planted) -> dict:
    """Values, guard regions and bits, and the digests of what ran."""
    built = compile_planted(kernel, planted)
    with bench.gpu_lock(exclusive=False):
        errors, problems = values.check(kernel, built, cases(kernel))
    made = {"options": launch.compile_options("DIR"), "digests": digest.digests(built.ptx, built.ir)}
    return {"values": errors, "guard_elements": guard.MARGIN, "problems": problems, **made}


def delay_step(kernel, planted) -> dict:
    """The delay test; nothing for a kernel without a cluster."""
    if kernel.plan.cluster == 1:
        return {"problems": [], "delay": None}
    right = catalog.compile_kernel(kernel)
    ranks = [0, kernel.plan.cluster - 1]
    seen = {"points": delay.POINTS, "ranks": ranks, "launches": delay.LAUNCHES, "rows": delay.ROWS}
    with bench.gpu_lock(exclusive=False), planted():
        x = Case("delay", delay.ROWS, lengths(kernel.plan)[1]).input(DTYPES[kernel.dtype]).cuda()
        return {"problems": delay.problems(kernel, right, x), "delay": seen}


def tool_step(kernel, planted) -> dict:
    """Launches for a sanitizer tool to watch."""
    built = compile_planted(kernel, planted)
    with bench.gpu_lock(exclusive=False):
        return {"problems": tools.launch_watched(kernel, built), "launched": digest.entries(built.ptx)}


def time_step(kernel, planted) -> dict:
    """The time of a large input against this run's ceilings, and where and with what it was taken."""
    built = compile_planted(kernel, planted)
    n = TIMED_ELEMENTS if kernel.operator == "copy" else lengths(kernel.plan)[1]
    rows = TIMED_ELEMENTS // n
    x = torch.randn(rows, n, device="cuda").to(DTYPES[kernel.dtype])
    y = torch.empty_like(x)
    moved = reference.bytes_moved(kernel.operator, x.shape, x.dtype)
    timing = bench.measure(lambda: values.run(kernel, built, x, y), bytes_moved=moved)
    ceilings = dataclasses.asdict(bench.ceilings())
    time = {"shape": list(x.shape), "seconds": timing.seconds, "spread": timing.spread, "gbps": timing.gbps}
    time |= {"of_copy": timing.gbps / ceilings["copy"], "ceilings": ceilings}
    return {"problems": [], "time": time, **where()}


def where() -> dict:
    """Device, driver, versions and date."""
    versions = {"python": platform.python_version(), "torch": torch.__version__, "flavour": digest.flavour()}
    versions["nvidia-cutlass-dsl"] = machine.version("nvidia-cutlass-dsl")
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    return {"device": torch.cuda.get_device_name(), "driver": records.driver(), "versions": versions, "date": today}


STEPS = {"digest": digest_step, "values": values_step, "delay": delay_step, "tool": tool_step, "time": time_step}

if __name__ == "__main__":
    main()
