"""Nsight Compute's command line: what is asked of it, and what it says.

Source: Nsight Compute Documentation, "Nsight Compute CLI" (options, CSV) and "Profiling Guide" (metric names).
"""

import csv
import re
import subprocess
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from quack_lite import machine

# (PTX stem, what is counted): the metric.
COUNTERS = {
    ("ld.global", "requests"): "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
    ("ld.global", "sectors"): "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    ("st.global", "requests"): "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum",
    ("st.global", "sectors"): "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
    ("ld.shared", "wavefronts"): "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
    ("ld.shared", "conflicts"): "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",
    ("st.shared", "wavefronts"): "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
    ("st.shared", "conflicts"): "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum",
}
# Not compared if the installed version does not know them.
MORE = {
    ("ld.shared", "requests"): "smsp__inst_executed_op_shared_ld.sum",
    ("st.shared", "requests"): "smsp__inst_executed_op_shared_st.sum",
    ("ld.global", "L1 hits"): "l1tex__t_sectors_pipe_lsu_mem_global_op_ld_lookup_hit.sum",
    ("all", "instructions"): "smsp__inst_executed.sum",
}
# One number an opcode, of machine instructions that have a PTX stem of their own.
BY_OPCODE = "sass__inst_executed_per_opcode"
OPCODES = {"SHFL": "shfl.sync.bfly", "BAR": "bar.sync"}
# What to ask for, from the most to the least.
QUESTIONS = (
    (*COUNTERS.values(), *MORE.values(), BY_OPCODE),
    (*COUNTERS.values(), *MORE.values()),
    tuple(COUNTERS.values()),
)
KERNELS = "regex:kernel_cutlass"
OPCODE_COUNT = re.compile(r"\b([A-Z][A-Z0-9]+)(?:\.[\w.]+)?\s*:\s*([\d,]+)")


class Launch(NamedTuple):
    """One kernel as Nsight Compute saw it. metrics: {name: value as it stands in the CSV}."""

    kernel: str
    metrics: Mapping[str, str]


def find() -> str | None:
    """ncu, as machine.tool finds it; None without it."""
    return machine.tool("ncu")


def version(ncu: str) -> str:
    """The version that ncu says it has."""
    said = subprocess.run([ncu, "--version"], capture_output=True, text=True, check=True).stdout
    found = re.search(r"Version (\S+)", said)
    return found[1] if found else said.strip()


def command(ncu: str, metrics: Sequence[str], log: Path, program: Sequence[str]) -> list[str]:
    """The command that runs the program and writes the metrics of its kernels to the log as CSV."""
    instances = ["--print-metric-instances", "details"] if BY_OPCODE in metrics else []
    options = ["--csv", "--log-file", str(log), "--clock-control", "none", "--print-units", "base", *instances]
    return [ncu, *options, "-k", KERNELS, "--metrics", ",".join(metrics), *program]


def parse(text: str) -> list[Launch]:
    """The launches in the CSV that stands among ncu's messages, in their order; none without a header."""
    lines = text.splitlines()
    start = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), len(lines))
    found = {}
    for row in csv.DictReader(line for line in lines[start:] if line.startswith('"')):
        launch = found.setdefault(row["ID"], Launch(row["Kernel Name"], {}))
        launch.metrics[row["Metric Name"]] = row["Metric Value"]
    return [found[number] for number in sorted(found, key=int)]


def messages(text: str) -> list[str]:
    """ncu's errors and warnings."""
    return [line for line in text.splitlines() if line.startswith(("==ERROR==", "==WARNING=="))]


def counts(launch: Launch) -> dict[str, dict[str, int]]:
    """{PTX stem: {what is counted: count}} of the metrics that have a number."""
    found = {}
    for (stem, what), metric in {**COUNTERS, **MORE}.items():
        if (value := integer(launch.metrics.get(metric, ""))) is not None:
            found.setdefault(stem, {})[what] = value
    for stem, value in by_opcode(launch.metrics.get(BY_OPCODE, "")).items():
        found.setdefault(stem, {})["requests"] = value
    return found


def integer(value: str) -> int | None:
    """The number of a metric, which may have separators between thousands; None of "n/a" and the like."""
    match = re.match(r"[\d,]+(?:\.0+)?(?=\s|$)", value)
    return int(match[0].split(".")[0].replace(",", "")) if match else None


def by_opcode(value: str) -> dict[str, int]:
    """{PTX stem: warps' instructions} of a metric with an instance an opcode: "70 (BAR: 4; SHFL: 28; ...)".

    Empty without instances; a stem that is not among them was not executed.
    """
    found = Counter()
    for opcode, number in OPCODE_COUNT.findall(value):
        found[opcode] += int(number.replace(",", ""))
    return {stem: found[opcode] for opcode, stem in OPCODES.items()} if found else {}
