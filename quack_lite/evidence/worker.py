"""One step for many kernels, in a process: python -m quack_lite.evidence.worker STEP [OPTIONS] KERNEL...

Prints a line of JSON behind MARK for each kernel. Started by processes.run, which sets what must stand in the
environment before the DSL is imported. --plant plants a fault of tests/faults in the kernels first. --objects names
a folder: "prepare" leaves the compiled kernels there, and the other steps take them from it.
"""

import argparse
import contextlib
import dataclasses
import datetime
import faulthandler
import json
import platform

import torch

from quack_lite import bench, catalog, launch, machine
from quack_lite.bench import records
from quack_lite.evidence import delay, digest, guard, objects, plants, receipts, sanitizers, timing, tools, values
from quack_lite.evidence.cases import cases
from quack_lite.evidence.processes import MARK

# For one kernel; a hang ends the process. A planted fault may hang, and is seen by that.
PATIENCE_SECONDS, WATCHED_PATIENCE_SECONDS, PLANTED_PATIENCE_SECONDS = 60, 240, 25


def main(argv=None) -> None:
    """Runs the step for each kernel and prints what came of it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("step", choices=STEPS)
    parser.add_argument("--plant")
    parser.add_argument("--objects")
    parser.add_argument("kernels", nargs="+")
    arguments = parser.parse_args(argv)
    torch.set_num_threads(1)  # there are as many processes as cores, and threads would wait for one another
    listed = {kernel.name: kernel for kernel in catalog.listed()}
    patience = PLANTED_PATIENCE_SECONDS if arguments.plant else PATIENCE_SECONDS
    if arguments.step == "tool":
        patience = WATCHED_PATIENCE_SECONDS
    for name in arguments.kernels:
        faulthandler.dump_traceback_later(patience, exit=True)
        result = STEPS[arguments.step](listed[name], Made(arguments.plant, arguments.objects))
        print(MARK + json.dumps({"kernel": name, **result}), flush=True)
    faulthandler.cancel_dump_traceback_later()


@dataclasses.dataclass(frozen=True)
class Made:
    """How kernels are made in this process: with a fault planted, or taken from a folder of compiled ones."""

    plant: str | None = None
    folder: str | None = None

    def planted(self):
        """While it lasts, the fault is in what is compiled."""
        return plants.load(self.plant).planted() if self.plant else contextlib.nullcontext()

    def kernel(self, kernel: catalog.Kernel) -> launch.Built:
        """The compiled kernel."""
        with self.planted():
            return objects.read(kernel, self.folder)


def digest_step(kernel, made: Made) -> dict:
    """The digests; needs no GPU."""
    return described(made.kernel(kernel))


def described(built: launch.Built) -> dict:
    """What a receipt says of the compiled code."""
    options, entries = launch.compile_options("DIR"), digest.entries(built.ptx)
    return {"digests": digest.digests(built.ptx, built.ir), "options": options, "entries": entries}


def prepare_step(kernel, made: Made) -> dict:
    """Compiles for all other steps; without a receipt that holds it takes the time too, while nothing else runs."""
    built = catalog.compile_kernel(kernel)
    result = described(built)
    lacking = receipts.lacks(kernel.name, result["digests"])
    if lacking or receipts.unwatched(kernel.name, sanitizers.TOOLS):
        objects.write(kernel, built, made.folder)
    if lacking:
        result["time"] = timing.take(kernel, built)
    return result


def values_step(kernel, made: Made) -> dict:
    """Values, guard regions and bits."""
    built = made.kernel(kernel)
    with bench.gpu_lock(exclusive=False):
        errors, problems = values.check(kernel, built, cases(kernel))
    return {"values": errors, "guard_elements": guard.MARGIN, "problems": problems}


def delay_step(kernel, made: Made) -> dict:
    """The delay test; nothing for a kernel without a cluster."""
    if kernel.plan.cluster == 1:
        return {"problems": [], "delay": None}
    right = objects.read(kernel, made.folder)
    with bench.gpu_lock(exclusive=False), made.planted():
        found = delay.problems(kernel, right)
    points = [point.name for point in delay.POINTS]
    seen = {"points": points, "ranks": [0, kernel.plan.cluster - 1], "launches": delay.LAUNCHES}
    return {"problems": found, "delay": {**seen, "back_to_back": delay.BACK_TO_BACK}}


def check_step(kernel, made: Made) -> dict:
    """values and delay, in one process."""
    seen, late = values_step(kernel, made), delay_step(kernel, made)
    return {**seen, **late, "problems": seen["problems"] + late["problems"]}


def tool_step(kernel, made: Made) -> dict:
    """Launches for a sanitizer tool to watch."""
    built = made.kernel(kernel)
    with bench.gpu_lock(exclusive=False):
        return {"problems": tools.launch_watched(kernel, built)}


def ceilings_step(kernel, made: Made) -> dict:
    """This run's ceilings, the same for every kernel, and where and with what they were taken."""
    versions = {"python": platform.python_version(), "torch": torch.__version__, "flavour": digest.flavour()}
    versions["nvidia-cutlass-dsl"] = machine.version("nvidia-cutlass-dsl")
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    place = {"device": torch.cuda.get_device_name(), "driver": records.driver(), "versions": versions, "date": today}
    return {"ceilings": dataclasses.asdict(bench.ceilings()), **place}


STEPS = {
    "digest": digest_step,
    "prepare": prepare_step,
    "ceilings": ceilings_step,
    "values": values_step,
    "delay": delay_step,
    "check": check_step,
    "tool": tool_step,
}

if __name__ == "__main__":
    main()
