"""`python -m quack_lite.simt`: the Model's counts beside those that Nsight Compute read on a GPU."""

import sys

from quack_lite.counted import counted
from quack_lite.simt import counters


def main() -> int:
    """Prints both for every pattern, the two times, and how many patterns are equal; 1 without a record."""
    try:
        record = counters.read()
    except FileNotFoundError as missing:
        print(missing, file=sys.stderr)
        return 1
    compared = counters.compare(record)
    print(f"GPU: {record['device']}, driver {record['driver']}, ncu {record['ncu']}, {record['date']}")
    for name, rows in compared.items():
        print(*described(name, rows), sep="\n")
    print(*times(record), sep="\n")
    equal = sum(all(row.equal for row in rows) for rows in compared.values())
    print(f"{len(compared)} patterns, {equal} equal")
    return 0


def described(name: str, rows: list[counters.Row]) -> list[str]:
    """A line for each PTX stem of a pattern: the Model's counts, and the GPU's where they differ."""
    lines = []
    for stem in dict.fromkeys(row.stem for row in rows):
        mine = [row for row in rows if row.stem == stem]
        model = ", ".join(f"{row.model} {row.what}" for row in mine)
        other = ", ".join(f"{row.gpu} {row.what}" for row in mine if not row.equal)
        unread = ", ".join(row.what for row in mine if row.gpu is None)
        ending = [f"differs, GPU: {other}"] * bool(other) + [f"GPU: {unread} not read"] * bool(unread)
        lines.append(f"{'' if lines else name:<34}{stem:<16}{model:<44}{'; '.join(ending) or 'GPU: the same'}")
    return lines


def times(record: dict) -> list[str]:
    """Counts are not time: the Model has no caches. The patterns that were timed, with their sectors."""
    if "rows" not in record["times"]:
        return []
    gpu = {row["name"]: row["gpu"]["ld.global"] for row in record["patterns"]}
    lines = [f"Counts are not time; read ceiling {record['times']['read_ceiling']:.0f} GB/s:"]
    for row in record["times"]["rows"]:
        found = gpu[row["pattern"]]
        hits = f", {found['L1 hits']} of them from L1" if "L1 hits" in found else ""
        lines.append(f"  {row['pattern']}: {counted(found['sectors'], 'sectors')} a warp{hits}; {row['gbps']} GB/s")
    return lines


if __name__ == "__main__":
    raise SystemExit(main())
