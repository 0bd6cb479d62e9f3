"""`python -m quack_lite.draw.records`: pictures of the records, records/bench_*.json, and the README's table."""

import json
from pathlib import Path

from matplotlib.figure import Figure

from quack_lite.draw.picture import BLUE, GREY, RED, YELLOW, axes, picture

ROOT = Path(__file__).resolve().parents[2]
RECORDS, README = ROOT / "records", ROOT / "README.md"
BEGIN, END = "<!-- ratios, made by python -m quack_lite.draw.records -->", "<!-- end of ratios -->"
COMPARED = (4096, 65536, 262144)
COLOURS = {"quack_lite": BLUE, "quack-kernels": YELLOW, "torch": GREY, "torch.compile": "#70a080"}


def speed_by_length(record: dict) -> Figure:
    """GB/s of everybody against the row's length, with the copy ceiling; a cross at the foot: wrong values."""
    figure, plot = axes(7.5, 4.2)
    for name in record["rows"][0]["gbps"]:
        pairs = [(row["n"], row["gbps"].get(name)) for row in record["rows"]]
        right = [(n, gbps) for n, gbps in pairs if isinstance(gbps, float)]
        wrong = [n for n, gbps in pairs if isinstance(gbps, str)]
        plot.plot(*zip(*right, strict=True), "o-", color=COLOURS[name], label=name)
        plot.plot(wrong, [0] * len(wrong), "x", color=COLOURS[name], markersize=9, label=f"{name}: wrong" * bool(wrong))
    plot.axhline(record["ceilings"]["copy"], color=RED, linewidth=1, label="copy ceiling")
    plot.set_xscale("log", base=2)
    plot.set(xlabel="elements in a row", ylabel="GB/s", ylim=(-100, 1.12 * record["ceilings"]["copy"]))
    plot.set_title(f"{record['operator']} {record['dtype']}, {record['device']}, {record['date']}", fontsize=10)
    plot.legend(frameon=False, ncols=3, fontsize=9, loc="lower center", bbox_to_anchor=(0.5, 0.06))
    return figure


def ratios(softmax: dict, copy: dict) -> str:
    """The README's table in Markdown: our speed over that of QuACK and of torch's copy, and of the copy ceiling."""
    ceiling = softmax["ceilings"]["copy"]
    lines = ["| | over the peer | share of the copy ceiling |", "|---|---|---|"]
    for row in softmax["rows"]:
        if row["n"] in COMPARED:
            share = row["gbps"]["quack_lite"] / ceiling
            over = f"{row['ours_over']['quack-kernels']:.3f} of QuACK"
            lines.append(f"| softmax bf16, {row['m']} x {row['n']} | {over} | {share:.3f} |")
    row = copy["rows"][-1]
    over = f"{row['ours_over']['torch']:.3f} of torch's copy"
    share = row["gbps"]["quack_lite"] / copy["ceilings"]["copy"]
    return "\n".join([*lines, f"| copy bf16, {row['m'] * row['n']} elements | {over} | {share:.3f} |"])


def write_ratios(readme: Path, table: str) -> None:
    """Puts the table between the marks in the README."""
    before, _, rest = readme.read_text().partition(BEGIN)
    readme.write_text(f"{before}{BEGIN}\n{table}\n{END}{rest.partition(END)[2]}")


def main() -> int:
    """Draws all of them, renews the README's table, and says so."""
    records = {path.stem: json.loads(path.read_text()) for path in sorted(RECORDS.glob("bench_*.json"))}
    for name, record in records.items():
        if record["operator"] != "copy":
            path = RECORDS / f"{name}.png"
            path.write_bytes(picture(speed_by_length(record), "speed by row length").data)
            print(path.name)
    write_ratios(README, ratios(records["bench_softmax_bf16"], records["bench_copy_bf16"]))
    print(README.name)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
