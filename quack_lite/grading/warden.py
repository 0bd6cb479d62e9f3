"""The process between a notebook and a grader: python -m quack_lite.grading.warden FOLDER (spawn.py starts it).

An answer that kills its parent hits this process and not the notebook. On Linux whatever the answer starts and leaves
behind becomes its child. It ends them all when the grader has ended, and when its standard input closes: spawn.py does
that, and so does the end of a notebook that is killed. Then it ends as the grader did.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import subprocess
import sys
import threading
from pathlib import Path

import psutil

from quack_lite.grading import family

FILE_BYTES = 2**30  # the largest file that an answer can write
PR_SET_CHILD_SUBREAPER = 36  # prctl(2)


def main(folder: str) -> None:
    """Starts the grader with the key that stands on the first line of standard input."""
    _set_limits()
    grader = subprocess.Popen(
        [sys.executable, "-m", "quack_lite.grading.grader", folder],
        stdin=subprocess.PIPE,
        env={**os.environ, "PYTHONUNBUFFERED": ""},  # many lines are to meet the limit on output, not that on time
        start_new_session=True,
    )
    with contextlib.suppress(BrokenPipeError), grader.stdin as pipe:
        pipe.write(sys.stdin.buffer.readline())
    threading.Thread(target=_kill_when_alone, args=(grader,), daemon=True).start()
    code = grader.wait()
    _end_children()
    _end_as(code)


def _set_limits() -> None:
    """For this process and all that come from it: no core files, no huge files, first to go where memory is short."""
    for limit, most in ((resource.RLIMIT_CORE, 0), (resource.RLIMIT_FSIZE, FILE_BYTES)):
        hard = resource.getrlimit(limit)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(limit, (most, most))
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        with contextlib.suppress(OSError):
            Path("/proc/self/oom_score_adj").write_text("1000")


def _kill_when_alone(grader: subprocess.Popen) -> None:
    sys.stdin.buffer.read()
    grader.kill()


def _end_children() -> None:
    """Each turn collects one that has ended; its own children have become ours by then."""
    while True:
        for process in family.of(os.getpid()):
            with contextlib.suppress(psutil.Error):
                process.kill()
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def _end_as(code: int) -> None:
    if code < 0:
        with contextlib.suppress(OSError):  # nobody can change what SIGKILL does
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


if __name__ == "__main__":
    main(sys.argv[1])
