"""`quack-lite bench OPERATOR`: ours and the peers on the same bytes, in one run, as a table and a record."""

import dataclasses

import torch
from rich.console import Console
from rich.table import Table

from quack_lite import reference
from quack_lite.bench import peers, records
from quack_lite.bench.ceilings import ceilings
from quack_lite.bench.protocol import measure

PEERS = {"softmax": peers.softmax_peers, "copy": peers.copy_peers}
DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}
BYTES = 2**30  # of one input
LENGTHS = (1024, 4096, 8192, 16384, 32768, 65536, 131072, 151936, 262144)
COPY_LENGTHS = (BYTES // 4 - 1, BYTES // 4)
CHECKED_ROWS = 64


def run(operator: str, dtype: str) -> int:
    """Measures, prints the table, writes records/bench_OPERATOR_DTYPE.json; 0, or 1 with a sentence without a GPU.

    ValueError for an operator or a dtype that there is not.
    """
    known("operator", operator, PEERS)
    known("dtype", dtype, DTYPES)
    console = Console(width=120)
    if not torch.cuda.is_available():
        console.print("bench needs an NVIDIA GPU and none answers here; records/ has what was measured elsewhere.")
        return 1
    limit = dataclasses.asdict(ceilings())
    functions = PEERS[operator]()
    table = Table("rows x n", *functions, title=f"{operator} {dtype}, GB/s (share of the copy ceiling)")
    rows = []
    for n in COPY_LENGTHS if operator == "copy" else LENGTHS:
        row = measure_length(operator, DTYPES[dtype], n, functions)
        rows.append(row)
        table.add_row(f"{row['m']} x {n}", *(cell(row["gbps"][name], limit["copy"]) for name in functions))
    console.print(table)
    console.print(f"ceilings: copy {limit['copy']:.0f}, read {limit['read']:.0f}, write {limit['write']:.0f} GB/s")
    content = {"operator": operator, "dtype": dtype, "ceilings": limit, "rows": rows, **records.circumstances()}
    console.print(f"written: {records.write(f'bench_{operator}_{dtype}', content).name}")
    return 0


def known(what: str, given: str, allowed: dict) -> None:
    """ValueError if `given` is not among the allowed."""
    if given not in allowed:
        raise ValueError(f"{what} {given!r} was given; there are {', '.join(allowed)}")


def measure_length(operator: str, dtype: torch.dtype, n: int, functions: dict) -> dict:
    """{m, n, gbps: {peer: GB/s, or why there is none}, spread: {peer: relative}, ours_over} for rows of n elements."""
    torch._dynamo.reset()  # torch.compile gives up on a function after eight shapes
    m = max(1, BYTES // dtype.itemsize // n)
    x = torch.randn(m, n, device="cuda").to(dtype)
    row = {"m": m, "n": n, "gbps": {}, "spread": {}}
    for name, fn in functions.items():
        try:
            timing = measure(fn, x, bytes_moved=reference.bytes_moved(operator, x.shape, dtype))
            error = reference.worst_error(operator, x[:CHECKED_ROWS], fn(x)[:CHECKED_ROWS])
        except Exception as refusal:  # a peer may raise anything at a shape that it does not take
            row["gbps"][name] = f"refused: {type(refusal).__name__}"
            continue
        row["gbps"][name] = round(timing.gbps, 1) if error <= 1 else f"wrong: {wrongness(error)}"
        row["spread"][name] = round(timing.spread, 4)
    row["ours_over"] = ours_over(row["gbps"])
    return row


def ours_over(gbps: dict[str, float | str]) -> dict[str, float]:
    """{peer: our speed over the peer's} of the peers whose values are right."""
    ours = gbps[peers.OURS]
    right = {name: rate for name, rate in gbps.items() if isinstance(rate, float) and name != peers.OURS}
    return {name: round(ours / rate, 3) for name, rate in right.items()} if isinstance(ours, float) else {}


def wrongness(error: float) -> str:
    """What a failed comparison says."""
    return "NaN" if error == float("inf") else f"{error:.1f} times the tolerance"


def cell(gbps: float | str, ceiling: float) -> str:
    """A table's cell."""
    return gbps if isinstance(gbps, str) else f"{gbps:.0f} ({gbps / ceiling:.2f})"
