"""What an answer must leave alone on the disk: the course's own files, and what counts as passed."""

from __future__ import annotations

from pathlib import Path

from quack_lite.grading.progress import Damaged, parse

COURSE = "quack_lite"
PROGRESS = "work/progress.json"


def taken(root: Path) -> dict[str, int]:
    """{path below `root`: a number that changes when the file does}."""
    stamps = {}
    for path in (root / COURSE).rglob("*.py"):
        try:
            stamps[path.relative_to(root).as_posix()] = path.stat().st_ctime_ns
        except OSError:
            continue
    # Other notebooks write hints and guesses meanwhile; a pass comes from a check only.
    return stamps | {PROGRESS: _passes(root / PROGRESS)}


def sentence(before: dict[str, int], after: dict[str, int]) -> str:
    """What became of the first file that is not as before; empty if all are."""
    changed = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
    if not changed:
        return ""
    if changed == [PROGRESS]:
        return (
            f"{PROGRESS} calls another number of tasks passed than before your code ran: only check writes there "
            "(if it did, in another notebook, check again)"
        )
    return (
        f"{changed[0]} changed while your code ran: `git status` shows it, `git restore {changed[0]}` brings it back "
        "(if you saved it yourself meanwhile, check again)"
    )


def _passes(path: Path) -> int:
    """How many tasks the progress file calls passed; 0 where there is none that can be read."""
    try:
        tasks = parse(path.read_bytes())["tasks"]
    except (OSError, ValueError, Damaged):
        return 0
    return sum(entry["status"] == "passed" for entry in tasks.values())
