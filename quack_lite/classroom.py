"""`make nbgrader CLASS=folder`: the exercises as assignments of nbgrader, in a folder of the teacher's.

The folder gets source/NAME/NAME.ipynb for each exercise, as it is, and a nbgrader_config.py, which is never replaced.
nbgrader itself stands in an environment of its own, so that no version of ours changes for it. What that one lacks,
torch and the DSL, it takes from the environment that runs this.
"""

import sys
from pathlib import Path

from quack_lite.grading import names

ROOT = Path(__file__).resolve().parents[1]
ENVIRONMENT = ROOT / "build" / "nbgrader"
CONFIG = """\
c = get_config()  # noqa: F821
c.CourseDirectory.course_id = "quack_lite"
# The exercises are stubs already. nbgrader would empty each cell in which it finds no solution to take out.
c.ClearSolutions.enabled = False
# Seconds a cell. A check has its own limits, and the first one imports torch and the DSL from a cold disk.
c.Execute.timeout = 120
"""


def prepare(folder: Path, root: Path = ROOT) -> list[str]:
    """Writes the assignments into the folder, and the configuration where there is none; returns the assignments."""
    exercises = names.exercises(root / "exercises")
    for exercise in exercises:
        source = folder / "source" / exercise.stem / exercise.name
        source.parent.mkdir(parents=True, exist_ok=True)
        source.write_bytes(exercise.read_bytes())
    config = folder / "nbgrader_config.py"
    if not config.exists():
        config.write_text(CONFIG)
    return [exercise.stem for exercise in exercises]


def share(environment: Path = ENVIRONMENT, root: Path = ROOT) -> None:
    """Lets the environment find the course and, behind its own packages, those of the Python that runs this."""
    ours = [path for path in sys.path if Path(path).name in ("site-packages", "dist-packages")]
    for packages in environment.glob("lib/python*/site-packages"):
        (packages / "quack_lite.pth").write_text("\n".join([str(root), *ours]) + "\n")


def main(arguments: list[str]) -> int:
    """Prepares the environment and, if one is given, the folder; says what to call next."""
    share()
    print(f'export PATH="{ENVIRONMENT / "bin"}:$PATH"    # nbgrader calls programs that stand there')
    for folder in filter(None, arguments):
        assignments = prepare(Path(folder))
        print(f"cd {folder}    # {len(assignments)} assignments in source/")
        print(f"nbgrader generate_assignment {assignments[0]}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
