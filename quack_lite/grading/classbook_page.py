"""A ClassBook as one HTML file that needs no network: learners and tasks, the usual mistakes, and each learner."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from itertools import groupby
from pathlib import Path

from quack_lite.counted import counted
from quack_lite.grading import classbook
from quack_lite.grading.classbook import ClassBook, Mark, Row

STYLE = Path(__file__).with_suffix(".css")
HEAD = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Submissions</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>
{}</style></head>
<body>
"""
NOT_ALL = " <b title='not all was graded'>!</b>"
SIGNS = {"passed": "✓", "parked": "◷", "failed": "✗", "open": "○"}
PLACES = {"model": "Model", "compiler": "Compiler", "gpu": "GPU"}
LEGEND = {
    "passed": "passed",
    "parked": "parked: right as far as this machine can judge",
    "failed": "failed",
    "open": "not begun",
}


def page(book: ClassBook, places: Mapping[str, bool], date: str) -> str:
    """The whole page. Names and sentences are the learners' and are escaped."""
    have = ", ".join(word for place, word in PLACES.items() if places[place])
    parts = [
        "<h1>Submissions</h1>",
        f"<p>{counted(len(book.rows), 'learners')}, {counted(len(book.worth), 'tasks')}. "
        f"Graded on {date}, on a machine with {have}.</p>",
        _unread(book),
        "<h2>Learners and tasks</h2>",
        _legend(),
        _table(book),
        "<h2>The usual mistakes</h2>",
        _mistakes(book),
        "<h2>Each learner</h2>",
        *(_details(row) for row in book.rows),
    ]
    return HEAD.format(STYLE.read_text(encoding="utf-8")) + "\n".join(parts) + "\n</body></html>\n"


def _unread(book: ClassBook) -> str:
    items = [
        f"<li><b>{escape(row.learner)}</b>, {escape(name)}: {escape(reason)}</li>"
        for row in book.rows
        for name, reason in row.unread.items()
    ]
    return f"<h2>Not graded</h2>\n<ul>{''.join(items)}</ul>" if items else ""


def _legend() -> str:
    signs = [f'<span class="{state}">{SIGNS[state]}</span> {words}' for state, words in LEGEND.items()]
    return f'<p class="legend">{" · ".join(signs)} · empty: not handed in</p>'


def _table(book: ClassBook) -> str:
    if not book.worth:
        return "<p>There was nothing to grade.</p>"
    groups = [(slug, list(tasks)) for slug, tasks in groupby(book.worth, key=lambda task: task.partition(".")[0])]
    over = "".join(f'<th colspan="{len(tasks)}" class="first">{_breakable(slug)}</th>' for slug, tasks in groups)
    firsts = {tasks[0] for _, tasks in groups}
    heads = "".join(f'<th class="task {_first(task, firsts)}"><span>{_short(task)}</span></th>' for task in book.worth)
    rows = "".join(_row(row, book, firsts) for row in book.rows)
    passed = "".join(f'<td class="{_first(task, firsts)}">{_passed(book, task)}</td>' for task in book.worth)
    return (
        '<div class="wide" tabindex="0" role="region" aria-label="Learners and tasks"><table>\n'
        f'<thead><tr><th rowspan="2">learner</th><th rowspan="2">points</th>{over}</tr><tr>{heads}</tr></thead>\n'
        f"<tbody>{rows}</tbody>\n<tfoot><tr><th>passed</th><td></td>{passed}</tr></tfoot></table></div>"
    )


def _row(row: Row, book: ClassBook, firsts: set[str]) -> str:
    cells = "".join(_cell(row.marks.get(task), _first(task, firsts)) for task in book.worth)
    name = f'<a href="#{_anchor(row)}">{escape(row.learner)}</a>' + NOT_ALL * bool(row.unread)
    return f"<tr><th>{name}</th><td>{row.points}</td>{cells}</tr>\n"


def _cell(mark: Mark | None, first: str) -> str:
    if mark is None:
        return f'<td class="{first}"></td>'
    words = f"{mark.task}: {LEGEND[mark.state]}" + (f". {mark.sentence}" if mark.sentence else "")
    return f'<td class="{mark.state} {first}" title="{escape(words)}">{SIGNS[mark.state]}</td>'


def _mistakes(book: ClassBook) -> str:
    found = classbook.mistakes(book)
    if not found:
        return "<p>No answer failed.</p>"
    rows = "".join(
        f"<tr><td>{len(each.learners)}</td><td><b>{escape(each.task)}</b>, {escape(each.gate)}: {escape(each.sentence)}"
        f"<br><small>{escape(', '.join(each.learners))}</small></td></tr>\n"
        for each in found
    )
    head = "<tr><th>learners</th><th>what they were told, and who</th></tr>"
    return f'<div class="wide"><table class="mistakes"><thead>{head}</thead><tbody>{rows}</tbody></table></div>'


def _details(row: Row) -> str:
    items = [
        f'<li><span class="{mark.state}">{SIGNS[mark.state]}</span> {escape(mark.task)}'
        + (f" ({escape(mark.gate)})" if mark.gate else "")
        + (f": {escape(mark.sentence)}" if mark.sentence else "")
        + "</li>"
        for mark in row.marks.values()
    ]
    items += [f"<li><b>!</b> {escape(name)}: {escape(reason)}</li>" for name, reason in row.unread.items()]
    total = sum(mark.worth for mark in row.marks.values())
    head = f"{escape(row.learner)}: {row.count('passed')} passed, {row.points} of {total} points"
    return f'<details id="{_anchor(row)}"><summary>{head}</summary><ul>{"".join(items)}</ul></details>'


def _passed(book: ClassBook, task: str) -> int:
    return sum(task in row.marks and row.marks[task].state == "passed" for row in book.rows)


def _first(task: str, firsts: set[str]) -> str:
    return "first" if task in firsts else ""


def _breakable(slug: str) -> str:
    return escape(slug).replace("_", "_<wbr>")


def _short(task: str) -> str:
    return escape(task.partition(".")[2])


def _anchor(row: Row) -> str:
    return escape("learner-" + "".join(letter if letter.isalnum() else f"-{ord(letter)}-" for letter in row.learner))
