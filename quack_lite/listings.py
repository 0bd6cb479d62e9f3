"""The source of functions for a cell's end: with colours, or with the lines by which one differs from another."""

from __future__ import annotations

import ast
import difflib
import html
import inspect
import re
from collections.abc import Callable


class Source:
    """A text of Python."""

    def __init__(self, text: str):
        self.text = text

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        from pygments import highlight
        from pygments.formatters import HtmlFormatter
        from pygments.lexers import PythonLexer

        made = highlight(self.text, PythonLexer(), HtmlFormatter(noclasses=True, nowrap=True))
        return f'<pre style="background:#fff;color:#202124;line-height:1.3">{made}</pre>'


class Diff:
    """All lines: those that went with a - in front, then those that came in their place with a +."""

    def __init__(self, before: list[str], after: list[str]):
        self.lines = []
        for tag, i, j, k, m in difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
            if tag == "equal":
                self.lines += [f"  {line}" for line in after[k:m]]
            else:
                self.lines += [f"- {line}" for line in before[i:j]] + [f"+ {line}" for line in after[k:m]]

    def __repr__(self) -> str:
        return "\n".join(self.lines)

    def _repr_html_(self) -> str:
        colours = {"+": "background:#e6f4ea", "-": "background:#fce8e6", " ": "background:#fff"}
        style = "color:#202124;font-family:monospace;line-height:1.3"
        rows = (f'<div style="{colours[line[0]]};{style}">{html.escape(line)}</div>' for line in self.lines)
        return f"<pre>{''.join(rows)}</pre>"


def undecorated(given: Callable | str) -> str:
    """The source of a function from its def on; or a text."""
    if isinstance(given, str):
        return given
    text = inspect.getsource(inspect.unwrap(given))
    return text[re.search(r"^\s*def ", text, re.M).start() :]  # Pythons differ in whether decorators belong to it


def whole(given: Callable | str) -> str:
    """The source of a function with its decorators, which inspect leaves out in some Pythons; or a text."""
    if isinstance(given, str):
        return given.strip("\n")
    function = inspect.unwrap(given)
    lines, _ = inspect.findsource(function)
    for node in ast.walk(ast.parse("".join(lines))):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == function.__name__:
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            if first <= inspect.getsourcelines(function)[1] <= node.end_lineno:
                return inspect.cleandoc("\n" + "".join(lines[first - 1 : node.end_lineno])).rstrip()
    return inspect.getsource(function).rstrip()
