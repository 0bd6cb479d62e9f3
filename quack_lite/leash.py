"""Runs a command that ends when the process that asked for it is gone: python -m quack_lite.leash COMMAND...

Standard input is the leash. It closes with the process that holds its other end, however that one ended. Then all that
the command has started ends as well, and nothing goes on using a GPU.
"""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence


def main(command: Sequence[str]) -> int:
    """The command's exit code; a signal that ended the command ends this process too."""
    if os.getpgrp() != os.getpid():
        os.setpgrp()  # what ends here is this group
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL)
    threading.Thread(target=_end_when_alone, daemon=True).start()
    code = process.wait()
    if code < 0:
        os.kill(os.getpid(), -code)
    return code


def leashed(command: Sequence[str]) -> list[str]:
    """The command to start instead, with standard input as a pipe that stays open."""
    return [sys.executable, "-m", "quack_lite.leash", *command]


def _end_when_alone() -> None:
    while os.read(0, 1024):
        pass
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
