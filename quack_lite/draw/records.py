"""`python -m quack_lite.draw.records`: a picture beside each record of a benchmark, records/bench_*.json."""

import json
from pathlib import Path

from matplotlib.figure import Figure

from quack_lite.draw.picture import BLUE, GREY, RED, YELLOW, axes, picture

RECORDS = Path(__file__).resolve().parents[2] / "records"
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


def main() -> int:
    """Draws all of them and says which."""
    for path in sorted(RECORDS.glob("bench_softmax_*.json")):
        image = picture(speed_by_length(json.loads(path.read_text())), "speed by row length")
        path.with_suffix(".png").write_bytes(image.data)
        print(path.with_suffix(".png").name)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
