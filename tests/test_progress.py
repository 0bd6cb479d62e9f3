"""The progress file, what is told of it, and hints."""

import json
import subprocess
import sys
from datetime import date

import nbformat
import pytest

from quack_lite import keeping
from quack_lite.grading import hints, notebook, standing, tasks
from quack_lite.grading.feedback import Verdict
from quack_lite.grading.progress import VERSION, Progress, parse

NEEDED = "bytes_in_flight.needed"
OLD = {
    "tasks": {"a.b": {"status": "parked", "gate": "values", "date": "2026-01-02"}},
    "hints": {"a.b": 3},
    "guesses": {"copy": {"guess": 4.0, "unit": "GB/s"}},
}


@pytest.fixture
def progress(tmp_path):
    (tmp_path / "work").mkdir()
    return Progress(tmp_path / "work" / "progress.json")


class TestProgress:
    def test_passed_stays_passed(self, progress):
        progress.record(Verdict("a.b", "parked", "values"))
        assert progress.parked() == ["a.b"] and not progress.passed("a.b")
        progress.record(Verdict("a.b", "passed"))
        progress.record(Verdict("a.b", "failed", "values"))
        assert progress.passed("a.b") and progress.parked() == []

    def test_questions_are_counted(self, progress):
        assert [progress.ask("a.b") for _ in range(5)] == [1, 2, 3, 4, 5]
        assert progress.ask("a.c") == 1

    def test_a_guess_meets_its_measurement(self, progress):
        progress.measured("copy", 5.0)
        progress.guess("copy", 4.0, "GB/s")
        progress.measured("copy", 5.0)
        assert progress.read()["guesses"] == {"copy": {"guess": 4.0, "unit": "GB/s", "measured": 5.0}}

    def test_reopened_is_what_has_not_passed(self, progress):
        for task, status in [("a.one", "passed"), ("a.two", "parked"), ("a.three", "failed"), ("ab.one", "failed")]:
            progress.record(Verdict(task, status))
        progress.reopen("a")
        assert list(progress.read()["tasks"]) == ["a.one", "ab.one"]

    def test_a_person_can_read_it(self, progress):
        progress.record(Verdict("a.b", "failed", "values"))
        progress.guess("Größe, µs", 2.0, "µs")
        lines = progress.path.read_text(encoding="utf-8").splitlines()
        assert lines[1] == f' "version": {VERSION},' and any("Größe, µs" in line for line in lines)

    def test_any_title_can_be_kept(self, progress):
        progress.guess("half \ud83e", 2.0, "GB/s")
        assert list(progress.read()["guesses"]) == ["half \ud83e"]

    def test_asking_makes_no_file_and_no_folder(self, tmp_path):
        assert Progress(tmp_path / "work" / "progress.json").parked() == []
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize("writers", [6])
    def test_notebooks_that_write_at_once_lose_nothing(self, progress, writers):
        code = (
            "import sys; from pathlib import Path; from quack_lite.grading.progress import Progress\n"
            "for _ in range(10): Progress(Path(sys.argv[1])).ask('a.b')"
        )
        command = [sys.executable, "-c", code, progress.path]
        for running in [subprocess.Popen(command) for _ in range(writers)]:
            assert running.wait() == 0
        assert progress.read()["hints"]["a.b"] == 10 * writers


class TestVersions:
    @pytest.mark.parametrize("missing", [(), ("hints",), ("tasks", "guesses")])
    def test_an_older_file_is_taken_over(self, progress, missing):
        old = {name: table for name, table in OLD.items() if name not in missing}
        progress.path.write_text(json.dumps(old))
        assert progress.read() == {"version": VERSION, "tasks": {}, "hints": {}, "guesses": {}, **old}
        assert json.loads(progress.path.read_text()) == old, "reading changes nothing"
        progress.record(Verdict("a.c", "passed"))
        kept = json.loads(progress.path.read_text())
        assert kept["version"] == VERSION and kept["tasks"].pop("a.c")
        assert all(kept[name] == table for name, table in old.items())

    def test_a_newer_file_is_refused_and_left_as_it_is(self, progress):
        text = json.dumps({**OLD, "version": VERSION + 1})
        progress.path.write_text(text)
        for call in (progress.read, lambda: progress.record(Verdict("a.b", "passed"))):
            with pytest.raises(ValueError, match=rf"version {VERSION + 1}, .*git pull"):
                call()
        assert progress.path.read_text() == text

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "{half",
            "[]",
            "3",
            "\x00\xff",
            '{"version": "2"}',
            '{"version": 0}',
            '{"version": 2}',
            '{"tasks": []}',
            '{"tasks": {"a.b": "passed"}}',
            '{"tasks": {"a.b": {"status": "won"}}}',
            '{"hints": {"a.b": "3"}}',
            '{"guesses": {"a": 3}}',
        ],
    )
    def test_a_damaged_file_is_set_aside(self, progress, capsys, text):
        progress.path.write_bytes(text.encode("latin-1"))
        progress.record(Verdict("a.b", "passed"))
        name = f"progress.{date.today().isoformat()}.json"
        assert (progress.path.parent / "aside" / name).read_bytes() == text.encode("latin-1")
        assert progress.passed("a.b")
        assert f"it is now work/aside/{name}, and a new one begins" in capsys.readouterr().out


class TestAdd:
    def status(self, progress):
        return {task: entry["status"] for task, entry in progress.read()["tasks"].items()}

    def brought(self, **tables):
        return {**parse("{}"), **tables}

    @pytest.mark.parametrize(
        "mine, theirs, then",
        [
            ("passed", "failed", "passed"),
            ("failed", "passed", "passed"),
            ("parked", "failed", "failed"),  # theirs is newer
            (None, "parked", "parked"),
        ],
    )
    def test_of_a_task_passed_counts_and_then_what_is_newer(self, progress, mine, theirs, then):
        if mine:
            progress.record(Verdict("a.b", mine))
        entry = {"status": theirs, "gate": "", "date": "2999-01-01T00:00:00+00:00"}
        progress.add(self.brought(tasks={"a.b": entry}))
        assert self.status(progress) == {"a.b": then}

    def test_what_is_older_replaces_nothing(self, progress):
        progress.record(Verdict("a.b", "parked"))
        today = date.today().isoformat()  # as version 1 wrote it, without a time
        progress.add(self.brought(tasks={"a.b": {"status": "failed", "gate": "", "date": today}}))
        assert self.status(progress) == {"a.b": "parked"}

    def test_hints_and_guesses(self, progress):
        for _ in range(2):
            progress.ask("a.b")
        progress.guess("x", 1.0, "ns")
        guesses = {"x": {"guess": 9.0, "unit": "ns", "measured": 8.0}, "y": {"guess": 2.0, "unit": "ns"}}
        progress.add(self.brought(hints={"a.b": 1, "a.c": 3}, guesses=guesses))
        assert progress.read()["hints"] == {"a.b": 2, "a.c": 3} and progress.read()["guesses"] == guesses


@pytest.fixture
def course(tmp_path):
    """Lessons 01 (no tasks), 03 (two, of 1 and 2 points) and 05 (one, no lesson's notebook)."""
    for name, checks in {
        "notebooks/01_read": {},
        "notebooks/03_copy": {},
        "exercises/03_copy": {"copy.one": 1, "copy.two": 2},
        "exercises/05_far": {"far.one": 1},
    }.items():
        made = nbformat.v4.new_notebook()
        for task, points in checks.items():
            made.cells.append(
                nbformat.v4.new_code_cell(f"check('{task}', 1)", metadata={"nbgrader": {"points": points}})
            )
        (tmp_path / name).parent.mkdir(exist_ok=True)
        nbformat.write(made, tmp_path / f"{name}.ipynb")
    return tmp_path


class TestStanding:
    def told(self, course, *verdicts):
        progress = Progress(course / "work" / "progress.json")
        for task, status in verdicts:
            progress.record(Verdict(task, status, "" if status == "passed" else "values"))
        lessons = standing.of(progress.read(), course)
        return [lesson.state for lesson in lessons], standing.summary(lessons)

    def test_at_the_start_a_lesson_is_next(self, course):
        states, said = self.told(course)
        assert states == ["", "open", "open"]
        assert said == [
            "3 tasks: 0 passed, 0 parked, 3 open. 0 of 4 points.",
            "Next: read notebooks/03_copy.ipynb, then do work/03_copy.ipynb (`quack-lite start 03` opens it).",
        ]

    def test_in_an_exercise_its_first_open_task_is_next(self, course):
        states, said = self.told(course, ("copy.one", "passed"), ("copy.two", "failed"))
        assert states == ["", "open", "open"]
        assert said[0] == "3 tasks: 1 passed, 0 parked, 2 open. 1 of 4 points."
        assert said[1] == 'Next: copy.two, in work/03_copy.ipynb; hint("copy.two") helps.'
        assert "shows the course's solution" in said[-1]

    def test_what_is_parked_waits_and_the_next_exercise_comes(self, course):
        states, said = self.told(course, ("copy.one", "passed"), ("copy.two", "parked"))
        assert states == ["", "parked", "open"]
        assert said[1] == "Next: work/05_far.ipynb (`quack-lite start 05` opens it)."
        assert "quack-lite grade --parked" in " ".join(said)

    def test_at_the_end(self, course):
        states, said = self.told(course, *((task, "passed") for task in ("copy.one", "copy.two", "far.one")))
        assert states == ["", "passed", "passed"]
        assert said[0] == "3 tasks: 3 passed, 0 parked, 0 open. 4 of 4 points." and "Next" not in " ".join(said)

    def test_a_question_begins_an_exercise(self, course):
        Progress(course / "work" / "progress.json").ask("copy.two")
        assert self.told(course)[1][1].startswith("Next: copy.one, in work")

    def test_shown(self, course, capsys):
        self.told(course, ("copy.one", "passed"), ("copy.two", "failed"))
        assert standing.show(course) == 0
        out = capsys.readouterr().out
        rows = [[word.strip() for word in line.split("│")[1:-1]] for line in out.splitlines() if "│" in line]
        today = Progress(course / "work" / "progress.json").read()["tasks"]["copy.two"]["date"][:10]
        assert rows == [
            ["01_read", "-", "-", "no tasks"],
            ["03_copy", "open", "1 of 3", ""],
            ["copy.one", "passed", "1", today],
            ["copy.two", "open", "2", f"failed at values, {today}"],
            ["05_far", "open", "0 of 1", ""],
            ["far.one", "open", "1", ""],
        ]
        assert out.splitlines()[-3].startswith("3 tasks: 1 passed")

    def test_without_lessons(self, tmp_path):
        with pytest.raises(ValueError, match="there are no lessons in"):
            standing.show(tmp_path)

    def test_the_course_as_it_is(self):
        lessons = standing.of(parse("{}"))
        assert {task.task for lesson in lessons for task in lesson.tasks} == {task.id for task in tasks.every()}
        assert all(task.points > 0 for lesson in lessons for task in lesson.tasks)


class TestHints:
    @pytest.fixture
    def ask(self, progress, monkeypatch, capsys):
        monkeypatch.setattr(hints, "Progress", lambda: progress)

        def ask():
            assert hints.hint(NEEDED) == 0
            return capsys.readouterr().out

        return ask

    def test_one_at_a_time_then_the_offer_then_the_solution(self, ask):
        texts = tasks.find(NEEDED).hints
        for number, text in enumerate(texts, start=1):
            assert ask() == f"hint {number} of 3: {text}\n"
        offer = ask()
        assert all(text in offer for text in texts) and offer.endswith("Ask once more and you see the solution.\n")
        assert "return copy / 2 * latency / sms" in ask()
        assert "return copy / 2 * latency / sms" in ask()

    def test_a_task_that_has_passed_shows_its_solution_and_asks_nothing(self, ask, progress):
        progress.record(Verdict(NEEDED, "passed"))
        assert "has passed. The course's solution:" in (out := ask())
        assert "return copy / 2 * latency / sms" in out and progress.read()["hints"] == {}

    def test_parked_is_not_passed(self, ask, progress):
        progress.record(Verdict(NEEDED, "parked"))
        assert ask().startswith("hint 1 of 3")

    def test_a_copy_without_solutions_says_so(self, ask, progress, monkeypatch, tmp_path):
        monkeypatch.setattr(hints, "ROOT", tmp_path)
        progress.record(Verdict(NEEDED, "passed"))
        assert "has no solutions: ask whoever gave it to you" in ask()

    def test_an_unknown_task(self, ask):
        with pytest.raises(ValueError, match="bytes_in_flight has"):
            hints.hint("bytes_in_flight.nothing")

    def test_of_a_task_that_builds_on_another_only_its_own_cells(self, tmp_path):
        region = "    ### BEGIN SOLUTION\n    return {}\n    ### END SOLUTION"
        sources = [
            "import math",
            "def one():\n" + region.format("math.pi"),
            "check('a.one', one)",
            "# the rest\ndef two():\n" + region.format("one() + 1"),
            "check('a.two', two)",
        ]
        made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
        nbformat.write(made, tmp_path / "05_a.ipynb")
        assert notebook.solution(tmp_path / "05_a.ipynb", "a.one") == "def one():\n    return math.pi"
        assert notebook.solution(tmp_path / "05_a.ipynb", "a.two") == "# the rest\ndef two():\n    return one() + 1"

    @pytest.mark.parametrize("task", list(tasks.every()), ids=lambda task: task.id)
    def test_each_task_has_a_solution_of_its_own_without_marks(self, task):
        text = hints.solution(task.id)
        assert text and "SOLUTION" not in text and "check(" not in text
        compile(text, task.id, "exec")
        others = [other.id for other in tasks.of(task.slug) if other.id != task.id]
        assert all(hints.solution(other) != text for other in others)


def test_the_lock_and_the_file_are_all_that_is_in_the_folder(progress):
    progress.ask("a.b")
    assert {path.name for path in progress.path.parent.iterdir()} == {"progress.json", keeping.LOCK}
