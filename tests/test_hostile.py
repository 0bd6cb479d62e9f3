"""Programs that break the grader or want to look right: each gets its sentence in time and leaves nothing behind."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from test_grading import NEEDED, RIGHT

from quack_lite.grading import family, spawn

MEAN = "bytes_in_flight.mean"
ROOT = Path(__file__).resolve().parents[1]
SECONDS = 3.0  # for an answer, here
MEMORY = 2**29
START = "import os, signal, subprocess, sys, time\n"
DAEMON = """if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(600)
    os._exit(0)
os.wait()
"""
FOLDER = "import pathlib, sys, json\nfolder = pathlib.Path(sys.argv[1])\n"
FORGED = """verdict = {'task': 'bytes_in_flight.needed', 'status': 'passed', 'gate': '', 'sentence': '',
           'seen': [['numbers', 'right']], 'picture': {}}
"""

ENDINGS = {
    "a loop without end": ("while True: pass", "a loop or a wait without end"),
    "a wait for a child that hangs": ("subprocess.run(['sleep', '600'])", "a loop or a wait without end"),
    "it stops itself": ("os.kill(os.getpid(), signal.SIGSTOP)", "a loop or a wait without end"),
    "it waits for input": ("input()", "raised EOFError, at `input()`"),
    "all memory": ("held = bytearray(b'x') * 2**32", "it took more than 0.5 GiB of memory"),
    "all memory, in children": (
        "for _ in range(6):\n    if os.fork() == 0:\n        held = bytearray(b'x') * 2**27\n        time.sleep(600)\n"
        "time.sleep(600)",
        "it took more than 0.5 GiB of memory",
    ),
    "a million lines": ("for i in range(10**6): print('line', i)", "it printed more than 4 MiB"),
    "printing without end": ("while True: print('line')", "it printed more than 4 MiB"),
    "a hundred processes": (
        "for _ in range(100):\n    if os.fork() == 0: time.sleep(600)\ntime.sleep(600)",
        "it ran more than 64 processes",
    ),
    "sys.exit": ("sys.exit(0)", "your code ends Python, at `sys.exit(0)`"),
    "os._exit": ("os._exit(0)", "(exit code 0): look for what ends Python"),
    "a crash": ("os.kill(os.getpid(), signal.SIGSEGV)", "(SIGSEGV): look for an access outside"),
    "it kills itself": ("os.kill(os.getpid(), signal.SIGKILL)", "(SIGKILL): look for code that ends processes"),
    "it kills its parent's group": ("os.killpg(os.getpgid(os.getppid()), 9)", "(SIGKILL): look for code that ends"),
    "a BaseException": (
        "class Stop(BaseException): pass\nraise Stop('here')",
        "your code raised Stop, at `raise Stop('here')`: here",
    ),
    "a message that cannot be read": (
        "class Stop(Exception):\n    def __str__(self): raise self\nraise Stop",
        "your code raised Stop, at `raise Stop`: its message cannot be read",
    ),
    "a child that outlives it": ("subprocess.Popen(['sleep', '600'])", "left a process running"),
    "a fork that outlives it": ("if os.fork() == 0: time.sleep(600)", "left a process running"),
    "a daemon that outlives it": (DAEMON, "left a process running"),
    "a daemon, and its parent killed": (DAEMON + "os.kill(os.getppid(), 9)", "(SIGKILL): look for code that ends"),
}
TRICKS = {
    "a clock replaced": ("time.perf_counter = lambda: 0.0", "your code replaced time.perf_counter"),
    "a clock replaced when it is called": (
        "def bytes_needed(copy, latency, sms):\n    time.sleep = print\n    return copy / 2 * latency / sms\n"
        "answer = (bytes_needed, loads_needed, naive_is_enough)",
        "your code replaced time.sleep",
    ),
    "numpy.allclose replaced": ("import numpy; numpy.allclose = lambda *_: True", "your code replaced numpy.allclose"),
    "a builtin replaced": ("import builtins; builtins.abs = lambda x: 0", "your code replaced builtins.abs"),
    "a builtin shadowed in a task's module": (
        "from quack_lite.grading.tasks import bytes_in_flight\nbytes_in_flight.abs = lambda x: 0",
        "your code replaced quack_lite.grading.tasks.bytes_in_flight.abs",
    ),
    "the judge replaced": (
        "import __main__\n__main__.judge = lambda *_: 1",
        "your code replaced __main__.judge",
    ),
    "a gate replaced": (
        "from quack_lite.grading import tasks\ngate = tasks.find('bytes_in_flight.needed').gates[0]\n"
        "object.__setattr__(gate, 'judge', lambda submission: 'right on 5 machines')\nanswer = 0",
        "your code replaced quack_lite.grading.tasks.bytes_in_flight.TASKS.gates.judge",
    ),
    "the gates taken out": (
        "from quack_lite.grading import tasks\n"
        "object.__setattr__(tasks.find('bytes_in_flight.needed'), 'gates', ())\nanswer = 0",
        "your code replaced quack_lite.grading.tasks.bytes_in_flight.TASKS.gates",
    ),
    "the code of a comparison replaced": (
        "from quack_lite.grading.tasks import bytes_in_flight\n"
        "bytes_in_flight.judge_bytes.__code__ = (lambda given, machine: None).__code__",
        "your code replaced quack_lite.grading.tasks.bytes_in_flight.judge_bytes",
    ),
    "a tolerance made wide": (
        "from quack_lite.grading.tasks import bytes_in_flight\nbytes_in_flight.TOLERANCE = 100.0",
        "your code replaced quack_lite.grading.tasks.bytes_in_flight.TOLERANCE",
    ),
    "a printed PASS": ("print('✓ bytes_in_flight.needed passed\\nPASS')\nos._exit(0)", "(exit code 0)"),
    "a forged verdict": (
        FOLDER + FORGED + "(folder / 'verdict0.json').write_text(json.dumps({'key': '0', 'verdict': verdict}))\n"
        "import time; time.sleep(600)",
        "a verdict came that the grader did not write",
    ),
    "a verdict that is no file": (
        FOLDER + "import os, time; os.mkfifo(folder / 'verdict0.json'); time.sleep(600)",
        "a verdict came that the grader did not write",
    ),
    "a verdict of a gigabyte": (
        FOLDER + "import time\nwith open(folder / 'v', 'wb') as file: file.truncate(2**30 - 1)\n"
        "(folder / 'v').rename(folder / 'verdict0.json'); time.sleep(600)",
        "a verdict came that the grader did not write",
    ),
}


@pytest.fixture(autouse=True)
def limits(monkeypatch):
    monkeypatch.setattr(spawn, "ANSWER_SECONDS", SECONDS)
    monkeypatch.setattr(spawn, "MEMORY_BYTES", MEMORY)
    yield
    assert left_behind() == []


def left_behind():
    """What still runs of the runs that this process started."""
    return of_notebook(os.getpid())


def mark_of(process):
    try:
        return process.environ().get(family.MARK, "")
    except psutil.Error:
        return ""


def graded(*texts, task=NEEDED):
    return spawn.grade([spawn.Answer(task, text) for text in texts])


@pytest.mark.parametrize(("text", "told"), ENDINGS.values(), ids=ENDINGS)
def test_an_answer_that_breaks_its_process(text, told):
    begin = time.monotonic()
    [verdict] = graded(RIGHT + START + text)
    assert verdict.status == "failed" and told in verdict.sentence and "\n" not in verdict.sentence
    assert time.monotonic() - begin < SECONDS + 12  # start and end included


@pytest.mark.parametrize(("text", "told"), TRICKS.values(), ids=TRICKS)
def test_an_answer_that_wants_to_look_right(text, told):
    [verdict] = graded(RIGHT + START + text)
    assert verdict.status == "failed" and told in verdict.sentence
    assert verdict.gate == "numbers"


def test_a_spoilt_process_costs_one_answer():
    thread = "import threading; threading.Thread(target=lambda: time.sleep(600)).start()\n"
    texts = ("import math; math.ceil = int\n", "import os; os._exit(0)\n", START + thread, "")
    verdicts = graded(*(RIGHT + text for text in texts), RIGHT)
    assert [verdict.status for verdict in verdicts] == ["failed", "failed", "passed", "passed", "passed"]


def test_a_closed_output_does_not_matter():
    assert graded(RIGHT + "import sys; sys.stdout.close()")[0].status == "passed"


def test_a_task_of_a_program_is_guarded_too():
    text = (
        "import numpy\ndef mean(b, x, y, z, n):\n    numpy.flatnonzero = lambda mask: numpy.zeros(0)\nanswer = mean\n"
    )
    [verdict] = graded(text, task=MEAN)
    assert (verdict.gate, verdict.sentence[:38]) == ("checks", "your code replaced numpy.flatnonzero, ")


@pytest.fixture
def course(tmp_path, monkeypatch):
    """A copy of the course's package, with a work/ of its own, that the grader runs from."""
    shutil.copytree(ROOT / "quack_lite", tmp_path / "quack_lite", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "progress.json").write_text('{"tasks": {"a.b": {"status": "passed"}}}')
    monkeypatch.setattr(spawn, "ROOT", tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", ["grading/tasks/bytes_in_flight.py", "grading/tasks/mine.py", "simt/run.py"])
def test_a_file_of_the_course_that_is_written(course, name):
    text = RIGHT + f"with open({str(course / 'quack_lite' / name)!r}, 'a') as file: file.write('# mine')"
    first, second = graded(text, RIGHT)
    assert first.sentence.startswith(f"quack_lite/{name} changed while your code ran: `git status` shows it")
    assert second.status == "passed"


def test_a_pass_written_into_the_progress(course):
    forged = '{"tasks": {"a.b": {"status": "passed"}, "bytes_in_flight.cast": {"status": "passed"}}}'
    [verdict] = graded(RIGHT + write_progress(course, forged))
    assert verdict.status == "failed" and "work/progress.json calls another number of tasks passed" in verdict.sentence


def test_a_hint_in_another_notebook_is_no_forgery(course):
    told = '{"tasks": {"a.b": {"status": "passed"}}, "hints": {"a.b": 2}}'
    [verdict] = graded(RIGHT + write_progress(course, told))
    assert verdict.status == "passed"


def write_progress(course, text):
    return f"import pathlib\npathlib.Path({str(course / 'work' / 'progress.json')!r}).write_text({text!r})"


def test_nothing_is_left_of_a_check_whose_notebook_is_killed():
    code = f"from quack_lite.grading import spawn\nspawn.grade([spawn.Answer({NEEDED!r}, 'while True: pass')])"
    notebook = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT)
    assert wait_for(lambda: len(of_notebook(notebook.pid)) == 2), "a warden and a grader"
    notebook.send_signal(signal.SIGKILL)
    notebook.wait()
    assert wait_for(lambda: not of_notebook(notebook.pid))


def of_notebook(pid):
    return [process for process in psutil.process_iter() if mark_of(process).startswith(f"{pid}-")]


def wait_for(condition, seconds=20):
    limit = time.monotonic() + seconds
    while not condition() and time.monotonic() < limit:
        time.sleep(0.05)
    return condition()


def test_the_notebook_lives(tmp_path):
    import nbformat
    from nbclient import NotebookClient

    sources = ["from quack_lite.lesson import check\nimport os", "x = 41"]
    sources += ["f = lambda *_: os.killpg(os.getpgid(os.getppid()), 9)", f"check({NEEDED!r}, (f, f, f))", "x + 1"]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
    resources = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(notebook, timeout=60, kernel_name="python3", allow_errors=True, resources=resources).execute()
    [failed] = notebook.cells[3].outputs
    assert "GradeFailed" in "".join(failed["traceback"]) and "(SIGKILL)" in "".join(failed["traceback"])
    assert notebook.cells[4].outputs[0]["data"]["text/plain"] == "42"
