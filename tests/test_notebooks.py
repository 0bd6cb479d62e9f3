"""The form of lessons and solutions, by glob: what course.md asks of every notebook that is saved here."""

import ast
import re
import statistics
import symtable
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

ROOT = Path(__file__).parents[1]
LESSONS = sorted((ROOT / "notebooks").glob("*.ipynb"))
SOLUTIONS = sorted((ROOT / "solutions").glob("*.ipynb"))

PLACES = ["compiler", "gpu", "hopper"]  # a machine that has one has those before it
CELL_LINES, KERNEL_LINES, MEDIAN_LINES = 20, 40, 6
SECTIONS = ("**Predict", "What to remember")
MEASURED = re.compile(r"\d\s*(GB/s|TB/s|ns|us|µs|μs|ms|%)(?!\w)")
NEEDS = re.compile(r"# needs (\w+)\s*$")


def code_cells(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def tags(cell):
    return cell.metadata.get("tags", [])


def need(cell):
    """How much hardware a cell asks for: 0 for none, then the position in PLACES."""
    return max((PLACES.index(tag) + 1 for tag in tags(cell) if tag in PLACES), default=0)


def lines(cell):
    return len(cell.source.strip().splitlines())


def names_defined(tree):
    """Names that a cell binds in the notebook: not those inside its functions and classes."""
    found, rest = set(), [tree]
    while rest:
        node = rest.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
            continue
        if isinstance(node, ast.Import | ast.ImportFrom):
            found |= {(alias.asname or alias.name).split(".")[0] for alias in node.names}
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        rest += ast.iter_child_nodes(node)
    return found


def names_used(table):
    """Names that a cell, or a function in it, reads and does not bind itself as a parameter or local."""
    outer = table.get_type() == "module"
    own = {name.get_name() for name in table.get_symbols() if name.is_referenced() and (outer or name.is_global())}
    return own.union(*map(names_used, table.get_children()))


def parsed(cell):
    """The cell's syntax tree, its IPython magics left out."""
    return ast.parse("\n".join(line for line in cell.source.splitlines() if not line.lstrip().startswith(("%", "!"))))


# Each rule yields one sentence a fault.


def cell_lengths(notebook):
    kernels = [cell for cell in code_cells(notebook) if "kernel" in tags(cell)]
    if len(kernels) > 1:
        yield f"{len(kernels)} cells carry the tag kernel; one may"
    for number, cell in enumerate(code_cells(notebook)):
        limit = KERNEL_LINES if "kernel" in tags(cell) else CELL_LINES
        if lines(cell) > limit:
            yield f"code cell {number} has {lines(cell)} lines, more than {limit}"


def median_length(notebook):
    median = statistics.median([lines(cell) for cell in code_cells(notebook)] or [0])
    if median > MEDIAN_LINES:
        yield f"the median code cell has {median} lines, more than {MEDIAN_LINES}"


def sections(notebook):
    first = notebook.cells[0].source if notebook.cells else ""
    if not re.search(r"^#+ .*\?", first, re.M):
        yield "the first cell has no heading with a question"
    if not re.search(r"\bminutes\b.*GPU", first, re.S):
        yield "the first cell does not say the minutes and the places"
    text = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    for section in SECTIONS:
        if section not in text:
            yield f"no section {section.strip('*')}"


def waits(notebook):
    """Whether the notebook says that its cells for a GPU have not run; `make notebooks` takes that away."""
    return notebook.metadata.get("quack_lite", {}).get("waits") == "gpu"


def execution_counts(notebook):
    for number, cell in enumerate(code_cells(notebook)):
        if cell.execution_count is None and not (waits(notebook) and need(cell) > PLACES.index("compiler") + 1):
            yield f"code cell {number} has no execution count: nbval would never compare it"


def device_and_date(notebook):
    origin = notebook.metadata.get("quack_lite", {})
    if waits(notebook):
        if any(cell.execution_count for cell in code_cells(notebook) if "gpu" in tags(cell) or "hopper" in tags(cell)):
            yield "it says that it waits for a GPU, and cells for a GPU have run: run make notebooks"
    elif not origin.get("device") or not re.fullmatch(r"\d{4}-\d\d-\d\d", origin.get("date", "")):
        yield "metadata.quack_lite does not name device and date: run make notebooks"


def kernel_name(notebook):
    if notebook.metadata.get("kernelspec", {}).get("name") != "python3":
        yield "metadata.kernelspec is not python3: JupyterLab would ask for a kernel before it runs anything"


def measured_numbers(notebook):
    for cell in notebook.cells:
        if cell.cell_type != "markdown":
            continue
        for line in cell.source.splitlines():
            if MEASURED.search(line) and "datasheet" not in line.lower():
                yield f"a measured number in prose: {line[:80]}"


def borrowed_names(notebook):
    """A cell that runs with less hardware uses no name that only a cell with more defines."""
    available = {}
    for number, cell in enumerate(code_cells(notebook)):
        tree = parsed(cell)
        table = symtable.symtable(ast.unparse(tree), "cell", "exec")
        for name in sorted(names_used(table) - names_defined(tree)):
            if available.get(name, 0) > need(cell):
                yield f"code cell {number} uses {name}, which needs {PLACES[available[name] - 1]}"
        for name in names_defined(tree):
            available[name] = min(available.get(name, need(cell)), need(cell))


def needs_lines(notebook):
    for number, cell in enumerate(code_cells(notebook)):
        match = NEEDS.match(cell.source.strip().split("\n")[0])
        wanted = PLACES[need(cell) - 1] if need(cell) else None
        if (match and match[1]) != wanted:
            yield f"code cell {number}: its first line and its tags {tags(cell)} do not name the same place"


def images(notebook):
    for cell in notebook.cells:
        outputs = cell.get("outputs", [])
        html = (
            [cell.source] if cell.cell_type == "markdown" else [o.get("data", {}).get("text/html", "") for o in outputs]
        )
        for text in html:
            for tag in re.findall(r"<img\b[^>]*>", text):
                if not re.search(r"""\balt=["'][^"']+["']""", tag):
                    yield f"an image without alt text: {tag[:60]}"
            if cell.cell_type == "markdown" and re.search(r"!\[\s*\]\(", text):
                yield "an image without alt text in Markdown"
        for output in outputs:
            if "image/png" in output.get("data", {}) and not described(output):
                yield "a PNG output without a description (Image(..., alt=...))"


def described(output):
    plain = output.data.get("text/plain", "<")
    return bool(output.metadata.get("image/png", {}).get("alt")) or not plain.startswith("<")


def compared_outputs(notebook):
    shown = [cell for cell in code_cells(notebook) if cell.outputs]
    compared = [cell for cell in shown if "nbval-ignore-output" not in tags(cell)]
    if 2 * len(compared) < len(shown):
        yield f"{len(compared)} of {len(shown)} cells with output are compared, fewer than half"


BOTH = (
    cell_lengths,
    execution_counts,
    device_and_date,
    kernel_name,
    measured_numbers,
    borrowed_names,
    needs_lines,
    images,
)
LESSON = (*BOTH, median_length, sections, compared_outputs)


def faults(notebook, rules):
    return [fault for rule in rules for fault in rule(notebook)]


def test_a_notebook_that_waits_for_a_gpu_is_let_off_what_only_a_gpu_brings():
    left = lesson(code("# needs gpu\nx", "gpu", count=None))
    left.metadata = {**METADATA, "quack_lite": {"waits": "gpu"}}
    left.cells[3].execution_count = None
    assert faults(left, LESSON) == []
    left.cells[3].execution_count = 4
    assert [fault for fault in faults(left, LESSON) if "waits" in fault]
    left.cells[2].execution_count = None
    assert [fault for fault in faults(left, LESSON) if "no execution count" in fault]


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_lesson(path):
    assert faults(nbformat.read(path, as_version=4), LESSON) == []


@pytest.mark.parametrize("path", SOLUTIONS, ids=lambda path: path.stem)
def test_solution(path):
    assert faults(nbformat.read(path, as_version=4), BOTH) == []


def code(source, *cell_tags, outputs=(), count=1):
    return new_code_cell(source, metadata={"tags": list(cell_tags)}, outputs=list(outputs), execution_count=count)


def printed():
    return new_output("stream", text="1\n")


def picture(alt):
    data = {"image/png": "", "text/plain": "<IPython.core.display.Image object>"}
    return new_output("display_data", data=data, metadata={"image/png": {"alt": alt}} if alt else {})


METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "quack_lite": {"device": "NVIDIA H200", "date": "2026-11-30"},
}


def lesson(*more):
    """A lesson in right form, with further cells."""
    cells = [
        new_markdown_cell("# 5 · What is x?\n*About 30 minutes. Model: yes. GPU: the last third.*"),
        new_markdown_cell("**Predict.** Write it down."),
        code("x = 1\nx", outputs=[printed()]),
        code("# needs gpu\ny = x\ny", "gpu", outputs=[printed()]),
        new_markdown_cell("**What to remember**\n1. The H200 reads 4800 GB/s (datasheet)."),
    ]
    return new_notebook(cells=[*cells, *more], metadata=METADATA)


def test_a_lesson_in_right_form_passes():
    assert faults(lesson(code("z = 1\n" * 40, "kernel"), code("z", outputs=[picture("bars")])), LESSON) == []


@pytest.mark.parametrize(
    "more, says",
    [
        ([code("x\n" * 21)], "21 lines, more than 20"),
        ([code("x\n" * 41, "kernel")], "41 lines, more than 40"),
        ([code("x", "kernel"), code("x", "kernel")], "one may"),
        ([code("x\n" * 7) for _ in range(3)], "median"),
        ([code("x", count=None)], "no execution count"),
        ([new_markdown_cell("It reaches 4240 GB/s.")], "measured number"),
        ([new_markdown_cell("A latency of 700 ns.")], "measured number"),
        ([new_markdown_cell("That is 88 % of it.")], "measured number"),
        ([code("y + 1")], "uses y, which needs gpu"),
        ([code("def f(z):\n    return [y for _ in z]")], "uses y, which needs gpu"),
        ([code("# needs compiler\ndef f():\n    return y", "compiler")], "uses y, which needs gpu"),
        ([code("x", "gpu")], "do not name the same place"),
        ([code("# needs gpu\nx")], "do not name the same place"),
        ([new_markdown_cell('<img src="a.png">')], "without alt"),
        ([new_markdown_cell("![](a.png)")], "without alt"),
        ([code("x", outputs=[picture("")])], "without a description"),
        ([code("x", "nbval-ignore-output", outputs=[printed()]) for _ in range(3)], "fewer than half"),
    ],
)
def test_a_fault_of_form_is_found(more, says):
    (fault,) = faults(lesson(*more), LESSON)
    assert says in fault


@pytest.mark.parametrize(
    "cell, says",
    [(0, "question"), (0, "minutes"), (1, "Predict"), (4, "What to remember")],
)
def test_a_missing_section_is_found(cell, says):
    notebook = lesson()
    notebook.cells[cell].source = "Nothing."
    assert any(says in fault for fault in faults(notebook, LESSON))


@pytest.mark.parametrize(
    "key, value, says",
    [
        ("quack_lite", {}, "device and date"),
        ("quack_lite", {"device": "", "date": "2026-11-30"}, "device and date"),
        ("quack_lite", {"device": "NVIDIA H200", "date": "today"}, "device and date"),
        ("kernelspec", {}, "kernelspec"),
    ],
)
def test_a_fault_in_the_metadata_is_found(key, value, says):
    notebook = lesson()
    notebook.metadata[key] = nbformat.from_dict(value)
    (fault,) = faults(notebook, LESSON)
    assert says in fault


def test_a_name_that_an_untagged_cell_defines_anew_is_free():
    assert faults(lesson(code("y = 2"), code("y")), LESSON) == []


def test_a_functions_parameters_and_locals_are_its_own():
    assert faults(lesson(code("def f(y):\n    return y"), code("def f():\n    y = 1\n    return y")), LESSON) == []
