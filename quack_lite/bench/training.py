"""`python -m quack_lite.bench.training`: one model trained with our operators and with torch's, loss and time a step.

Three runs from the same weights over the same bytes: torch's operators and ours in bfloat16, and torch's with float32
for everything. How far float32 lies from torch's bfloat16 says how close two curves can be expected to lie.
"""

import math
import statistics
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch
from rich.console import Console
from rich.progress import Progress
from torch.nn import functional as torch_functional

from quack_lite import functional
from quack_lite.bench import corpus, records
from quack_lite.bench.model import Model, Operators, Size
from quack_lite.bench.protocol import gpu_lock

EPS = 1e-6
BETAS = (0.9, 0.95)
QUACK_LITE, TORCH, FLOAT32 = "quack_lite", "torch", "torch, float32"


class Schedule(NamedTuple):
    """rate: the highest learning rate.  rise: steps until it is reached.  skipped: steps before times count."""

    steps: int = 300
    batch: int = 64
    rate: float = 1e-3
    rise: int = 30
    skipped: int = 50
    seed: int = 0


class Run(NamedTuple):
    """Of each step the loss and the milliseconds on the GPU; seconds of the whole run, compilation included."""

    losses: list[float]
    milliseconds: list[float]
    seconds: float


def torch_add_rms_norm(x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor):
    """The normed sum in the dtype of x, and the sum."""
    residual = residual + x
    return torch_functional.rms_norm(residual, weight.shape, weight, EPS).to(x.dtype), residual


TORCHS = Operators(
    rms_norm=lambda x, weight: torch_functional.rms_norm(x, weight.shape, weight, EPS),
    add_rms_norm=torch_add_rms_norm,
    swiglu=lambda gate, up: torch_functional.silu(gate) * up,
    cross_entropy=torch_functional.cross_entropy,
)
OURS = Operators(
    rms_norm=lambda x, weight: functional.rms_norm(x, weight.shape, weight, EPS),
    add_rms_norm=lambda x, residual, weight: functional.add_rms_norm(x, residual, weight.shape, weight, EPS),
    swiglu=functional.swiglu,
    cross_entropy=functional.cross_entropy,
)


def train(model: Model, schedule: Schedule, content: torch.Tensor, starts: torch.Tensor, length: int) -> Iterator:
    """Trains the model in place, and gives the loss of each step, a tensor that is not waited for.

    content: (bytes) uint8, starts: (steps, batch) int64, both on the model's device.  length: bytes of a sequence.
    """
    optimizer = torch.optim.AdamW(model.parameters(), lr=schedule.rate, betas=BETAS, fused=True)
    rates = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: share_of_rate(step, schedule))
    for begins in starts:
        loss = model(*corpus.sequences(content, begins, length))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        rates.step()
        yield loss.detach()


def share_of_rate(step: int, schedule: Schedule) -> float:
    """Rises evenly to 1, and falls to 0 as half a cosine."""
    return min(1, (step + 1) / schedule.rise) * (1 + math.cos(math.pi * step / schedule.steps)) / 2


def fresh(size: Size, operators: Operators, seed: int, dtype: torch.dtype) -> Model:
    """A model on the CPU whose weights depend on size and seed only."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Model(size, operators, dtype)


def timed(steps: Iterator, advance: Callable[[], None]) -> Run:
    """Goes through the steps with an event between any two."""
    begin, losses, marks = time.perf_counter(), [], [mark()]
    for loss in steps:
        losses.append(loss)
        marks.append(mark())
        advance()
    torch.cuda.synchronize()
    milliseconds = [round(one.elapsed_time(next), 4) for one, next in zip(marks, marks[1:], strict=False)]
    found = [round(loss, 5) for loss in torch.stack(losses).tolist()]
    return Run(found, milliseconds, round(time.perf_counter() - begin, 2))


def mark() -> torch.cuda.Event:
    """An event in the current stream."""
    event = torch.cuda.Event(enable_timing=True)
    event.record()
    return event


def summary(runs: dict[str, Run], skipped: int) -> dict:
    """How far the curves are apart, and the median milliseconds of a step without the first `skipped`.

    apart: the largest difference of our losses to torch's.  from_float32: of ours and of torch's to those in float32.
    speedup: torch's time over ours.
    """
    gaps = differences(runs[QUACK_LITE].losses, runs[TORCH].losses)
    exact = {name: max(differences(runs[name].losses, runs[FLOAT32].losses)) for name in (QUACK_LITE, TORCH)}
    medians = {name: statistics.median(run.milliseconds[skipped:]) for name, run in runs.items()}
    return {
        "apart": round(max(gaps), 5),
        "at_step": gaps.index(max(gaps)),
        "from_float32": {name: round(gap, 5) for name, gap in exact.items()},
        "milliseconds": {name: round(median, 3) for name, median in medians.items()},
        "speedup": round(medians[TORCH] / medians[QUACK_LITE], 3),
    }


def differences(losses: list[float], others: list[float]) -> list[float]:
    """Step by step; infinite where one of the two is not a number."""
    gaps = [abs(one - other) for one, other in zip(losses, others, strict=True)]
    return [math.inf if math.isnan(gap) else gap for gap in gaps]


def run_all(size: Size, schedule: Schedule, content: bytes, console: Console) -> dict[str, Run]:
    """The three runs, one after the other."""
    starts = corpus.starts(content, schedule.steps, schedule.batch, size.length, schedule.seed).cuda()
    data = torch.frombuffer(bytearray(content), dtype=torch.uint8).cuda()
    low, high = torch.bfloat16, torch.float32
    kinds = {TORCH: (TORCHS, low), QUACK_LITE: (OURS, low), FLOAT32: (TORCHS, high)}
    runs = {}
    with gpu_lock(exclusive=True), Progress(console=console) as progress:
        for name, (operators, dtype) in kinds.items():
            bar = progress.add_task(name, total=schedule.steps)
            model = fresh(size, operators, schedule.seed, dtype).cuda()
            steps = train(model, schedule, data, starts, size.length)
            runs[name] = timed(steps, lambda bar=bar: progress.advance(bar))
    return runs


def sentences(found: dict, runs: dict[str, Run]) -> list[str]:
    """What is printed."""
    lines = [
        f"{name}: {found['milliseconds'][name]:.2f} ms a step, last loss {run.losses[-1]:.4f}, {run.seconds:.0f} s"
        for name, run in runs.items()
    ]
    exact = found["from_float32"]
    return [
        *lines,
        f"largest difference of losses, ours to torch's: {found['apart']:.4f}, in step {found['at_step']}",
        f"to those in float32: ours {exact[QUACK_LITE]:.4f}, torch's {exact[TORCH]:.4f}",
        f"a step takes torch {found['speedup']:.3f} times as long as quack_lite",
    ]


def main() -> int:
    """Trains, prints, writes records/model.json; 0, or 1 with a sentence without a GPU."""
    console = Console(width=120, highlight=False)
    if not torch.cuda.is_available():
        console.print("training needs an NVIDIA GPU and none answers here; records/model.json has what was measured")
        return 1
    size, schedule, content = Size(), Schedule(), corpus.text()
    runs = run_all(size, schedule, content, console)
    found = summary(runs, schedule.skipped)
    console.print(*sentences(found, runs), sep="\n")
    parameters = sum(p.numel() for p in fresh(size, TORCHS, schedule.seed, torch.bfloat16).parameters())
    record = {"size": size._asdict(), "parameters": parameters, "schedule": schedule._asdict()}
    record |= {"text": corpus.description(content), **found}
    record |= {"runs": {name: run._asdict() for name, run in runs.items()}, **records.circumstances()}
    console.print(f"written: {records.write('model', record).name}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
