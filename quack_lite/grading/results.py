"""The verdicts on a number of answers: as a table, as JSON, as JUnit's XML."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from xml.etree import ElementTree

from quack_lite import keeping
from quack_lite.grading.feedback import Verdict

MARKS = {"passed": "[green]passed[/]", "parked": "[yellow]parked[/]", "failed": "[red]failed[/]"}
NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True)
class Results:
    """graded: (notebook, verdict).  unread: {notebook: why it could not be read}."""

    graded: Sequence[tuple[str, Verdict]]
    unread: Mapping[str, str]

    def count(self, status: str) -> int:
        """How many answers came to this status."""
        return sum(verdict.status == status for _, verdict in self.graded)


def show(results: Results) -> None:
    """Prints a table for a person."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table("task", "result", "at", "what to do", title="Your answers")
    for _, verdict in results.graded:
        table.add_row(verdict.task, MARKS[verdict.status], verdict.gate or "-", Text(_words(verdict)))
    Console().print(table)


def as_json(results: Results) -> str:
    """answers: notebook, task, status, gate, sentence, seen; unread: notebook, reason; and how many of each status."""
    answers = [
        {"notebook": name, **{key: value for key, value in dataclasses.asdict(verdict).items() if key != "picture"}}
        for name, verdict in results.graded
    ]
    unread = [{"notebook": name, "reason": reason} for name, reason in results.unread.items()]
    return json.dumps({"answers": answers, "unread": unread, **_counts(results)}, indent=1)


def write_junit(results: Results, path: Path) -> None:
    """A test case an answer: a failure with its sentence, a parked one as skipped, a file that cannot be read an error.

    ValueError where the file cannot be written.
    """
    counts = _counts(results)
    total = len(results.graded) + len(results.unread)
    suite = ElementTree.Element(
        "testsuite",
        name="quack-lite",
        tests=str(total),
        failures=str(counts["failed"]),
        skipped=str(counts["parked"]),
        errors=str(len(results.unread)),
    )
    kinds = {"failed": "failure", "parked": "skipped"}
    for name, verdict in results.graded:
        case = ElementTree.SubElement(suite, "testcase", classname=_clean(name), name=verdict.task)
        if verdict.status in kinds:
            said = ElementTree.SubElement(case, kinds[verdict.status], message=_clean(verdict.sentence))
            said.set("type", verdict.gate)
        else:
            ElementTree.SubElement(case, "system-out").text = _clean(_words(verdict))
    for name, reason in results.unread.items():
        case = ElementTree.SubElement(suite, "testcase", classname=_clean(name), name="read")
        ElementTree.SubElement(case, "error", message=_clean(reason))
    _write(suite, path)


def _write(suite: ElementTree.Element, path: Path) -> None:
    text = BytesIO()
    ElementTree.indent(suite)
    ElementTree.ElementTree(suite).write(text, encoding="utf-8", xml_declaration=True)
    try:
        keeping.write(path, text.getvalue() + b"\n")
    except OSError as error:
        raise ValueError(
            f"{path} cannot be written ({error.strerror}): name a file in a folder that is there"
        ) from None


def _counts(results: Results) -> dict[str, int]:
    return {status: results.count(status) for status in MARKS}


def _words(verdict: Verdict) -> str:
    return verdict.sentence or "; ".join(f"{gate}: {words}" for gate, words in verdict.seen)


def _clean(text: str) -> str:
    """Without characters that XML cannot hold: an error's message may have any."""
    return NOT_XML.sub("?", text)
