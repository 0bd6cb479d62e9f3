"""quack_lite.leash: what a process has started ends with it, and with it whatever that started."""

import signal
import subprocess
import sys
import textwrap
import time

from quack_lite.leash import leashed

WRITES_LATER = "import sys, time; print('up', flush=True); time.sleep(3); open(sys.argv[1], 'w')"


def run(code):
    return subprocess.Popen(leashed([sys.executable, "-c", code]), stdin=subprocess.PIPE).wait(timeout=30)


def test_the_exit_code_and_the_signal_are_the_commands():
    assert run("raise SystemExit(7)") == 7
    assert run("import os, signal; os.kill(os.getpid(), signal.SIGTERM)") == -signal.SIGTERM


def test_a_child_of_a_killed_process_and_its_own_child_are_gone(tmp_path):
    child = (
        f"import subprocess, sys; subprocess.run([sys.executable, '-c', {WRITES_LATER!r}, {str(tmp_path / 'late')!r}])"
    )
    starter = textwrap.dedent(f"""
        import subprocess, sys
        from quack_lite.leash import leashed
        command = leashed([sys.executable, "-c", {child!r}])
        subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True).wait()
    """)
    process = subprocess.Popen([sys.executable, "-c", starter], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "up\n"
    process.kill()
    process.wait()
    time.sleep(5)
    assert not (tmp_path / "late").exists()
