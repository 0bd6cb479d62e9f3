"""From a running notebook to the text that defines an answer.

IPython keeps no history where nbval runs a notebook, so the cells are collected here, from the one that imports
quack_lite.lesson on. Cells that ended in an error are left out, except by GradeFailed, which is a cell's last line.
"""

from __future__ import annotations

import sys
from typing import Any

from quack_lite.grading import cells, tasks
from quack_lite.grading.feedback import GradeFailed

_cells: list[str] = []
_running: list[str] = []


def watch(shell) -> None:
    """Collects the shell's cells from now on, and those of its history; calling it again changes nothing."""
    for event, callback in (("pre_run_cell", begin_cell), ("post_run_cell", end_cell)):
        if callback not in shell.events.callbacks[event]:
            shell.events.register(event, callback)
    if not _cells:
        _cells.extend(shell.history_manager.input_hist_parsed[:-1])


def begin_cell(info) -> None:
    """IPython's callback before a cell."""
    _running[:] = [_shell().transform_cell(info.raw_cell)]


def end_cell(result) -> None:
    """IPython's callback after a cell."""
    error = result.error_before_exec or result.error_in_exec
    if error is None or isinstance(error, GradeFailed):
        _cells.append(_shell().transform_cell(result.info.raw_cell))
    _running.clear()


def answer_text(task_id: str, answer: Any) -> str:
    """The cells that define the answer, as a file. RuntimeError outside a notebook."""
    tasks.find(task_id)
    if _shell() is None:
        raise RuntimeError("check works in a notebook; for a notebook's file there is `quack-lite grade`")
    current = "".join(_running)
    expression = cells.answer_expression(current, task_id) or _name_of(answer, _shell().user_ns)
    return cells.select([*_cells, current], expression)


def text_of(expression: str) -> str:
    """The cells that an expression needs, as a file whose last line assigns it to `answer`."""
    return cells.select([*_cells, "".join(_running)], expression)


def _shell():
    return sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None


def _name_of(answer: Any, namespace: dict[str, Any]) -> str:
    if isinstance(answer, str) and answer.isidentifier():
        return answer
    names = [name for name, value in namespace.items() if value is answer and not name.startswith("_")]
    if not names:
        raise GradeFailed("give the answer a name in a cell of its own, and hand that name to check")
    return names[0]
