"""From the cells of a notebook, the few that define an answer, as the text of a Python file."""

from __future__ import annotations

import ast
import symtable
from dataclasses import dataclass
from functools import cached_property

# What a lesson imports from quack_lite.lesson, but steps: calls of them change nothing.
TOOLS = frozenset(
    {
        "apart",
        "build",
        "check",
        "expect_error",
        "guesses",
        "hint",
        "measure",
        "predict",
        "progress",
        "release",
        "reveal",
        "show",
        "show_diff",
    }
)


@dataclass(frozen=True)
class Cell:
    """One cell that parses as Python."""

    source: str

    @cached_property
    def statements(self) -> tuple[ast.stmt, ...]:
        """What is worth writing down: everything but expressions that only show something or use the lesson's tools."""
        return tuple(node for node in ast.parse(self.source).body if not isinstance(node, ast.Expr) or _changed(node))

    @cached_property
    def text(self) -> str:
        """The source lines of `statements`, decorators included."""
        lines = self.source.splitlines()
        spans = [(min([node.lineno, *_decorator_lines(node)]), node.end_lineno) for node in self.statements]
        return "\n".join("\n".join(lines[first - 1 : last]) for first, last in spans)

    @cached_property
    def binds(self) -> frozenset[str]:
        """The names that the cell defines or changes at its top level."""
        top = symtable.symtable(self.text, "cell", "exec")
        names = {symbol.get_name() for symbol in top.get_symbols() if symbol.is_assigned() or symbol.is_imported()}
        return frozenset(names.union(*(_changed(node) for node in self.statements)))

    @cached_property
    def loads(self) -> frozenset[str]:
        """The names that the cell reads from the notebook, those inside its functions included."""
        return frozenset(_global_loads(symtable.symtable(self.text, "cell", "exec")))

    @cached_property
    def imports_all(self) -> bool:
        """Whether it has a star import, which may define anything."""
        imports = (node for node in self.statements if isinstance(node, ast.ImportFrom))
        return any(alias.name == "*" for node in imports for alias in node.names)


def select(sources: list[str], expression: str) -> str:
    """The cells that `expression` needs, in their order, and a last line that assigns it to `answer`.

    For each name the latest cell that binds it counts, and what that cell itself needed from before.
    """
    cells = [Cell(source) for source in sources if _parses(source)]
    chosen = {index for index, cell in enumerate(cells) if cell.imports_all}
    end = len(cells)
    loads = _global_loads(symtable.symtable(expression, "answer", "eval"))
    wanted = [(name, end) for name in loads]
    for index in chosen:
        wanted += [(name, index) for name in cells[index].loads]
    asked: set[tuple[str, int]] = set()
    while wanted:
        name, before = wanted.pop()
        if (name, before) in asked:
            continue
        asked.add((name, before))
        index = max((i for i in range(before) if name in cells[i].binds), default=None)
        if index is None:
            continue
        chosen.add(index)
        wanted.append((name, index))
        for needed in cells[index].loads:
            wanted += [(needed, index), (needed, end)]
    parts = [cells[index].text for index in sorted(chosen)]
    return "\n\n".join([*parts, f"answer = {expression}"]) + "\n"


def answer_expression(source: str, task_id: str) -> str | None:
    """What stands as the answer in the cell's call check(task_id, answer); None where there is no such call.

    A name in quotes counts as that name, so that the cell also runs where the name could not be defined.
    """
    if not _parses(source):
        return None
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and _is_check(node, task_id) and len(node.args) == 2:
            given = node.args[1]
            if isinstance(given, ast.Constant) and isinstance(given.value, str) and given.value.isidentifier():
                return given.value
            return ast.unparse(given)
    return None


def checked_tasks(source: str) -> list[str]:
    """The task ids that the cell checks."""
    if not _parses(source):
        return []
    calls = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call))
    return [call.args[0].value for call in calls if _is_check(call)]


def _is_check(call: ast.Call, task_id: str | None = None) -> bool:
    name = call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")
    if name != "check" or not call.args or not isinstance(call.args[0], ast.Constant):
        return False
    return task_id is None or call.args[0].value == task_id


def _parses(source: str) -> bool:
    try:
        ast.parse(source)
    except SyntaxError:
        return False
    return True


def _decorator_lines(node: ast.stmt) -> list[int]:
    return [decorator.lineno for decorator in getattr(node, "decorator_list", [])]


def _root(node: ast.expr) -> str | None:
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def _changed(node: ast.stmt) -> set[str]:
    """Names whose value the statement changes in place: a[0] = 1, a.b = 1, a.append(1)."""
    if isinstance(node, ast.Expr):
        call = node.value
        used = isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr not in TOOLS
        roots = [_root(call.func)] if used else []
    elif isinstance(node, ast.Assign):
        roots = [_root(target) for target in node.targets]
    elif isinstance(node, ast.AugAssign):
        roots = [_root(node.target)]
    else:
        roots = []
    return {root for root in roots if root}


def _global_loads(table: symtable.SymbolTable) -> set[str]:
    own = {symbol.get_name() for symbol in table.get_symbols() if symbol.is_referenced() and _outer(table, symbol)}
    return own.union(*(_global_loads(child) for child in table.get_children()))


def _outer(table: symtable.SymbolTable, symbol: symtable.Symbol) -> bool:
    return table.get_type() == "module" or symbol.is_global()
