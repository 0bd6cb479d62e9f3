"""Takes one answer through the gates of its task, in this process."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from quack_lite.grading.feedback import LONGEST, STUB, GradeFailed, Verdict, first_line, line_of
from quack_lite.grading.task import PLACE_NAMES, Submission, Task

if TYPE_CHECKING:
    from quack_lite.simt import Request

# What NumPy and Python say of a program that is written as for one thread, and what to do.
SAY_MORE = {
    "The truth value of an array": "in a program a value has an entry for each lane, and if, min and max want one: use "
    "where=, np.where, np.minimum, np.maximum",
    "'Memory' object": "load with b.ld_global(x, i), store with b.st_global(y, i, value)",
}


def judge(task: Task, answer: Any, here: Mapping[str, bool], source: str = "") -> Verdict:
    """The verdict on `answer`. `here` says which places this machine has; `source` names the file of the answer."""
    submission = Submission(answer, task.examples, task.trials, task.align)
    seen: list[tuple[str, str]] = []
    for gate in task.gates:
        if not here[gate.place]:
            waits = f"it waits for {PLACE_NAMES[gate.place]} (there: quack-lite grade --parked)"
            return Verdict(task.id, "parked", gate.name, waits, tuple(seen))
        try:
            seen.append((gate.name, gate.judge(submission)))
        except GradeFailed as failure:
            picture = _access_map(failure.request) if failure.request else {}
            return Verdict(task.id, "failed", gate.name, failure.sentence[:LONGEST], tuple(seen), picture)
        except BaseException as error:
            return Verdict(task.id, "failed", gate.name, explain(error, source), tuple(seen))
    return Verdict(task.id, "passed", seen=tuple(seen))


def _access_map(request: Request) -> dict[str, str]:
    """As Verdict.picture."""
    from quack_lite import draw

    image = draw.access_map(request)
    return {"png": base64.b64encode(image.data).decode(), "alt": image.alt}


def explain(error: BaseException, source: str) -> str:
    """One sentence on an error that the answer itself raised, with the answer's line that it came from."""
    if isinstance(error, NotImplementedError):
        return f"{STUB} ({error}): write it where the NotImplementedError stands"
    if isinstance(error, SystemExit):
        return f"your code ends Python{line_of(error, source)}: take that out, a function only returns"
    said = first_line(error)
    more = next((f"; {more}" for begin, more in SAY_MORE.items() if said.startswith(begin)), "")
    return f"your code raised {type(error).__name__}{line_of(error, source)}: {said}{more}"
