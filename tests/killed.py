"""Kills a process that works on a learner's files, many times, and looks each time at what is left.

python tests/killed.py WHAT ROUNDS FOLDER, where WHAT is a key of JOBS; AssertionError where something was lost.
"""

import os
import random
import signal
import sys
import time
import zipfile
from itertools import count
from pathlib import Path

from quack_lite import desk, keeping, transfer
from quack_lite.grading.feedback import Verdict
from quack_lite.grading.progress import Progress, parse

STEPS = 3  # about as many as a process does that is killed at the latest moment
LONGEST = 0.1, 1.0  # seconds that a process lives at most, on a machine that has time for it and on one that has not
COURSE = b"as the course has it " * 4000
THEIRS = b"from another machine " * 4000


class Record:
    """Verdicts and questions, one after the other."""

    def __init__(self, folder):
        self.path, self.asked = folder / "work" / "progress.json", 0

    def work(self, done):
        for number in count():
            Progress(self.path).ask("a.b")
            done()
            Progress(self.path).record(Verdict(f"a.task{number % 40}", "failed", "values"))
            done()

    def look(self, done):
        tables = parse(self.path.read_bytes()) if self.path.exists() else parse("{}")
        now = tables["hints"].get("a.b", 0)
        assert now - self.asked in (-(-done // 2), -(-(done + 1) // 2)), f"{done} done, {now} after {self.asked}"
        assert len(tables["tasks"]) >= min(40, done // 2)
        self.asked = now


class Replace:
    """The learner saves an exercise, and something else is put in its place."""

    def __init__(self, folder):
        self.root, self.name, self.round, self.before = folder, "05_two.ipynb", 0, COURSE
        for name, text in (("exercises", COURSE), ("work", COURSE)):
            (folder / name).mkdir(exist_ok=True)
            (folder / name / self.name).write_bytes(text)

    def text(self, number):
        return b"round %d, version %d " % (self.round, number) * 4000

    def work(self, done):
        for number in count():
            keeping.write(self.root / "work" / self.name, self.text(number))
            done()
            self.replace()
            done()

    def replace(self):
        desk.reset("05", self.root)

    def look(self, done):
        here = (self.root / "work" / self.name).read_bytes()
        aside = [path.read_bytes() for path in (self.root / "work" / "aside").glob("05_two.*")]
        saved = [self.text(number) for number in range(done // 2 + 1)]
        assert here in (COURSE, THEIRS, self.before, *saved)
        assert set(aside) <= {*saved, self.before}
        for number in range(-(-done // 2)):
            assert saved[number] in (here, *aside), f"version {number} is lost, after {done} steps"
        self.clear()

    def clear(self):
        for path in (self.root / "work" / "aside").glob("*"):
            path.unlink()
        self.before = (self.root / "work" / self.name).read_bytes()
        self.round += 1


class Import(Replace):
    """The same, by an import; the progress comes along."""

    def __init__(self, folder):
        super().__init__(folder)
        other = folder / "other"
        home = Progress(other / "work" / "progress.json")
        other.mkdir()
        home.record(Verdict("two.a", "passed"))
        (other / "work" / self.name).write_bytes(THEIRS)
        transfer.pack(str(folder / "other.zip"), other)

    def replace(self):
        transfer.unpack(str(self.root / "other.zip"), self.root)

    def look(self, done):
        super().look(done)
        Progress(self.root / "work" / "progress.json").read()
        self.replace()
        assert (self.root / "work" / self.name).read_bytes() == THEIRS
        assert Progress(self.root / "work" / "progress.json").passed("two.a")
        self.clear()


class Export:
    """One export after the other."""

    def __init__(self, folder):
        self.root, self.out, self.files = folder, folder / "out", {}
        self.out.mkdir()
        Progress(folder / "work" / "progress.json").ask("a.b")
        for number in range(3):
            self.files[f"work/0{number}_x.ipynb"] = random.randbytes(30_000)
            (folder / "work" / f"0{number}_x.ipynb").write_bytes(self.files[f"work/0{number}_x.ipynb"])
        self.files["work/progress.json"] = (folder / "work" / "progress.json").read_bytes()

    def work(self, done):
        for number in count():
            transfer.pack(str(self.out / f"{number}.zip"), self.root)
            done()

    def look(self, done):
        made = sorted(self.out.glob("*.zip"))
        assert len(made) in (done, done + 1)
        for path in made:
            with zipfile.ZipFile(path) as archive:
                assert {name: archive.read(name) for name in archive.namelist()} == self.files
        for path in self.out.iterdir():
            path.unlink()
        for name, data in self.files.items():
            assert (self.root / name).read_bytes() == data


JOBS = {"progress": Record, "reset": Replace, "import": Import, "export": Export}


def kill_one(job, moment):
    """Lets a process work, kills it after moment(its pipe), and returns how many steps it had said were done."""
    ear, mouth = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            job.work(lambda: os.write(mouth, b"."))
        finally:
            os._exit(1)
    os.close(mouth)
    seen = moment(ear)
    os.kill(pid, signal.SIGKILL)
    ended = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert ended == -signal.SIGKILL, f"it ended by itself, with {ended}"
    with os.fdopen(ear, "rb") as file:
        return seen + len(file.read())


def after_steps(ear):
    return sum(len(os.read(ear, 1)) for _ in range(STEPS))


def after_a_while(longest):
    def wait(ear):
        time.sleep(random.uniform(0, longest))
        return 0

    return wait


def main(what, rounds, folder):
    job = JOBS[what](folder)
    begin = time.monotonic()
    job.look(kill_one(job, after_steps))
    quick, slow = LONGEST
    longest = min(quick, time.monotonic() - begin)
    steps = 0
    for number in range(rounds):
        done = kill_one(job, after_a_while(longest))
        job.look(done)
        steps += done
        if steps <= number // 2:  # a busy machine, or one whose disk is slow
            longest = min(slow, 1.5 * longest)
    print(f"{steps} steps done", file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))
