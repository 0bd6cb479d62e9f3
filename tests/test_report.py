"""quack-lite report: thirty learners, five of them with something broken; all others are graded all the same."""

import csv
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import nbformat
import pytest

from quack_lite.grading import batch, classbook, classbook_page, derive, notebook, proofs, spawn, submissions
from quack_lite.grading.feedback import Verdict

ROOT = Path(__file__).parents[1]
NAME = "00_start_here.ipynb"
SOLUTION = ROOT / "solutions" / NAME
BOTH = ["start_here.max", "start_here.min"]
FIVE = {
    "bo": f"bo/{NAME}: {NAME} is no notebook that can be read",
    "cleo": f"cleo/{NAME}: {NAME} checks no task of the course",
    "dora": f"dora/{NAME}: {NAME} checks no task of the course",
}


def text(change=str):
    """The text of the solution's notebook, each of its code cells changed."""
    written = nbformat.read(SOLUTION, as_version=4)
    for cell in written.cells:
        if cell.cell_type == "code":
            cell.source = change(cell.source)
    return nbformat.writes(written)


def put(folder, learner, content, name=NAME):
    path = folder / learner / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)


def with_max(line):
    return lambda source: source.replace("return -math.inf", line)


@pytest.fixture(scope="module")
def handed_in(tmp_path_factory):
    """25 sound learners, and five: no JSON, no cells, a lesson instead, a loop without end, an end of Python."""
    folder = tmp_path_factory.mktemp("all")
    wrong = proofs.wrong_answers("start_here")
    for number in range(10):
        put(folder, f"wrong{number}", text(wrong[number].apply))
    for number in range(4):  # repositories; what is not in work/ does not count
        put(folder, f"zero{number}", text(with_max("return 0")), f"work/{NAME}")
        put(folder, f"zero{number}", text(), f"exercises/{NAME}")
    for number in range(5):
        put(folder, f"stub{number}", text(derive.stub))
    for number in range(5):  # loose notebooks
        (folder / f"right{number}_{NAME}").write_text(text())
    put(folder, "<b>&", text(with_max("raise ValueError('<i>\\ud800\\x1b[2J')")))
    put(folder, "bo", "{not JSON")
    put(folder, "cleo", json.dumps({"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    put(folder, "dora", (ROOT / "notebooks" / NAME).read_text())
    put(folder, "emil", text(with_max("while True: pass")))
    put(folder, "fay", text(with_max("import os; os._exit(0)")))
    return folder


@pytest.fixture(scope="module")
def told(handed_in, tmp_path_factory):
    """What report printed, its page and its CSV's lines."""
    out = tmp_path_factory.mktemp("told")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spawn, "ANSWER_SECONDS", 2.0)
        lines = []
        patch.setattr("builtins.print", lambda *words, **_: lines.append(" ".join(words)))
        assert batch.report(str(handed_in), str(out / "a.html"), str(out / "a.csv")) == 0
    with (out / "a.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    return lines, (out / "a.html").read_text(), rows


def states(rows, learner):
    return [row["state"] for row in rows if row["learner"] == learner]


def test_everybody_is_there_and_the_sound_ones_are_graded(told):
    _, _, rows = told
    assert len({row["learner"] for row in rows}) == 30
    for number in range(5):
        assert states(rows, f"right{number}") == ["passed", "passed"]
        assert states(rows, f"stub{number}") == ["open", "open"]
        assert sorted(states(rows, f"wrong{number}")) == ["failed", "passed"]
    for number in range(4):
        assert states(rows, f"zero{number}") == ["failed", "passed"]


@pytest.mark.parametrize("learner", FIVE)
def test_what_cannot_be_graded_is_named(told, learner):
    lines, page, rows = told
    assert states(rows, learner) == ["unread"]
    assert [line for line in lines if line.startswith(f"  {FIVE[learner]}")]
    assert f"<b>{learner}</b>, {FIVE[learner]}" in page


def test_a_loop_without_end_and_an_end_of_python_cost_their_own_task_only(told):
    _, _, rows = told
    sentences = {row["learner"]: row["sentence"] for row in rows if row["state"] == "failed"}
    assert states(rows, "emil") == states(rows, "fay") == ["failed", "passed"]
    assert "a loop or a wait without end" in sentences["emil"] and "(exit code 0)" in sentences["fay"]


def test_points_and_sentences_are_in_the_csv(told):
    _, _, rows = told
    (max_row,) = [row for row in rows if row["learner"] == "zero0" and row["task"] == BOTH[0]]
    assert (max_row["points"], max_row["of"], max_row["gate"]) == ("0", "1", "value")
    assert max_row["notebook"] == f"zero0/work/{NAME}" and "came out as 0" in max_row["sentence"]


def test_the_most_frequent_mistake_comes_first(told):
    lines, page, _ = told
    first = next(line for line in lines if "×" in line)
    assert re.match(r"8 × start_here\.max at value: .* came out as 0: ", first)  # with -1 and others in the place of 0
    assert "zero0, zero1, zero2, zero3</small>" in page


def test_what_learners_write_is_neither_markup_nor_a_terminal_s_command(told):
    lines, page, _ = told
    assert "<b>&:" in " ".join(lines) and not [line for line in lines if "\x1b" in line]
    assert "<i>" not in page and "&lt;b&gt;&amp;" in page


def test_every_link_of_the_page_leads_somewhere_and_every_tag_is_closed(told):
    class Page(HTMLParser):
        void, open, ids, links = {"meta", "br", "wbr"}, [], set(), set()

        def handle_starttag(self, tag, attributes):
            self.open += [] if tag in self.void else [tag]
            self.ids |= {value for name, value in attributes if name == "id"}
            self.links |= {value for name, value in attributes if name in ("href", "src")}

        def handle_endtag(self, tag):
            assert self.open.pop() == tag

    page = Page()
    page.feed(told[1])
    assert not page.open and len(page.links) == 30
    assert {link.removeprefix("#") for link in page.links} == page.ids


def test_a_learner_on_whom_the_grader_itself_fails_stops_nobody(tmp_path, capsys, monkeypatch):
    def grade(answers):
        if "return 0" in answers[0].text:
            raise OSError("no space left")
        return [Verdict(answer.task, "passed") for answer in answers]

    monkeypatch.setattr(spawn, "grade", grade)
    put(tmp_path, "ada", text(with_max("return 0")))
    put(tmp_path, "bea", text())
    assert batch.report(str(tmp_path)) == 0
    assert "could not be graded (OSError: no space left)" in (said := capsys.readouterr().out)
    assert "bea: 2 passed" in said


class TestSubmissions:
    def names(self, folder):
        return [learner.name for learner in submissions.learners(folder)]

    def unread(self, folder):
        return [reason for learner in submissions.learners(folder) for reason in learner.unread.values()]

    def test_loose_notebooks_of_one_learner_belong_together(self, tmp_path):
        for name in (f"ada_{NAME}", "ada 02_first_kernel.ipynb", "bea.ipynb", NAME):
            (tmp_path / name).write_text(text())
        assert self.names(tmp_path) == ["00_start_here", "ada", "bea"]

    def test_nested_folders_are_looked_through_and_copies_kept_aside_are_not(self, tmp_path):
        put(tmp_path, "ada", text(), f"start_here/{NAME}")  # as nbgrader collects
        put(tmp_path, "bea", text(), f"work/aside/{NAME}")
        ada, bea = submissions.learners(tmp_path)
        assert [task for _, task in ada.answers] == BOTH and not bea.answers
        assert list(bea.unread.values()) == ["bea has no notebook in it"]

    def test_an_archive_and_a_clone_without_work_are_named(self, tmp_path):
        (tmp_path / "ada.zip").write_bytes(b"")
        (tmp_path / "bea" / "quack_lite").mkdir(parents=True)
        (tmp_path / "report.html").write_text("")
        archive, clone = self.unread(tmp_path)
        assert "unpack it" in archive and "without work/" in clone

    def test_a_link_out_of_the_folder_is_not_followed(self, tmp_path):
        (tmp_path / "all" / "ada").mkdir(parents=True)
        (tmp_path / "all" / "ada" / NAME).symlink_to(SOLUTION)
        assert self.unread(tmp_path / "all") == ["ada has no notebook in it"]

    @pytest.mark.parametrize(
        ("line", "reason"),
        [
            ("return '\\ud800'", "has characters that no file can hold"),
            (f"return {'-' * 10**5}1", "cannot be taken apart|checks no task"),
        ],
    )
    def test_cells_that_python_cannot_take_are_named(self, tmp_path, line, reason):
        put(tmp_path, "ada", text(with_max("return X")).replace("return X", line))
        (said,) = self.unread(tmp_path)
        assert re.search(reason, said)

    def test_a_notebook_that_checks_other_tasks_only_is_named(self, tmp_path):
        put(tmp_path, "ada", text(lambda source: source.replace("start_here.", "elsewhere.")))
        assert "checks no task of the course" in self.unread(tmp_path)[0]

    def test_a_huge_file_is_not_read(self, tmp_path, monkeypatch):
        monkeypatch.setattr(submissions, "BYTES", 1000)
        put(tmp_path, "ada", text())
        assert "MiB: clear its outputs" in self.unread(tmp_path)[0]

    def test_no_folder_and_an_empty_one_are_named(self, tmp_path):
        with pytest.raises(ValueError, match="there is no folder .*none"):
            submissions.learners(tmp_path / "none")
        with pytest.raises(ValueError, match="is empty"):
            submissions.learners(tmp_path)


class TestClassBook:
    WORTH = {"a.x": 1, "a.y": 2, "b.z": 3}

    def failed(self, task, sentence):
        return "n.ipynb", Verdict(task, "failed", "values", sentence)

    def test_of_a_task_handed_in_twice_the_better_counts_and_the_rest_of_its_exercise_is_open(self):
        both = [("1.ipynb", Verdict("a.y", "passed")), self.failed("a.y", "no")]
        for graded in (both, both[::-1]):
            (row,) = classbook.book([("ada", graded, {})], self.WORTH).rows
            assert row.marks["a.y"].notebook == "1.ipynb" and row.points == 2
            assert row.marks["a.x"].state == "open" and "b.z" not in row.marks

    def test_the_values_in_a_sentence_do_not_count(self):
        sentences = ["at n = 17, in `a`, 3.5e-2 is wrong", "at n = 5, in `b(1)`, -inf is wrong", "too slow"]
        handed_in = [(str(at), [self.failed("a.x", said)], {}) for at, said in enumerate(sentences)]
        found = classbook.mistakes(classbook.book(handed_in, self.WORTH))
        assert [mistake.learners for mistake in found] == [("0", "1"), ("2",)]

    def test_one_and_many_are_the_same_mistake(self):
        sentences = ["n = 1: it left 1 element unwritten", "n = 7: it left 3 elements unwritten"]
        handed_in = [(str(at), [self.failed("a.x", said)], {}) for at, said in enumerate(sentences)]
        (found,) = classbook.mistakes(classbook.book(handed_in, self.WORTH))
        assert found.learners == ("0", "1")

    def test_no_field_is_a_formula(self):
        book = classbook.book([("=HYPERLINK(1)", [self.failed("a.x", '+1, "so"\nit is')], {})], self.WORTH)
        (row, _) = csv.DictReader(classbook.as_csv(book).splitlines(keepends=True))
        assert (row["learner"], row["sentence"]) == ("'=HYPERLINK(1)", '\'+1, "so"\nit is')

    def test_a_class_without_a_mark_still_has_a_page(self):
        empty = classbook.book([("ada", [], {"x": "y"})], self.WORTH)
        page = classbook_page.page(empty, {"model": True, "compiler": False, "gpu": False}, "today")
        assert "nothing to grade" in page and "No answer failed" in page


def test_a_file_that_cannot_be_written_is_said_before_anything_is_graded(tmp_path):
    put(tmp_path, "ada", text())
    with pytest.raises(ValueError, match="name a file in a folder that is there"):
        batch.report(str(tmp_path), html=str(tmp_path / "none" / "a.html"))


def test_the_answers_of_a_solution_are_taken_as_grade_takes_them():
    assert [answer.task for answer in submissions.read(SOLUTION)] == [
        answer.task for answer in notebook.answers(SOLUTION)
    ]
