"""export and import: everything of the learner's arrives, and nothing that was there is lost."""

import os
import zipfile
from datetime import date

import pytest

from quack_lite import desk, transfer
from quack_lite.grading.feedback import Verdict
from quack_lite.grading.progress import VERSION, Progress

TODAY = date.today().isoformat()


def machine(folder):
    """A clone of the course with exercises 05 and 12, laid out in work/."""
    for name in ("05_two", "12_far"):
        (folder / "exercises").mkdir(parents=True, exist_ok=True)
        (folder / "exercises" / f"{name}.ipynb").write_text(f"course {name}")
    desk.lay_out(folder)
    return folder


@pytest.fixture
def here(tmp_path):
    return machine(tmp_path / "here")


@pytest.fixture
def there(tmp_path):
    return machine(tmp_path / "there")


def progress_of(root):
    return Progress(root / "work" / "progress.json")


def archive(path, **members):
    """A zip file with these texts in it."""
    with zipfile.ZipFile(path, "w") as file:
        for name, text in members.items():
            file.writestr(name, text)
    return str(path)


def test_all_of_it_arrives(here, there, tmp_path, capsys):
    (here / "work" / "05_two.ipynb").write_text("mine")
    (here / "work" / "notes").mkdir()
    (here / "work" / "notes" / "ünï.txt").write_bytes(b"\x00\xff")
    progress_of(here).record(Verdict("two.a", "parked", "values"))
    assert transfer.pack(str(tmp_path / "out.zip"), here) == 0
    assert "out.zip: 4 files of work/." in (out := capsys.readouterr().out) and "quack-lite import out.zip" in out
    assert transfer.unpack(str(tmp_path / "out.zip"), there) == 0
    for path in ("work/05_two.ipynb", "work/12_far.ipynb", "work/notes/ünï.txt"):
        assert (there / path).read_bytes() == (here / path).read_bytes()
    assert progress_of(there).read() == progress_of(here).read()
    assert not (there / "work" / "aside").exists(), "the exercise there was nobody's work"


class TestPack:
    def test_the_name_has_the_date_and_none_is_overwritten(self, here):
        for name in (f"quack-lite-{TODAY}.zip", f"quack-lite-{TODAY}-2.zip"):
            transfer.pack(root=here)
            assert (here / name).exists()
        with pytest.raises(ValueError, match="exists and is not overwritten: give another name"):
            transfer.pack(str(here / name), here)

    def test_what_is_no_work_stays(self, here, tmp_path):
        for name in (".ipynb_checkpoints/05_two-checkpoint.ipynb", "__pycache__/a.pyc", ".progress.json.part"):
            (here / "work" / name).parent.mkdir(exist_ok=True)
            (here / "work" / name).write_text("x")
        (here / "work" / "folder").symlink_to(here / "exercises")
        (here / "work" / "file").symlink_to(here / "exercises" / "05_two.ipynb")
        transfer.pack(str(tmp_path / "out.zip"), here)
        assert zipfile.ZipFile(tmp_path / "out.zip").namelist() == ["work/05_two.ipynb", "work/12_far.ipynb"]

    def test_into_work_itself(self, here):
        for name in ("one.zip", "two.zip"):
            transfer.pack(str(here / "work" / name), here)
        assert "work/one.zip" in zipfile.ZipFile(here / "work" / "two.zip").namelist()
        assert not list((here / "work").glob("*.part"))

    def test_an_old_file_can_be_packed(self, here, tmp_path):
        os.utime(here / "work" / "05_two.ipynb", (0, 0))
        transfer.pack(str(tmp_path / "out.zip"), here)
        assert zipfile.ZipFile(tmp_path / "out.zip").testzip() is None

    def test_without_work(self, tmp_path):
        with pytest.raises(ValueError, match="no work/ to export: make lab"):
            transfer.pack(root=tmp_path)

    def test_where_it_cannot_be_written(self, here):
        with pytest.raises(ValueError, match="the export stopped .*nowhere"):
            transfer.pack(str(here / "nowhere" / "out.zip"), here)


class TestUnpack:
    def test_what_is_replaced_is_kept_aside(self, here, tmp_path, capsys):
        (here / "work" / "05_two.ipynb").write_text("mine")
        source = archive(tmp_path / "a.zip", **{"work/05_two.ipynb": "theirs"})
        transfer.unpack(source, here)
        assert (here / "work" / "05_two.ipynb").read_text() == "theirs"
        assert (here / "work" / "aside" / f"05_two.{TODAY}.ipynb").read_text() == "mine"
        assert f"work/05_two.ipynb: taken; the one here is now work/aside/05_two.{TODAY}.ipynb." in (
            capsys.readouterr().out
        )

    def test_an_untouched_exercise_replaces_nothing(self, here, tmp_path, capsys):
        (here / "work" / "05_two.ipynb").write_text("mine")
        transfer.unpack(archive(tmp_path / "a.zip", **{"work/05_two.ipynb": "course 05_two"}), here)
        assert (here / "work" / "05_two.ipynb").read_text() == "mine"
        assert "kept as it is here" in capsys.readouterr().out

    def test_a_second_time_changes_nothing(self, here, tmp_path, capsys):
        (here / "work" / "05_two.ipynb").write_text("mine")
        source = archive(tmp_path / "a.zip", **{"work/05_two.ipynb": "theirs"})
        transfer.unpack(source, here)
        before = {path: path.read_bytes() for path in (here / "work").rglob("*") if path.is_file()}
        transfer.unpack(source, here)
        assert {path: path.read_bytes() for path in (here / "work").rglob("*") if path.is_file()} == before
        assert capsys.readouterr().out.endswith(f"work/05_two.ipynb: the same here.\n{source}: 1 file.\n")

    def test_progress_is_joined(self, here, there, tmp_path):
        progress_of(there).record(Verdict("two.a", "passed"))
        progress_of(here).record(Verdict("two.a", "failed", "values"))
        progress_of(here).record(Verdict("two.b", "passed"))
        transfer.pack(str(tmp_path / "out.zip"), there)
        transfer.unpack(str(tmp_path / "out.zip"), here)
        assert progress_of(here).passed("two.a") and progress_of(here).passed("two.b")

    def test_work_may_be_a_link(self, there, tmp_path):
        (there / "work").rename(tmp_path / "volume")
        (there / "work").symlink_to(tmp_path / "volume")
        transfer.unpack(archive(tmp_path / "a.zip", **{"work/05_two.ipynb": "theirs"}), there)
        assert (tmp_path / "volume" / "05_two.ipynb").read_text() == "theirs"
        transfer.pack(str(tmp_path / "out.zip"), there)
        assert "work/05_two.ipynb" in zipfile.ZipFile(tmp_path / "out.zip").namelist()

    @pytest.mark.parametrize("name", ["other/a", "/work/a", "work/../a", "../work/a", "work", "work/link/a"])
    def test_a_name_that_is_not_in_work_is_refused_with_all_of_it(self, here, tmp_path, name):
        (here / "work" / "link").symlink_to(tmp_path)
        with pytest.raises(ValueError, match="which is not in work/"):
            transfer.unpack(archive(tmp_path / "a.zip", **{"work/new": "x", name: "x"}), here)
        assert not (here / "work" / "new").exists()

    @pytest.mark.parametrize(
        "text, says", [("{half", "progress file is damaged"), (f'{{"version": {VERSION + 1}}}', "git pull")]
    )
    def test_a_progress_file_that_cannot_be_taken(self, here, tmp_path, text, says):
        source = archive(tmp_path / "a.zip", **{"work/new": "x", "work/progress.json": text})
        with pytest.raises(ValueError, match=says):
            transfer.unpack(source, here)
        assert not (here / "work" / "new").exists()

    @pytest.mark.parametrize("where", [0, 40, 47, -30, None])
    def test_a_damaged_file_is_refused(self, here, there, tmp_path, where):
        (there / "work" / "05_two.ipynb").write_text("theirs" * 100)
        transfer.pack(str(tmp_path / "out.zip"), there)
        data = bytearray((tmp_path / "out.zip").read_bytes())
        if where is None:
            data = data[: len(data) // 2]
        else:
            data[where : where + 8] = b"\xff" * 8
        (tmp_path / "out.zip").write_bytes(data)
        with pytest.raises(ValueError, match="is no whole export|which is not in work/"):
            transfer.unpack(str(tmp_path / "out.zip"), here)
        assert (here / "work" / "05_two.ipynb").read_text() == "course 05_two"

    def test_no_file(self, here):
        with pytest.raises(ValueError, match="there is no file nowhere.zip"):
            transfer.unpack("nowhere.zip", here)

    def test_a_folder_in_the_way(self, here, tmp_path):
        (here / "work" / "notes").mkdir()
        with pytest.raises(ValueError, match="the import stopped .*notes"):
            transfer.unpack(archive(tmp_path / "a.zip", **{"work/notes": "x"}), here)
