"""What a grader says: a Verdict, and GradeFailed for an answer that does not stand."""

from __future__ import annotations

import linecache
import re
import traceback
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from quack_lite.simt import Request

COLOURS = re.compile(r"\x1b\[[0-9;]*m")  # of a terminal, in the compiler's messages
LONGEST = 1000  # characters of a sentence: it may quote what an answer returned
STUB = "this is still the stub"  # how the sentence on an answer begins that nobody has written


class GradeFailed(Exception):
    """An answer failed at a gate. The message is one sentence: what is wrong and where to look.

    request: for a program on the Model, what a warp asked for on the line at fault; its access map is shown.
    """

    def __init__(self, sentence: str, gate: str = "", request: Request | None = None):
        super().__init__(sentence)
        self.sentence = sentence
        self.gate = gate
        self.request = request

    def _render_traceback_(self) -> list[str]:
        """IPython shows this instead of a traceback, which would show only the grader."""
        where = f" ({self.gate})" if self.gate else ""
        return [f"GradeFailed{where}: {self.sentence}"]


@dataclass(frozen=True)
class Verdict:
    """The end of one answer's way through its task's gates.

    status: "passed", "parked" (every gate of this machine passed, others wait for one that has more) or "failed".
    gate: where it failed, or the first gate it is parked at.
    sentence: what is wrong and where to look, or what it waits for.
    seen: (gate, a few words) for each gate passed.
    picture: of a failure: {"png": an access map in base64, "alt": its description}; empty where there is none.
    """

    task: str
    status: str
    gate: str = ""
    sentence: str = ""
    seen: tuple[tuple[str, str], ...] = ()
    picture: dict[str, str] = field(default_factory=dict)

    @property
    def begun(self) -> bool:
        """Whether there is an answer at all, and not the exercise's stub."""
        return not self.sentence.startswith(STUB)

    def lines(self) -> list[str]:
        """The verdict as a learner reads it; a failure's last line is its GradeFailed."""
        ticks = [f"✓ {self.task} · {gate}: {words}" for gate, words in self.seen]
        last = {
            "passed": [f"✓ {self.task} passed"],
            "parked": [f"{self.task} is parked at {self.gate}: {self.sentence}"],
            "failed": [],
        }
        return ticks + last[self.status]


def line_of(error: BaseException, source: str | None) -> str:
    """ ", at `the line`" of the file `source` that an error came from; empty where it came through no line of it."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if source and frame.filename == source]
    return f", at `{linecache.getline(source, frames[-1].lineno).strip()}`" if frames else ""


def plain(error: BaseException) -> str:
    """What an error says, without colours."""
    return COLOURS.sub("", str(error)).strip()


def first_line(error: BaseException) -> str:
    """The first line of what an error says, whatever it is made of."""
    try:
        lines = plain(error).splitlines()
    except BaseException:
        return "its message cannot be read"
    return lines[0].strip()[:LONGEST] if lines else "no message"
