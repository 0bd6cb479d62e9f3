"""`python -m quack_lite.draw.training`: records/model.png, the losses and the times of a step in records/model.json."""

import json

from matplotlib.figure import Figure

from quack_lite.draw.picture import BLUE, RED, YELLOW, picture
from quack_lite.ratios import RECORDS

STYLES = {
    "torch": {"color": YELLOW, "linewidth": 4},
    "quack_lite": {"color": BLUE, "linewidth": 1.2},
    "torch, float32": {"color": RED, "linewidth": 1.2, "linestyle": ":"},
}
LEAST = 1e-6  # of a difference that is drawn
COMPARED = ("torch", "quack_lite")


def curves(record: dict) -> Figure:
    """Above the loss of each run by step; below left how far two are apart, right the time of a step."""
    figure = Figure(figsize=(7.5, 6.4), layout="constrained")
    plots = figure.subplot_mosaic([["loss", "loss"], ["apart", "time"]], height_ratios=(3, 2))
    for plot in plots.values():
        plot.spines[["top", "right"]].set_visible(False)
    draw_losses(plots["loss"], record["runs"])
    draw_differences(plots["apart"], record["runs"])
    draw_times(plots["time"], record["milliseconds"])
    title = f"{record['parameters'] / 1e6:.1f} million parameters, {record['device']}, {record['date']}"
    plots["loss"].set_title(title, fontsize=10)
    return figure


def draw_losses(plot, runs: dict) -> None:
    """Torch's wide, so that ours is seen on it."""
    for name, style in STYLES.items():
        plot.plot(runs[name]["losses"], label=name, **style)
    plot.set(xlabel="step", ylabel="loss, nats a byte")
    plot.legend(frameon=False)


def draw_differences(plot, runs: dict) -> None:
    """Ours to torch's, and, for scale, torch's in float32 to torch's."""
    for name in ("torch, float32", "quack_lite"):
        pairs = zip(runs[name]["losses"], runs["torch"]["losses"], strict=True)
        gaps = [max(LEAST, abs(one - other)) for one, other in pairs]
        plot.plot(gaps, color=STYLES[name]["color"], linewidth=0.8, label=name)
    plot.set_yscale("log")
    plot.set(xlabel="step", ylabel="difference to torch's loss")


def draw_times(plot, milliseconds: dict) -> None:
    """A bar for torch and one for ours, with their medians."""
    medians = [milliseconds[name] for name in COMPARED]
    bars = plot.barh(COMPARED, medians, color=[STYLES[name]["color"] for name in COMPARED], height=0.5)
    plot.bar_label(bars, [f"{median:.2f}" for median in medians], label_type="center", color="white")
    plot.invert_yaxis()
    plot.set(xlabel="ms a step")


def main() -> int:
    """Draws, and says so."""
    record = json.loads((RECORDS / "model.json").read_text())
    (RECORDS / "model.png").write_bytes(picture(curves(record), "losses and times of training a model").data)
    print("model.png")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
