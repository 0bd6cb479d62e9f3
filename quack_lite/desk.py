"""A learner's desk: exercises copied to work/, and JupyterLab opened on the right notebook.

`make lab` runs this module (python -m quack_lite.desk, further arguments go to JupyterLab); `quack-lite start NN` calls
start(), `quack-lite reset NN` reset(). A file in work/ belongs to the learner: it is never overwritten, and only reset
puts another in its place, after keeping it aside.
"""

import os
import re
import sys
import webbrowser
from pathlib import Path

from quack_lite import keeping
from quack_lite.grading import names
from quack_lite.grading.progress import Progress

ROOT = Path(__file__).resolve().parents[1]


def lay_out(root: Path = ROOT) -> list[Path]:
    """Copy each exercise that work/ lacks; returns the new files."""
    return [target for source in names.exercises(root / "exercises") if (target := _copy(source, root / "work"))]


def start(number: str, browser: bool = True, root: Path = ROOT) -> int:
    """Copy exercise `number` (5, 05, 05_bytes_in_flight or project_a) to work/ unless it is there, and open it.

    ValueError for a number without an exercise. Where no JupyterLab serves this folder, this process becomes one.
    """
    source = find_exercise(number, root)
    new = _copy(source, root / "work")
    print(f"work/{source.name}: " + ("copied from exercises/." if new else "already there, kept as it is."), flush=True)
    page = f"work/{source.name}"
    address = _running_lab(page, root)
    if address is None:
        serve(page, [] if browser else ["--no-browser"], root)
    print(f"JupyterLab is running: {address}")
    if browser and _has_screen():
        webbrowser.open(address)
    return 0


def reset(number: str, root: Path = ROOT) -> int:
    """Put exercise `number` into work/ as the course has it now; what is there is copied to work/aside/ before.

    Its tasks are open again, except those that have passed. ValueError for a number without an exercise.
    """
    source, work = find_exercise(number, root), root / "work"
    target, new = work / source.name, source.read_bytes()
    with keeping.alone(work):
        old = target.read_bytes() if target.exists() else new
        kept = keeping.keep_aside(target, work) if old != new else None
        keeping.write(target, new)
    Progress(work / "progress.json").reopen(names.slug(source))
    if kept is None:
        print(f"work/{source.name} is as the course has it; there was nothing of yours to keep.")
        return 0
    print(f"work/{source.name} is as the course has it. Yours is now {kept.relative_to(root).as_posix()}.")
    print("If it is open in JupyterLab: File, Reload Notebook from Disk, before you write or save.")
    return 0


def find_exercise(number: str, root: Path = ROOT) -> Path:
    """The exercise with this number, or ValueError with those that exist."""
    exercises = names.exercises(root / "exercises")
    for path in exercises:
        if names.means(number.removesuffix(".ipynb"), path):
            return path
    there = ", ".join(path.stem for path in exercises) or f"no exercise in {root / 'exercises'}"
    raise ValueError(f"there is no exercise {number!r}. Give the number of one of these: {there}.")


def first_lesson(root: Path = ROOT) -> Path:
    """The lowest-numbered lesson there is; ValueError where there is none."""
    lessons = _numbered(root / "notebooks")
    if not lessons:
        raise ValueError(f"there is no lesson in {root / 'notebooks'}: run this in a clone of the course.")
    return lessons[0]


def trust(root: Path = ROOT) -> None:
    """Sign the course's own notebooks, so that JupyterLab shows their saved SVG and HTML."""
    import nbformat
    from nbformat.sign import NotebookNotary

    notary = NotebookNotary()
    for folder in ("notebooks", "solutions", "exercises"):
        for path in names.exercises(root / folder):
            notary.sign(nbformat.read(path, as_version=4))


def serve(page: str, arguments: list[str], root: Path = ROOT) -> None:
    """Become a JupyterLab on 127.0.0.1 that opens `page`, a path relative to root. Does not return.

    Its terminals find quack-lite, which stands beside this Python. It asks nothing and looks for no news (lab/).
    """
    command = [
        sys.executable,
        "-m",
        "jupyterlab",
        "--ServerApp.ip=127.0.0.1",
        f"--ServerApp.root_dir={root}",
        f"--LabApp.default_url=/lab/tree/{page}",
    ]
    if os.geteuid() == 0:
        command.append("--allow-root")  # JupyterLab refuses to run as root without it
    _put_first("PATH", Path(sys.executable).parent, os.defpath)
    _put_first("JUPYTER_CONFIG_PATH", Path(__file__).parent / "lab", "")
    os.execv(sys.executable, command + arguments)


def _put_first(variable: str, folder: Path, otherwise: str) -> None:
    os.environ[variable] = os.pathsep.join(filter(None, (str(folder), os.environ.get(variable, otherwise))))


def _running_lab(page: str, root: Path) -> str | None:
    from jupyter_server.serverapp import list_running_servers

    for server in list_running_servers():
        folder = Path(server["root_dir"]).resolve()
        if root.is_relative_to(folder):
            place = (root / page).relative_to(folder).as_posix()
            return f"{server['url']}lab/tree/{place}?token={server['token']}"
    return None


def _copy(source: Path, folder: Path) -> Path | None:
    target = folder / source.name
    with keeping.alone(folder):
        if target.exists():
            return None
        keeping.write(target, source.read_bytes())
    return target


def _numbered(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("*.ipynb") if re.match(r"\d\d_", path.name))


def _has_screen() -> bool:
    # Without a screen, webbrowser would start a text browser in this terminal.
    return sys.platform != "linux" or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def main(arguments: list[str]) -> None:
    """What `make lab` does once the machine is set up."""
    trust()
    for path in lay_out():
        print(f"work/{path.name}: copied from exercises/.")
    lesson = first_lesson()
    print(f"Opening notebooks/{lesson.name}.", flush=True)
    serve(f"notebooks/{lesson.name}", arguments)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except ValueError as error:
        raise SystemExit(f"make lab: {error}") from None
