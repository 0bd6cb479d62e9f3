"""A process that is killed at any moment loses nothing of a learner's and leaves no file half written."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROUNDS = {"progress": 60, "reset": 60, "export": 60, "import": 20}


@pytest.mark.parametrize("what", ROUNDS)
def test_nothing_is_lost(what, tmp_path):
    assert sum(ROUNDS.values()) == 200
    command = [sys.executable, Path(__file__).with_name("killed.py"), what, str(ROUNDS[what]), tmp_path]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    steps = int(re.match(r"(\d+) steps done", done.stderr)[1])
    assert steps > ROUNDS[what] // 4, "they were killed before they had begun"
