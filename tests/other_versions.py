"""The tests in an environment of its own, with other versions than the pins; says what changed. Touches no pin.

What fails there is tried once more by the Python that runs this, where pytest is: a change is told from a fault.

python tests/other_versions.py latest                the newest of everything that the requirements files pin
python tests/other_versions.py torch==2.9.1          the pins, but for this one
A further argument or more, as tests/test_tiling.py: only that, by pytest, in the place of all that make test runs.
"""

import importlib.util
import os
import re
import subprocess
import sys
import venv
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FILES = ("requirements-lite.txt", "requirements.txt")
NBVAL = ("--nbval", "--nbval-current-env")
PIN = re.compile(r"([A-Za-z0-9_.-]+)==([^\s;]+)")
FAILED = re.compile(
    r"^(?:\x1b\[[0-9;]*m)*(?:FAILED|ERROR)(?:\x1b\[[0-9;]*m)* (\S+\.(?:py|ipynb)(?:::.*?)?)(?: - .*)?$", re.M
)
WANTED = re.compile(r"latest|[A-Za-z0-9_.-]+==[A-Za-z0-9.+!-]+")
INSTALLED = "import importlib.metadata as m; print(*(f'{d.name}=={d.version}' for d in m.distributions()), sep='\\n')"


def requirements(wanted: str, root: Path = ROOT) -> str:
    """What is asked of pip: the lines of the requirements files without versions, or with one version another.

    ValueError for what is neither "latest" nor NAME==VERSION of a pinned name.
    """
    lines = [line for file in FILES for line in (root / file).read_text().splitlines() if PIN.match(line)]
    if not WANTED.fullmatch(wanted):
        raise ValueError(f'{wanted!r} was given; give "latest", or one as torch==2.9.1')
    if wanted == "latest":
        return "\n".join(PIN.sub(r"\1", line, count=1) for line in lines) + "\n"
    name = wanted.split("==")[0]
    if name not in [PIN.match(line)[1] for line in lines]:
        raise ValueError(f"{name} is not pinned in {' or '.join(FILES)}; give one that is")
    return "\n".join(PIN.sub(wanted, line, count=1) if PIN.match(line)[1] == name else line for line in lines) + "\n"


def pins(root: Path) -> dict[str, str]:
    """{name: version} of the requirements files."""
    lines = [line for file in FILES for line in (root / file).read_text().splitlines()]
    return {match[1]: match[2] for line in lines if (match := PIN.match(line))}


def changes(pinned: dict[str, str], installed: dict[str, str]) -> list[str]:
    """A line for each pinned name that is there in another version, or not at all; a local part (+cpu) counts not."""
    found = []
    for name, version in pinned.items():
        there = installed.get(canonical(name), "not installed")
        if there.split("+")[0] != version:
            found.append(f"{name:<30} {version:<14} -> {there}")
    return found or ["every version is the pinned one"]


def canonical(name: str) -> str:
    """A distribution's name as it is compared."""
    return re.sub(r"[-_.]+", "-", name).lower()


def environment(wanted: str) -> str:
    """The Python of the environment in build/versions/, made anew, with what is wanted in it."""
    folder = ROOT / "build" / "versions" / wanted.replace("==", "-")
    venv.create(folder, clear=True, with_pip=True)
    python = str(folder / "bin" / "python")
    asked = folder / "requirements.txt"
    asked.write_text(requirements(wanted, ROOT))
    install = [python, "-m", "pip", "install", "--disable-pip-version-check", "-q"]
    subprocess.run([*install, "-r", str(asked)], check=True)
    return python


def installed(python: str) -> dict[str, str]:
    """{name: version} of what an environment has."""
    said = subprocess.run([python, "-c", INSTALLED], capture_output=True, text=True, check=True).stdout
    return {canonical(name): version for name, version in (line.split("==", 1) for line in said.split())}


def streamed(command: Sequence[str], environment: dict[str, str]) -> tuple[int, list[str]]:
    """Runs a command in the course's folder and shows what it prints; its status and the tests that it says failed."""
    said = ""
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, bufsize=1) as process:
        for line in process.stdout:
            print(line, end="", flush=True)
            said += line
    return process.returncode, sorted(set(FAILED.findall(said)))


def again(failed: Sequence[str], environment: dict[str, str]) -> list[str]:
    """Those of the failed tests that fail by this Python, with what is installed in it, too."""
    files = sorted({name.split("::")[0] for name in failed if ".ipynb" in name})
    tests = [name for name in failed if ".ipynb" not in name]
    pytest = [sys.executable, "-m", "pytest", "-q"]
    found = []
    for command in ([*pytest, *tests] if tests else [], [*pytest, *NBVAL, *files] if files else []):
        found += streamed(command, environment)[1] if command else []
    return [name for name in failed if name in found]


def verdict(failed: Sequence[str], too: Sequence[str] | None) -> list[str]:
    """Lines on what failed; `too` is what fails with the pins as well, None where that was not tried."""
    if too is None:
        return [f"failed, not tried with the pins: {name}" for name in failed]
    return [f"failed, {'with the pins too' if name in too else 'only with these versions'}: {name}" for name in failed]


def main(wanted: str, only: Sequence[str]) -> int:
    """Makes the environment, says what changed, runs the tests, says it once more; the exit status of the tests."""
    requirements(wanted, ROOT)
    python = environment(wanted)
    said = "\n".join(["", f"=== {wanted}: pinned -> tried", *changes(pins(ROOT), installed(python))])
    print(said, flush=True)
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    # Outside CI a compiler that is missing skips a test.
    clean = {key: value for key, value in os.environ.items() if key != "CI"} | {"PYTHONPATH": path}
    command = [python, "-m", "pytest", "-q", *only] if only else ["bash", "tests/run_parts.sh", python]
    done, failed = streamed(command, clean)
    too = again(failed, clean) if importlib.util.find_spec("pytest") else None
    print(said, *verdict(failed, too), f"the tests {'passed' if done == 0 else 'FAILED'}", sep="\n")
    return done


if __name__ == "__main__":
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    try:
        sys.exit(main(sys.argv[1], sys.argv[2:]))
    except ValueError as error:
        raise SystemExit(f"other_versions: {error}") from None
    except subprocess.CalledProcessError as error:
        raise SystemExit(f"other_versions: pip found no such set of versions ({' '.join(error.cmd[1:4])})") from None
