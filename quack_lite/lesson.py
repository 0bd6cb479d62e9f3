"""What a lesson imports; once imported, a notebook skips the cells that this machine cannot run.

A cell whose first line is `# needs compiler`, `# needs gpu` or `# needs hopper` runs where the machine has that place;
elsewhere it prints one line that says why, raises nothing, and the next cell follows.
"""

from __future__ import annotations

import base64
import gc
import inspect
import math
import os
import re
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from quack_lite import listings, machine
from quack_lite.grading.cells import TOOLS
from quack_lite.loading import load

if TYPE_CHECKING:
    import torch

    from quack_lite.launch import Built

__all__ = [*sorted(TOOLS), "steps"]

ROOT = Path(__file__).resolve().parents[1]
NBGRADER = "NBGRADER_EXECUTION"  # set where nbgrader runs a notebook, to "validate" or "autograde"
NEEDS = re.compile(r"# needs (compiler|gpu|hopper)\s*$")


@dataclass(frozen=True)
class Prediction:
    """A guess that waits for its measurement."""

    title: str
    guess: float
    unit: str


_predictions: list[Prediction] = []
_units: dict[str, str] = {}  # of all titles that were asked for, with a guess or without


def build(host: Callable, *examples: torch.Tensor | float, align: int = 16) -> Built:
    """Compiles a @cute.jit host function for tensors and numbers like the examples: see quack_lite.launch.build."""
    from quack_lite import launch

    return launch.build(host, *examples, align=align)


def predict(title: str, guess: float | None = None, *, unit: str) -> None:
    """Records what you expect before you measure it; without a guess it says so and carries on.

    ValueError unless the guess is a finite number.
    """
    _units[title] = unit
    if guess is None:
        print(f"{title}: no guess recorded")
        return
    if isinstance(guess, bool) or not isinstance(guess, int | float) or not math.isfinite(guess):
        raise ValueError(f"the guess is {guess!r}; give a number, in {unit}, or none at all")
    from quack_lite.grading.progress import Progress

    _predictions.append(Prediction(title, float(guess), unit))
    Progress().guess(title, float(guess), unit)
    print(f"{title}: your guess is {guess:g} {unit}")


def reveal(title: str, value: float) -> None:
    """Prints what was measured beside the newest guess of that title, in its unit, and keeps both.

    For what `measure` does not draw. ValueError for a title that no predict() has asked for.
    """
    if title not in _units:
        raise ValueError(f"{title!r} was not asked for: run the cell with predict, or give its title letter by letter")
    from quack_lite.grading.progress import Progress

    Progress().measured(title, value)
    guess = next((known.guess for known in reversed(_predictions) if known.title == title), None)
    said = "no guess recorded" if guess is None else f"your guess was {guess:g}"
    shown = f"{value:.0f}" if value >= 100 else f"{value:.3g}"
    print(f"{title}: {shown} {_units[title]}; {said}")


def guesses() -> None:
    """Draws all guesses of predict that were measured, beside what was measured; says so where there is none."""
    from IPython.display import display

    from quack_lite import draw
    from quack_lite.grading.progress import Progress

    given = Progress().read()["guesses"]
    if any("measured" in entry for entry in given.values()):
        display(draw.guesses(given))
    else:
        print("no guess was recorded and measured: predict takes a number between the title and the unit")


def measure(kernels: dict[str, Callable], *args: Any, bytes_moved: int, ceiling: str = "copy") -> dict[str, float]:
    """Times kernels[name](*args) one after the other and draws the GB/s as bars.

    bytes_moved: useful bytes of one call.  ceiling: "read", "write" or "copy", the line over the bars.
    A guess in GB/s whose title holds a bar's name is the mark on that bar. Returns {name: GB/s}.
    """
    from IPython.display import display

    from quack_lite import bench, draw

    if ceiling not in ("read", "write", "copy"):
        raise ValueError(f'ceiling is {ceiling!r}; it is "read", "write" or "copy"')
    limits = bench.ceilings()
    reached = {name: bench.measure(kernel, *args, bytes_moved=bytes_moved).gbps for name, kernel in kernels.items()}
    display(draw.speed_bars(reached, ceiling, getattr(limits, ceiling), _guesses_of(reached)))
    return reached


def show(*functions: Callable | str) -> listings.Source:
    """The source of functions (or texts), one below the other, with colours, for a cell's end."""
    return listings.Source("\n\n\n".join(listings.whole(function) for function in functions))


def show_diff(before: Callable | str, after: Callable | str) -> listings.Diff:
    """The second of two functions (or texts), with the lines by which it differs from the first, for a cell's end."""
    return listings.Diff(listings.undecorated(before).splitlines(), listings.undecorated(after).splitlines())


def steps(number: int | str) -> ModuleType:
    """The kernels between the first and the last of a lesson: notebooks/steps/NN.py as a module.

    ValueError where the lesson has no such file.
    """
    path = ROOT / "notebooks" / "steps" / f"{int(number):02d}.py"
    if not path.exists():
        raise ValueError(f"lesson {int(number):02d} has no steps: {path.relative_to(ROOT).as_posix()} does not exist")
    return load(f"steps_{path.stem}", path)


def expect_error(what: Callable | str, *, apart: bool = False, seconds: float | None = None) -> None:
    """Runs what must fail, a function without arguments or an expression in quotes, and prints what it says.

    Of the message, what is the same each time.  apart: in a process of its own, where it can break nothing here.
    seconds: after so many that process is ended, for what may never come back; the start of Python is among them.
    AssertionError where nothing fails.
    """
    from quack_lite.grading import apart as process

    if apart:
        end = process.run(_text_of(what), seconds=seconds or process.SECONDS)
        error = end.error
        print(end.said, end="")
    else:
        error = ""
        try:
            what() if callable(what) else eval(what, _shell().user_ns)
        except Exception as caught:
            error = process.stable(caught)
    if not error:
        raise AssertionError("it was to fail, and did not")
    print(error)


def apart(what: Callable | str, *, memcheck: bool = False, seconds: float | None = None) -> None:
    """Runs a function of this notebook, without arguments, in a process of its own; prints what it says, and an error.

    The cells that define it go with it; nothing comes back.  seconds: as in expect_error, not under memcheck.
    memcheck: under NVIDIA's compute-sanitizer, which looks at every access to memory, with each tensor an allocation of
    its own; its first finding and its summary are printed.
    """
    from quack_lite.grading import apart as process

    if not memcheck:
        end = process.run(_text_of(what), seconds=seconds or process.SECONDS)
        print((end.said + end.error).rstrip("\n"))
        return
    from quack_lite.evidence import sanitizers

    if sanitizers.find() is None:
        print("compute-sanitizer is not installed: pip install -r requirements-tools.txt")
        return
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        options = ["--tool", "memcheck", *sanitizers.TOOLS["memcheck"].options, "--log-file", str(log)]
        alone = {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}
        end = process.run(_text_of(what), [sanitizers.find(), *options], alone)
        print(end.said + process.findings(log.read_text(errors="replace") if log.exists() else ""))


def _text_of(what: Callable | str) -> str:
    """A file that defines `answer`, from the notebook's cells, or from the file in which a function stands."""
    from quack_lite.grading import history

    if _shell() is not None:
        return history.text_of(f"lambda: {what}" if isinstance(what, str) else what.__name__)
    path = inspect.getsourcefile(inspect.unwrap(what))
    return f"from quack_lite.loading import load\n\nanswer = load('given', {path!r}).{what.__name__}\n"


def check(task_id: str, answer: Any) -> float | None:
    """Grades an answer in a process of its own; raises GradeFailed with one sentence where it does not stand.

    answer: what the task asks for. A kernel task takes the @cute.jit host function, uncompiled, or its name in quotes,
    so that the cell also runs where there is no compiler. A kernel task without a GPU is parked, which is no failure.
    A program task takes the program; where it fails, the access map of the line at fault is shown.
    nbgrader gives a cell without an exception all its points, unless it returns others: a parked task returns 0 there.
    """
    from quack_lite.grading import spawn
    from quack_lite.grading.feedback import GradeFailed
    from quack_lite.grading.history import answer_text
    from quack_lite.grading.progress import Progress

    [verdict] = spawn.grade([spawn.Answer(task_id, answer_text(task_id, answer))])
    for line in verdict.lines():
        print(line)
    if verdict.picture:
        _show_png(**verdict.picture)
    if Path.cwd() == ROOT / "work":
        Progress().record(verdict)
        if verdict.status == "passed":
            print(f'hint("{task_id}") now shows the course\'s solution')
    if verdict.status == "failed":
        raise GradeFailed(verdict.sentence, f"{task_id}, {verdict.gate}")
    return 0.0 if verdict.status == "parked" and NBGRADER in os.environ else None


def _show_png(png: str, alt: str) -> None:
    from IPython.display import Image, display

    display(Image(base64.b64decode(png), format="png", alt=alt))


def hint(task_id: str) -> None:
    """Shows the next of the task's three hints; after them, or once the task has passed, the course's solution."""
    from quack_lite.grading import hints

    hints.hint(task_id)


def progress() -> None:
    """Shows which lessons and tasks have passed, are parked or open, the points, and what to do next."""
    from quack_lite.grading import standing

    standing.show()


def release() -> None:
    """Gives the GPU memory of this notebook back: its CUDA tensors are forgotten, saved outputs among them."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available():
        return
    if _shell() is not None:
        _forget(_shell(), lambda value: isinstance(value, torch.Tensor) and value.is_cuda)
    gc.collect()
    torch.cuda.empty_cache()


def skip_what_is_missing(lines: list[str]) -> list[str]:
    """An IPython input transformer: a cell that needs what this machine lacks becomes one print."""
    first = next((line for line in lines if line.strip()), "")
    needed = NEEDS.match(first)
    if needed is None or machine.places()[needed[1]]:
        return lines
    return [f"print({f'This cell needs {needed[1]}: {machine.reasons(needed[1])}'!r})\n"]


def _shell():
    module = sys.modules.get("IPython")
    return module.get_ipython() if module else None


def _forget(shell, unwanted: Callable[[Any], bool]) -> None:
    """Drops the notebook's names of such values and what IPython keeps beside them: Out, _ and the last result."""
    shell.drop_by_id({name: value for name, value in shell.user_ns.items() if unwanted(value)})
    shell.displayhook.flush()
    if shell.last_execution_result is not None:
        shell.last_execution_result.result = None


def _teach(shell) -> None:
    """Hooks the cells that need something into the notebook, once, also after a reload of this module."""
    from quack_lite.grading import history

    transformers = shell.input_transformers_cleanup
    kept = [known for known in transformers if getattr(known, "__name__", "") != skip_what_is_missing.__name__]
    transformers[:] = [skip_what_is_missing, *kept]
    history.watch(shell)


def _guesses_of(reached: dict[str, float]) -> dict[str, float]:
    """The newest guess of each bar that has one; what was measured is kept beside it."""
    from quack_lite.grading.progress import Progress

    guesses = {}
    for prediction in _predictions:
        for name in reached:
            if prediction.unit == "GB/s" and name in prediction.title:
                guesses[name] = prediction.guess
                Progress().measured(prediction.title, reached[name])
    return guesses


if _shell() is not None:
    _teach(_shell())
