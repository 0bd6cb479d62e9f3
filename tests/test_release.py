"""What a workshop is given: a course without solutions, and a set-up from a folder of wheels, without a network."""

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import nbformat
import pytest

from quack_lite.grading import derive, names

ROOT = Path(__file__).parents[1]
CI = os.environ.get("CI") == "true"
LONG = 3  # lines from which on a solution is not found elsewhere by chance
BACKEND = """
import pathlib, zipfile

def build_editable(folder, settings=None, metadata=None):
    name = "quack_lite-0.1-py3-none-any.whl"
    with zipfile.ZipFile(pathlib.Path(folder) / name, "w") as wheel:
        wheel.writestr("quack_lite.pth", str(pathlib.Path.cwd()))
        info = "quack_lite-0.1.dist-info"
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\\nName: quack_lite\\nVersion: 0.1\\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr(f"{info}/RECORD", "")
    return name
"""

needs_make = pytest.mark.skipif(not CI and shutil.which("make") is None, reason="make is not installed")
needs_clone = pytest.mark.skipif(not CI and not (ROOT / ".git").exists(), reason="not a git clone")


def make(*words, folder=ROOT, **environment):
    dropped = ("PYTHON", "MAKEFLAGS", "MAKEOVERRIDES", "MAKELEVEL", "PYTHONPATH")
    clean = {key: value for key, value in os.environ.items() if key not in dropped} | environment
    return subprocess.run(["make", *words], capture_output=True, text=True, cwd=folder, env=clean)


def regions():
    """(solution's name, the lines of a solution region of LONG lines or more, without their indentation)."""
    for path in names.exercises(ROOT / "solutions"):
        for cell in nbformat.read(path, as_version=4).cells:
            for match in derive.REGION.finditer(cell.source):
                if len(lines := bare(match[2])) >= LONG:
                    yield path.name, lines


def bare(text):
    return [line.strip() for line in text.splitlines() if line.strip()]


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory):
    folder = tmp_path_factory.mktemp("students")
    done = make("student-release", f"RELEASE={folder / 'a.zip'}")
    assert done.returncode == 0, done.stderr
    with zipfile.ZipFile(folder / "a.zip") as archive:
        archive.extractall(folder)
    return folder / "quack_lite"


@needs_make
@needs_clone
class TestStudentRelease:
    def test_the_course_is_there_and_solutions_and_tests_are_not(self, unpacked):
        for name in ("Makefile", "README.md", "requirements.txt", "quack_lite/cli.py", "notebooks/00_start_here.ipynb"):
            assert (unpacked / name).is_file(), name
        assert [path.name for path in names.exercises(unpacked / "exercises")]
        assert not [name for name in ("solutions", "tests", "conftest.py", ".git") if (unpacked / name).exists()]

    def test_no_file_holds_a_solution(self, unpacked):
        graders = unpacked / "quack_lite/grading/tasks"  # they have to compute what is right
        there = {}
        for path in (path for path in unpacked.rglob("*") if path.parent != graders):
            if path.suffix in (".py", ".md"):
                there[path] = path.read_text()
            elif path.suffix == ".ipynb":
                there[path] = "\n".join(cell.source for cell in nbformat.read(path, as_version=4).cells)
        texts = {path: "\n".join(bare(text)) for path, text in there.items()}
        assert len(list(regions())) > 10
        found = [(name, path) for name, lines in regions() for path, text in texts.items() if "\n".join(lines) in text]
        assert not found

    def test_grading_works_there_and_hints_end_without_a_solution(self, unpacked):
        def course(*words):
            command = [sys.executable, "-m", "quack_lite", *words]
            environment = os.environ | {"PYTHONPATH": str(unpacked)}
            return subprocess.run(command, capture_output=True, text=True, cwd=unpacked, env=environment)

        (unpacked / "work").mkdir(exist_ok=True)
        shutil.copy(unpacked / "exercises/00_start_here.ipynb", unpacked / "work")
        graded = json.loads(course("grade", "00", "--json").stdout)
        assert graded["failed"] == 2 and "still the stub" in graded["answers"][0]["sentence"]
        said = [course("hint", "start_here.max").stdout for _ in range(5)]
        assert said[2].startswith("hint 3 of 3") and "has no solutions" in said[3] and "-math.inf" not in said[4]
        assert "a copy for students" in course("grade", "--proofs").stderr

    def test_what_needs_the_whole_course_says_so(self, unpacked):
        done = make("PYTHON=python3", "test", folder=unpacked)
        assert done.returncode != 0 and "this copy for students has none" in done.stderr


def wheel(folder, name, files):
    """A wheel of pure Python, version 9, with nothing in it but these files."""
    info = f"{name}-9.dist-info"
    metadata = {
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 9\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/RECORD": "",
    }
    folder.mkdir(exist_ok=True)
    with zipfile.ZipFile(folder / f"{name}-9-py3-none-any.whl", "w") as file:
        for path, text in (files | metadata).items():
            file.writestr(path, text)


@pytest.fixture
def small_course(tmp_path):
    """The Makefile over a package that needs one wheel, and another to be built."""
    folder = tmp_path / "course"
    (folder / "quack_lite").mkdir(parents=True)
    shutil.copy(ROOT / "Makefile", folder)
    (folder / "quack_lite" / "__init__.py").touch()
    (folder / "requirements-lite.txt").write_text("fake_duck==9\n")
    (folder / "requirements.txt").write_text("-r requirements-lite.txt\n")
    (folder / "pyproject.toml").write_text(
        '[build-system]\nrequires = ["fake_builder"]\nbuild-backend = "fake_builder"\n'
        '[project]\nname = "quack_lite"\nversion = "0.1"\n'
    )
    return folder


@needs_make
class TestWheels:
    OFFLINE = {"PIP_INDEX_URL": "http://127.0.0.1:9/", "PIP_RETRIES": "0", "PIP_CONFIG_FILE": os.devnull}

    def test_a_folder_of_wheels_is_all_that_the_set_up_takes(self, small_course, tmp_path):
        folder = tmp_path / "some wheels"
        folder.mkdir()
        done = make(".venv/full", folder=small_course, **self.OFFLINE)
        assert done.returncode != 0 and "fake_duck" in done.stderr  # the network, which is not there
        done = make(".venv/full", "WHEELS=../some wheels", folder=small_course, **self.OFFLINE)
        assert done.returncode != 0 and "WHEELS=../some wheels: no wheel is there" in done.stderr
        wheel(folder, "fake_duck", {"fake_duck.py": "SAYS = 'quack'"})
        wheel(folder, "fake_builder", {"fake_builder.py": BACKEND})
        done = make(".venv/full", "WHEELS=../some wheels", folder=small_course, **self.OFFLINE)
        assert done.returncode == 0, done.stdout + done.stderr
        command = [
            small_course / ".venv/bin/python",
            "-I",
            "-c",
            "import fake_duck, quack_lite; print(quack_lite.__file__)",
        ]
        said = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path).stdout
        assert said.strip() == str(small_course / "quack_lite" / "__init__.py")

    def test_make_wheels_collects_what_lab_installs(self):
        for target, file in (("wheels", "requirements.txt"), ("wheels-lite", "requirements-lite.txt")):
            plan = make("--dry-run", "PYTHON=python3", target, "WHEELS=there").stdout
            assert f'pip wheel --disable-pip-version-check -w "there" -r {file}' in plan
        assert "setuptools==" in (ROOT / "requirements-lite.txt").read_text()
