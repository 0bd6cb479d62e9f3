"""`python -m quack_lite.draw.records`: pictures of the records, records/bench_*.json, and the README's table."""

import json
from collections.abc import Iterable
from pathlib import Path

from matplotlib.figure import Figure

from quack_lite import ratios
from quack_lite.draw.picture import BLUE, GREY, RED, YELLOW, axes, picture
from quack_lite.ratios import OURS, QUACK, RECORDS, shown

README = Path(__file__).resolve().parents[2] / "README.md"
BEGIN, END = "<!-- ratios, made by python -m quack_lite.draw.records -->", "<!-- end of ratios -->"
COLOURS = {
    OURS: BLUE,
    QUACK: YELLOW,
    "liger-kernel": "#a070a0",
    "torch.compile": "#70a080",
    "torch.compile max-autotune": "#306040",
    "torch": GREY,
}


def speed_by_length(record: dict) -> Figure:
    """GB/s of everybody against the row's length, with the ceilings; a cross at the foot: wrong values.

    Cases with weights in another dtype than float32 are left out. Who refuses a length has no point there.
    """
    figure, plot = axes(7.5, 4.6)
    rows = [row for row in record["rows"] if row.get("weights", "fp32") == "fp32"]
    for name in [name for name in COLOURS if any(name in row["gbps"] for row in rows)]:
        pairs = [(row["n"], row["gbps"].get(name, "")) for row in rows]
        right = [(n, gbps) for n, gbps in pairs if isinstance(gbps, float)]
        wrong = [n for n, gbps in pairs if isinstance(gbps, str) and gbps.startswith("wrong")]
        plot.plot([n for n, _ in right], [gbps for _, gbps in right], "o-", color=COLOURS[name], label=name, zorder=2)
        plot.plot(wrong, [0] * len(wrong), "x", color=COLOURS[name], markersize=9, label=f"{name}: wrong" * bool(wrong))
    limits = dict.fromkeys(("copy", ratios.ceiling(record)))
    for limit, style in zip(limits, ("-", "--"), strict=False):
        plot.axhline(record["ceilings"][limit], color=RED, linewidth=1, linestyle=style, label=f"{limit} ceiling")
    plot.set_xscale("log", base=2)
    highest = max(record["ceilings"][limit] for limit in limits)
    plot.set(xlabel="elements in a row", ylabel="GB/s", ylim=(-100, 1.12 * highest))
    plot.set_title(f"{title(record)}, {record['device']}, {record['date']}", fontsize=10)
    plot.legend(frameon=False, ncols=4, fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.14))
    return figure


def title(record: dict) -> str:
    """As "softmax backward bf16"."""
    way = " backward" * (ratios.direction(record) == "backward")
    return f"{record['operator']}{way} {record['dtype']}"


def table(records: Iterable[dict]) -> str:
    """The README's table in Markdown: a line an operator and direction, over all lengths and dtypes in the records."""
    lines = ["| | cases | over QuACK | over the best peer | lowest over the best peer | share of the ceiling |"]
    lines.append("|---|---|---|---|---|---|")
    for line in ratios.lines(records):
        worst = f"{shown(line.worst[0])} ({line.worst[1]})" if line.worst else "-"
        means = f"{shown(line.quack)} | {shown(line.best)}"
        share = f"{shown(line.share)} of {line.ceiling}"
        lines.append(f"| {line.operator} {line.direction} | {line.cases} | {means} | {worst} | {share} |")
    return "\n".join(lines)


def write_ratios(readme: Path, table: str) -> None:
    """Puts the table between the marks in the README."""
    before, _, rest = readme.read_text().partition(BEGIN)
    readme.write_text(f"{before}{BEGIN}\n{table}\n{END}{rest.partition(END)[2]}")


def main() -> int:
    """Draws all of them, renews the README's table, and says so."""
    for path in sorted(RECORDS.glob("bench_*.json")):
        record = json.loads(path.read_text())
        if record["operator"] != "copy":
            drawn = path.with_suffix(".png")
            drawn.write_bytes(picture(speed_by_length(record), f"{title(record)}: speed by row length").data)
            print(drawn.name)
    write_ratios(README, table(ratios.read_all()))
    print(README.name)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
