"""exercises/ from solutions/: python -m quack_lite.grading.derive [--check].

The lines from ### BEGIN SOLUTION to ### END SOLUTION become a stub, outputs go. --check writes nothing and fails where
an exercise is not what its solution gives.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from quack_lite.grading import names

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


def exercise_text(solution: Path) -> str:
    """The exercise notebook that a solution notebook gives, as the text of its file."""
    import nbformat

    notebook = nbformat.read(solution, as_version=4)
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
    """Writes the exercises that differ from what their solutions give (not with `check`) and returns them."""
    differing = []
    for solution in names.exercises(root / "solutions"):
        exercise, text = root / "exercises" / solution.name, exercise_text(solution)
        if exercise.exists() and exercise.read_text(encoding="utf-8") == text:
            continue
        differing.append(exercise)
        if not check:
            exercise.parent.mkdir(exist_ok=True)
            exercise.write_text(text, encoding="utf-8")
    return differing


def main(arguments: list[str]) -> int:
    """Prints what differs; 1 with --check if anything does."""
    check = arguments == ["--check"]
    differing = derive(check=check)
    for exercise in differing:
        print(f"exercises/{exercise.name}: " + ("not what its solution gives: make exercises" if check else "written"))
    return int(check and bool(differing))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
