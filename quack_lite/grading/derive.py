"""exercises/ from solutions/: python -m quack_lite.grading.derive [--check].

The lines from ### BEGIN SOLUTION to ### END SOLUTION become a stub, outputs go. Cells with such a region and cells
with a check get nbgrader's metadata, in the solution as well. --check writes nothing and fails where a file differs.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from quack_lite.grading import cells, names

if TYPE_CHECKING:
    from nbformat import NotebookNode

ROOT = Path(__file__).resolve().parents[2]
KERNELSPEC = {"display_name": "Python 3", "language": "python", "name": "python3"}
REGION = re.compile(r"^( *)### BEGIN SOLUTION\n(.*?)^ *### END SOLUTION[ ]*$", re.M | re.S)


def stub(source: str) -> str:
    """The source with each solution region replaced by a NotImplementedError that says how long it was."""
    return REGION.sub(_stub_of_region, source)


def _stub_of_region(match: re.Match) -> str:
    lines = [line for line in match[2].splitlines() if line.strip() and not line.strip().startswith("#")]
    count = f"about {len(lines)} line" + ("s" if len(lines) > 1 else "")
    return f'{match[1]}raise NotImplementedError("{count}")'


def mark(notebook: NotebookNode, slug: str) -> NotebookNode:
    """The notebook of a solution, its cells marked for nbgrader: a region is what learners write, a check gives points.

    A grade_id that is there stays, since gradebooks know cells by it, and so do points; a new check is worth 1.
    """
    for cell in notebook.cells:
        before = cell.metadata.pop("nbgrader", {})
        solution = cell.cell_type == "code" and bool(REGION.search(cell.source))
        grade = cell.cell_type == "code" and bool(cells.checked_tasks(cell.source))
        if solution or grade:
            cell.metadata["nbgrader"] = {
                "grade": grade,
                "grade_id": before.get("grade_id", f"{slug}-{cell.id}"),
                "locked": grade,
                **({"points": before.get("points", 1)} if grade else {}),
                "schema_version": 3,
                "solution": solution,
                "task": False,
            }
    return notebook


def solution_text(solution: Path) -> str:
    """A solution notebook with its cells marked for nbgrader, as the text of its file."""
    import nbformat

    return nbformat.writes(mark(nbformat.read(solution, as_version=4), names.slug(solution))) + "\n"


def exercise_text(solution: Path) -> str:
    """The exercise notebook that a solution notebook gives, as the text of its file."""
    import nbformat

    notebook = mark(nbformat.read(solution, as_version=4), names.slug(solution))
    # The solution's own also names the device, the date and the Python that it ran on.
    notebook.metadata = nbformat.from_dict({"kernelspec": KERNELSPEC, "language_info": {"name": "python"}})
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.source = stub(cell.source)
            cell.outputs = []
            cell.execution_count = None
            cell.metadata.pop("execution", None)
    return nbformat.writes(notebook) + "\n"


def derive(root: Path = ROOT, check: bool = False) -> list[Path]:
    """Writes exercises and solutions that differ from what the solutions give (not with `check`); returns them."""
    differing = []
    for solution in names.exercises(root / "solutions"):
        exercise = root / "exercises" / solution.name
        for path, text in ((exercise, exercise_text(solution)), (solution, solution_text(solution))):
            if path.exists() and path.read_text(encoding="utf-8") == text:
                continue
            differing.append(path)
            if not check:
                path.parent.mkdir(exist_ok=True)
                path.write_text(text, encoding="utf-8")
    return differing


def main(arguments: list[str]) -> int:
    """Prints what differs; 1 with --check if anything does."""
    check = arguments == ["--check"]
    differing = derive(check=check)
    for path in differing:
        said = "not what the solution gives: make exercises" if check else "written"
        print(f"{path.relative_to(ROOT).as_posix()}: {said}")
    return int(check and bool(differing))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
