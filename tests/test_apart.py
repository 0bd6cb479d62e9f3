"""Running what breaks in a process of its own, and what is printed of it."""

import signal
import subprocess
import sys
import textwrap
import time

import pytest

from quack_lite import lesson
from quack_lite.grading import apart

LOG = """\
========= COMPUTE-SANITIZER
========= Invalid __global__ read of size 4 bytes
=========     at kernel_cutlass_unguarded_kernel_0+0xd0
=========     by thread (232,0,0) in block (3,0,0)
=========     Access to 0x7f5d7fa00fa0 is out of bounds
=========     and is 1 bytes after the nearest allocation at 0x7f5d7fa00000 of size 4000 bytes
=========     Saved host backtrace up to driver entry point at kernel launch time
=========
========= Invalid __global__ write of size 4 bytes
=========     by thread (233,0,0) in block (3,0,0)
========= ERROR SUMMARY: 48 errors
"""
COMPILER = """\

error[UNSUP_EARLY_EXIT]: Early exit (return) is not allowed in `f`.
  --> /tmp/ipykernel_1/2.py:7:9
   |
7 |         return
   |         ^^^^^^

  suggestion: write it otherwise
"""


def ended(body):
    return apart.run(f"def answer():\n{textwrap.indent(textwrap.dedent(body), '    ')}")


def test_what_is_printed_comes_back():
    assert ended("print('here')") == apart.End("here\n", "")


def test_an_error_comes_back_with_what_was_printed_before():
    assert ended("print(1)\nraise ValueError('too long\\nand more')") == apart.End("1\n", "ValueError: too long")


def test_a_crash_is_told():
    assert ended("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)").error.endswith("ended by SIGSEGV")
    assert ended("import os\nos._exit(3)").error == "the process ended with code 3"


def test_a_hang_is_ended():
    end = apart.run("import time\ndef answer():\n    time.sleep(60)\n", seconds=1.5)
    assert end.error == "the process was ended: nothing came back for 1.5 s"


def test_what_runs_ends_when_its_cell_is_interrupted(tmp_path):
    answer = f"import time\ndef answer():\n    time.sleep(4)\n    open({str(tmp_path / 'late')!r}, 'w')\n"
    heard = "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"  # a shell's & has it ignored
    cell = f"{heard}from quack_lite.grading import apart\nprint('up', flush=True)\napart.run({answer!r})"
    process = subprocess.Popen(
        [sys.executable, "-c", cell], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert process.stdout.readline() == "up\n"
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    process.wait(timeout=10)
    time.sleep(5)
    assert not (tmp_path / "late").exists()


def test_of_a_compilers_error_only_the_path_goes():
    said = apart.stable(RuntimeError(COMPILER))
    assert "ipykernel" not in said and said.startswith("error[UNSUP") and said.endswith("otherwise")
    assert "7 |         return" in said and "\n\n" not in said


def test_of_other_errors_the_first_line_stays():
    assert apart.stable(RuntimeError("CUDA error: bad\nadvice")) == "RuntimeError: CUDA error: bad"
    assert apart.stable(ValueError()) == "ValueError: no message"


def test_the_first_finding_of_memcheck_without_addresses():
    assert apart.findings(LOG).splitlines() == [
        "Invalid __global__ read of size 4 bytes",
        "by thread (232,0,0) in block (3,0,0)",
        "it is 1 bytes after the nearest allocation of size 4000 bytes",
        "ERROR SUMMARY: 48 errors",
    ]
    assert apart.findings("nothing") == "the tool wrote no summary"


def test_expect_error_prints_what_is_said(capsys):
    lesson.expect_error(lambda: int("x"))
    assert capsys.readouterr().out == "ValueError: invalid literal for int() with base 10: 'x'\n"


HANGS = """
import time
from quack_lite.lesson import apart, expect_error


def hangs():
    print("here", flush=True)
    time.sleep(60)


if __name__ == "__main__":
    expect_error(hangs, apart=True, seconds=4)
    apart(hangs, seconds=4)
"""


def test_what_never_comes_back_is_ended_after_so_many_seconds(tmp_path):
    path = tmp_path / "hangs.py"
    path.write_text(HANGS)
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "here\nthe process was ended: nothing came back for 4 s\n" * 2


def test_expect_error_wants_one():
    with pytest.raises(AssertionError, match="it was to fail"):
        lesson.expect_error(lambda: 1)


NOTEBOOK = """
from quack_lite.lesson import apart, expect_error
FACTOR = 2
def fails():
    print(FACTOR)
    raise KeyError("lost")
expect_error(fails, apart=True)
"""


def test_a_function_of_a_notebook_goes_with_its_cells(tmp_path):
    from test_lesson import execute, said

    cells = NOTEBOOK.strip().split("\n")
    notebook = execute(tmp_path, cells[0], cells[1], "\n".join(cells[2:5]), cells[5], "apart('print(FACTOR + 1)')")
    assert said(notebook.cells[3]) == "2\nKeyError: 'lost'"
    assert said(notebook.cells[4]) == "3"


def test_a_function_of_a_file_goes_with_its_file(tmp_path):
    (tmp_path / "given.py").write_text(
        "from quack_lite import lesson\ndef f():\n    print('f')\nif __name__ == '__main__':\n    lesson.apart(f)\n"
    )
    done = subprocess.run([sys.executable, tmp_path / "given.py"], capture_output=True, text=True)
    assert done.stdout == "f\n", done.stderr


def test_show_has_decorators_and_colours():
    shown = lesson.show(decorated, "x = '<'")
    assert repr(shown) == "@pytest.fixture\ndef decorated():\n    return 1\n\n\nx = '<'"
    assert "<span" in shown._repr_html_() and "&lt;" in shown._repr_html_()


@pytest.fixture
def decorated():
    return 1
