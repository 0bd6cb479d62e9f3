"""Files that are written whole or not at all, and copies aside."""

import select
import subprocess
import sys
from datetime import date

import pytest

from quack_lite import keeping

TODAY = date.today().isoformat()


def test_a_write_replaces_and_leaves_nothing_beside(tmp_path):
    keeping.write(tmp_path / "a", b"one")
    keeping.write(tmp_path / "a", b"two")
    assert (tmp_path / "a").read_bytes() == b"two" and len(list(tmp_path.iterdir())) == 1


def test_after_an_error_the_file_is_what_it_was(tmp_path):
    keeping.write(tmp_path / "a", b"one")
    with pytest.raises(ZeroDivisionError), keeping.whole(tmp_path / "a") as file:
        file.write(b"half")
        1 / 0  # noqa: B018
    assert (tmp_path / "a").read_bytes() == b"one" and len(list(tmp_path.iterdir())) == 1


def test_what_an_earlier_write_left_is_taken_over(tmp_path):
    (tmp_path / ".a.part").write_bytes(b"a long half of something")
    keeping.write(tmp_path / "a", b"one")
    assert [path.name for path in tmp_path.iterdir()] == ["a"] and (tmp_path / "a").read_bytes() == b"one"


def test_copies_aside_have_the_date_and_equal_ones_are_one(tmp_path):
    file = tmp_path / "05_two.ipynb"
    for text, name in [
        ("a", f"05_two.{TODAY}.ipynb"),
        ("b", f"05_two.{TODAY}-2.ipynb"),
        ("a", f"05_two.{TODAY}.ipynb"),
    ]:
        file.write_text(text)
        kept = keeping.keep_aside(file, tmp_path)
        assert kept == tmp_path / "aside" / name and kept.read_text() == text
    assert file.read_text() == "a"


def test_a_file_in_a_folder_is_kept_in_that_folder(tmp_path):
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a").write_text("mine")
    assert keeping.keep_aside(tmp_path / "notes" / "a", tmp_path) == tmp_path / "aside" / "notes" / f"a.{TODAY}"


def test_one_at_a_time(tmp_path):
    code = (
        "import sys, time; from pathlib import Path; from quack_lite import keeping\n"
        "print('asks', flush=True)\n"
        "with keeping.alone(Path(sys.argv[1])): print('in', flush=True); time.sleep(60)"
    )

    def started():
        process = subprocess.Popen([sys.executable, "-c", code, tmp_path], stdout=subprocess.PIPE, bufsize=0)
        assert process.stdout.readline() == b"asks\n"
        return process

    first = started()
    assert first.stdout.readline() == b"in\n"
    second = started()
    try:
        assert select.select([second.stdout], [], [], 0.5)[0] == []
        first.kill()
        assert second.stdout.readline() == b"in\n", "the lock ends with its process"
    finally:
        for process in (first, second):
            process.kill()
            process.communicate()


def test_where_there_are_no_locks_it_goes_on(tmp_path, monkeypatch):
    def refuse(file, how):
        raise OSError("no locks available")

    monkeypatch.setattr(keeping.fcntl, "flock", refuse)
    with keeping.alone(tmp_path / "work"):
        assert (tmp_path / "work").is_dir()
