"""quack-lite: each command calls its function with what was typed; a bad argument is one line and no traceback."""

import subprocess
import sys
import types

import pytest

from quack_lite import cli

GRADE = {"proofs": False, "parked": False, "json": False, "junit": None}
REPORT = {"html": "report.html", "csv": "report.csv"}
BENCH = {"backward": False, "json": False}


@pytest.fixture
def calls(monkeypatch):
    """Replaces a module by one whose functions record their arguments and return 3."""
    made = []

    def replace(module, function):
        def record(*args, **kwargs):
            made.append((args, kwargs))
            return 3

        stand_in = types.ModuleType(module)
        setattr(stand_in, function, record)
        monkeypatch.setitem(sys.modules, module, stand_in)
        package, _, name = module.rpartition(".")
        holder = types.ModuleType(package) if package != "quack_lite" else sys.modules[package]
        monkeypatch.setitem(sys.modules, package, holder)
        monkeypatch.setattr(holder, name, stand_in, raising=False)
        return made

    return replace


@pytest.mark.parametrize(
    "typed, module, function, arguments",
    [
        ("doctor", "doctor", "run", ((), {"json": False})),
        ("doctor --json", "doctor", "run", ((), {"json": True})),
        ("doctor --workshop", "workshop", "run", ((30,), {"json": False})),
        ("doctor --workshop 12 --json", "workshop", "run", ((12,), {"json": True})),
        ("start 05", "desk", "start", (("05",), {"browser": True})),
        ("start 5 --no-browser", "desk", "start", (("5",), {"browser": False})),
        ("grade", "grading.report", "grade", (([],), GRADE)),
        ("grade 05 07", "grading.report", "grade", ((["05", "07"],), GRADE)),
        ("grade --proofs", "grading.report", "grade", (([],), GRADE | {"proofs": True})),
        ("grade --parked", "grading.report", "grade", (([],), GRADE | {"parked": True})),
        ("grade 05 --json", "grading.report", "grade", ((["05"],), GRADE | {"json": True})),
        ("grade --junit a.xml", "grading.report", "grade", (([],), GRADE | {"junit": "a.xml"})),
        ("report all", "grading.batch", "report", (("all",), {"html": None, "csv": None})),
        (
            "report all --html --csv",
            "grading.batch",
            "report",
            (("all",), {"html": "report.html", "csv": "report.csv"}),
        ),
        ("report all --html a.html", "grading.batch", "report", (("all",), {"html": "a.html", "csv": None})),
        ("progress", "grading.standing", "show", ((), {})),
        ("hint tails.a", "grading.hints", "hint", (("tails.a",), {})),
        ("reset 05", "desk", "reset", (("05",), {})),
        ("export", "transfer", "pack", ((None,), {})),
        ("export mine.zip", "transfer", "pack", (("mine.zip",), {})),
        ("import mine.zip", "transfer", "unpack", (("mine.zip",), {})),
        ("bench softmax", "bench.command", "run", (("softmax", "bf16"), BENCH)),
        ("bench softmax --dtype fp32", "bench.command", "run", (("softmax", "fp32"), BENCH)),
        ("bench softmax --backward", "bench.command", "run", (("softmax", "bf16"), BENCH | {"backward": True})),
        ("bench --all", "bench.command", "run_all", ((480,), {"json": False})),
        ("bench --all --seconds 60", "bench.command", "run_all", ((60,), {"json": False})),
        ("bench --summary", "ratios", "show", ((), {"json": False})),
        ("bench softmax --json", "bench.command", "run", (("softmax", "bf16"), BENCH | {"json": True})),
        ("bench --all --json", "bench.command", "run_all", ((480,), {"json": True})),
        ("bench --summary --json", "ratios", "show", ((), {"json": True})),
        ("verify", "evidence.verify", "run", (("", 480), {})),
        ("verify --only copy --seconds 60", "evidence.verify", "run", (("copy", 60), {})),
    ],
)
def test_a_command_calls_its_function_and_returns_its_code(calls, typed, module, function, arguments):
    made = calls(f"quack_lite.{module}", function)
    assert cli.main(typed.split()) == 3
    assert made == [arguments]


@pytest.mark.parametrize(
    "error, says",
    [
        (ValueError("there is no exercise '99'."), "quack-lite doctor: there is no exercise '99'.\n"),
        (ModuleNotFoundError("x", name="torch"), "torch is not installed here; `make lab` installs it."),
    ],
)
def test_an_error_is_one_line(monkeypatch, capsys, error, says):
    def fail(**_):
        raise error

    monkeypatch.setattr("quack_lite.doctor.run", fail)
    assert cli.main(["doctor"]) == 2
    assert says in capsys.readouterr().err


@pytest.mark.parametrize(
    "typed",
    [
        "",
        "fly",
        "start",
        "bench",
        "bench softmax --all",
        "hint",
        "start 05 06",
        "reset",
        "import",
        "grade --proofs --parked",
    ],
)
def test_a_wrong_command_line_is_explained(capsys, typed):
    with pytest.raises(SystemExit) as ended:
        cli.main(typed.split())
    assert ended.value.code == 2
    assert "usage: quack-lite" in capsys.readouterr().err


def test_python_m_quack_lite_is_the_same_command():
    done = subprocess.run([sys.executable, "-m", "quack_lite", "start", "99"], capture_output=True, text=True)
    assert done.returncode == 2 and done.stderr.startswith("quack-lite start: there is no exercise '99'.")
