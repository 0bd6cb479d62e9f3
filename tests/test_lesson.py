"""What a lesson imports, in a shell like a notebook's and in a real one."""

import contextlib
import gc
import re
import subprocess
import sys
import weakref
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pytest

from quack_lite import draw, lesson, machine
from quack_lite.grading import history, progress, spawn, standing
from quack_lite.grading.feedback import GradeFailed, Verdict

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = [path for name in ("notebooks", "solutions", "exercises") for path in sorted((ROOT / name).glob("*.ipynb"))]
HARDWARE = ("compiler", "gpu", "hopper")
KERNEL = """# needs compiler
import cutlass, torch
from cutlass import cute
@cute.kernel
def add_kernel(mX: cute.Tensor):
    i, _, _ = cute.arch.thread_idx()
    mX[i] = mX[i] + cutlass.Float32(1.0)
@cute.jit
def add(mX: cute.Tensor, stream):
    add_kernel(mX).launch(grid=(1, 1, 1), block=(32, 1, 1), stream=stream)
"""


@pytest.fixture
def shell():
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell.instance()
    shell.history_manager.enabled = False
    shell.reset()
    lesson._teach(shell)
    return shell


@pytest.fixture
def desk(tmp_path, monkeypatch):
    """A work/ of the test's own, and no predictions from before."""
    monkeypatch.setattr(progress, "ROOT", tmp_path)
    monkeypatch.setattr(lesson, "_predictions", [])
    monkeypatch.setattr(lesson, "_units", {})
    return progress.Progress()


def without_gpu(monkeypatch):
    here = {"model": True, "compiler": True, "gpu": False, "hopper": False}
    monkeypatch.setattr(machine, "places", lambda: here)
    monkeypatch.setattr(machine, "reasons", lambda place: "" if here[place] else "no driver answers here.")


class TestCells:
    @pytest.mark.parametrize("place", ["gpu", "hopper"])
    def test_a_cell_that_cannot_run_says_so_in_one_line(self, shell, monkeypatch, capsys, place):
        without_gpu(monkeypatch)
        result = shell.run_cell(f"\n# needs {place}\nx = 1 / 0\nx", store_history=True)
        assert result.success and "x" not in shell.user_ns
        assert capsys.readouterr().out == f"This cell needs {place}: no driver answers here.\n"

    def test_a_cell_that_can_run_is_an_ordinary_cell(self, shell, monkeypatch, capsys):
        without_gpu(monkeypatch)
        assert shell.run_cell("# needs compiler\ny = 2\ny + 1").result == 3
        assert shell.user_ns["y"] == 2
        failed = shell.run_cell("# needs compiler\ny / 0")
        assert isinstance(failed.error_in_exec, ZeroDivisionError)
        assert "ZeroDivisionError" in capsys.readouterr().out

    def test_only_the_first_line_counts(self, shell, monkeypatch):
        without_gpu(monkeypatch)
        assert shell.run_cell("z = 1\n# needs gpu\nz").result == 1
        assert shell.run_cell("# needs gpus\n5").result == 5

    def test_taught_twice_is_taught_once(self, shell):
        before = len(shell.input_transformers_cleanup)
        lesson._teach(shell)
        assert len(shell.input_transformers_cleanup) == before

    @pytest.mark.compile
    def test_a_kernel_defined_in_such_a_cell_compiles(self, shell):
        assert shell.run_cell(KERNEL, store_history=True).success
        built = lesson.build(shell.user_ns["add"], shell.user_ns["torch"].empty(8, device="meta"))
        assert built.facts.ld_global == {32: 1}

    @pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: f"{path.parent.name}/{path.name}")
    def test_first_lines_and_tags_agree(self, path):
        for cell in nbformat.read(path, as_version=4).cells:
            if cell.cell_type == "code":
                tags = [tag for tag in cell.metadata.get("tags", []) if tag in HARDWARE]
                said = lesson.NEEDS.match(cell.source.partition("\n")[0])
                assert tags == ([said[1]] if said else []), cell.source


class TestPredict:
    def test_an_empty_guess_carries_on(self, desk, capsys):
        lesson.predict("naive copy", unit="GB/s")
        assert capsys.readouterr().out == "naive copy: no guess recorded\n"
        assert not desk.path.exists()

    def test_a_guess_is_kept(self, desk, capsys):
        lesson.predict("naive copy", 300, unit="GB/s")
        assert capsys.readouterr().out == "naive copy: your guess is 300 GB/s\n"
        assert desk.read()["guesses"]["naive copy"]["guess"] == 300

    @pytest.mark.parametrize("guess", [0, -5, 0.25])
    def test_nothing_and_less_than_nothing_are_guesses(self, desk, guess):
        lesson.predict("a gain", guess, unit="%")
        assert desk.read()["guesses"]["a gain"]["guess"] == guess

    @pytest.mark.parametrize("guess", ["300", float("nan"), float("inf"), True])
    def test_a_guess_is_a_finite_number(self, desk, guess):
        with pytest.raises(ValueError, match="give a number, in GB/s"):
            lesson.predict("naive copy", guess, unit="GB/s")


class TestReveal:
    def test_the_guess_stands_beside_what_was_measured(self, desk, capsys):
        lesson.predict("a share", 80, unit="% of the ceiling")
        lesson.predict("a share", 90, unit="% of the ceiling")
        lesson.reveal("a share", 45.97)
        assert capsys.readouterr().out.endswith("a share: 46 % of the ceiling; your guess was 90\n")
        assert desk.read()["guesses"]["a share"] == {"guess": 90, "unit": "% of the ceiling", "measured": 45.97}

    def test_without_a_guess(self, desk, capsys):
        lesson.predict("a share", unit="%")
        lesson.reveal("a share", 45.97)
        assert capsys.readouterr().out.endswith("a share: 46 %; no guess recorded\n")

    @pytest.mark.parametrize("value, shown", [(0.011428, "0.0114"), (93.46, "93.5"), (4623.4, "4623"), (2e5, "200000")])
    def test_a_small_value_keeps_three_digits_and_a_large_one_all_before_the_point(self, desk, capsys, value, shown):
        lesson.predict("a speed", unit="GB/s")
        lesson.reveal("a speed", value)
        assert f"a speed: {shown} GB/s;" in capsys.readouterr().out

    def test_a_title_that_was_not_asked_for(self, desk):
        with pytest.raises(ValueError, match="was not asked for"):
            lesson.reveal("a shore", 1)


class TestMeasure:
    @pytest.fixture
    def bench(self, monkeypatch):
        rates = {"slow": 900.0, "fast": 4000.0}
        stand_in = SimpleNamespace(
            ceilings=lambda: SimpleNamespace(read=4400.0, write=4600.0, copy=4200.0),
            measure=lambda kernel, *args, bytes_moved: SimpleNamespace(gbps=rates[kernel]),
        )
        monkeypatch.setitem(sys.modules, "quack_lite.bench", stand_in)
        import quack_lite

        monkeypatch.setattr(quack_lite, "bench", stand_in, raising=False)

    def test_numbers_come_back_and_a_picture_is_shown(self, desk, bench, monkeypatch):
        shown = []
        monkeypatch.setattr(draw.bars, "picture", lambda figure, description: shown.append(figure))
        lesson.predict("something else", 100, unit="GB/s")
        lesson.predict("slow latency", 600, unit="ns")
        lesson.predict("fast copy", 3000, unit="GB/s")
        assert lesson.measure({"slow": "slow", "fast": "fast"}, bytes_moved=1) == {"slow": 900.0, "fast": 4000.0}
        [axes] = shown[0].axes
        assert [bar.get_width() for bar in axes.patches] == [900.0, 4000.0]
        lines = {line.get_label(): line for line in axes.lines}
        assert set(lines) == {"copy ceiling, 4200", "your guess"}
        assert lines["your guess"].get_xydata().tolist() == [[3000, 1]]
        assert desk.read()["guesses"]["fast copy"]["measured"] == 4000.0

    def test_without_a_guess_there_is_no_mark(self, desk, bench, monkeypatch):
        shown = []
        monkeypatch.setattr(draw.bars, "picture", lambda figure, description: shown.append(figure))
        lesson.measure({"slow": "slow"}, bytes_moved=1, ceiling="read")
        assert [line.get_label() for line in shown[0].axes[0].lines] == ["read ceiling, 4400"]

    def test_an_unknown_ceiling(self, bench):
        with pytest.raises(ValueError, match='"read", "write" or "copy"'):
            lesson.measure({"slow": "slow"}, bytes_moved=1, ceiling="device")

    def test_the_picture_is_displayed(self, desk, bench, monkeypatch):
        import IPython.display

        shown = []
        monkeypatch.setattr(IPython.display, "display", shown.append)
        lesson.measure({"slow": "slow"}, bytes_moved=1)
        assert shown[0].data[:4] == b"\x89PNG" and shown[0].alt == "bars of GB/s with the copy ceiling as a line"


class TestGuesses:
    def test_without_a_measured_one_it_says_so(self, desk, capsys):
        desk.guess("naive copy", 300, "GB/s")
        lesson.guesses()
        assert "no guess was recorded and measured" in capsys.readouterr().out

    def test_measured_ones_are_drawn(self, desk, monkeypatch):
        shown = []
        monkeypatch.setattr("IPython.display.display", shown.append)
        desk.guess("naive copy", 300, "GB/s")
        desk.measured("naive copy", 1700)
        lesson.guesses()
        assert "guessed 300, measured 1700 GB/s" in shown[0].alt


class TestCheck:
    TASK = "bytes_in_flight.needed"

    @pytest.fixture
    def check(self, tmp_path, monkeypatch):
        """check() in a notebook of work/ or of another folder, where the grader comes to the verdict given."""
        monkeypatch.setattr(lesson, "ROOT", tmp_path)
        monkeypatch.setattr(progress, "ROOT", tmp_path)
        monkeypatch.setattr(history, "answer_text", lambda task_id, answer: "answer = 1")

        def check(status, folder):
            (tmp_path / folder).mkdir(exist_ok=True)
            monkeypatch.chdir(tmp_path / folder)
            monkeypatch.setattr(spawn, "grade", lambda answers: [Verdict(self.TASK, status, "numbers", "look there")])
            return lesson.check(self.TASK, 1)

        return check

    def test_what_passes_in_work_is_kept_and_the_solution_offered(self, check, capsys):
        check("passed", "work")
        assert progress.Progress().passed(self.TASK)
        assert capsys.readouterr().out.endswith(
            'passed\nhint("bytes_in_flight.needed") now shows the course\'s solution\n'
        )

    @pytest.mark.parametrize("status", ["parked", "failed"])
    def test_what_does_not_pass_is_kept_and_nothing_offered(self, check, capsys, status):
        with pytest.raises(GradeFailed) if status == "failed" else contextlib.nullcontext():
            check(status, "work")
        assert progress.Progress().read()["tasks"][self.TASK]["status"] == status
        assert "solution" not in capsys.readouterr().out

    def test_elsewhere_nothing_is_kept_or_offered(self, check, capsys):
        check("passed", "solutions")
        assert not progress.Progress().path.exists() and "solution" not in capsys.readouterr().out

    @pytest.mark.parametrize("status, points", [("passed", None), ("parked", 0)])
    def test_nbgrader_is_told_that_what_is_parked_has_no_points(self, check, monkeypatch, status, points):
        monkeypatch.delenv("NBGRADER_EXECUTION", raising=False)
        assert check(status, "autograded") is None
        monkeypatch.setenv("NBGRADER_EXECUTION", "autograde")
        assert check(status, "autograded") == points


def test_hint_and_progress_do_what_the_command_does(desk, monkeypatch, capsys):
    monkeypatch.setattr(standing, "show", lambda: print("how far"))
    lesson.hint("bytes_in_flight.needed")
    lesson.progress()
    out = capsys.readouterr().out
    assert out.startswith("hint 1 of 3") and out.endswith("how far\n")
    assert desk.read()["hints"] == {"bytes_in_flight.needed": 1}


class TestShowDiff:
    def test_shows_all_lines_and_what_went_before_what_came(self):
        diff = lesson.show_diff("a\nb\nc\nd", "a\nX\nY\nd")
        assert repr(diff) == "  a\n- b\n- c\n+ X\n+ Y\n  d"
        assert "+ X" in diff._repr_html_()

    def test_of_functions_and_of_equals(self):
        assert "- def without_gpu" in repr(lesson.show_diff(without_gpu, "def f():"))
        assert repr(lesson.show_diff("a", "a")) == "  a"

    def test_html_is_escaped(self):
        assert "&lt;b&gt;" in lesson.show_diff("<b>", "c")._repr_html_()


class TestSteps:
    def test_loads_the_file_from_anywhere(self, tmp_path, monkeypatch):
        (tmp_path / "notebooks" / "steps").mkdir(parents=True)
        (tmp_path / "notebooks" / "steps" / "07.py").write_text("two = 2\n")
        monkeypatch.setattr(lesson, "ROOT", tmp_path)
        assert lesson.steps(7).two == lesson.steps("07").two == 2

    def test_a_lesson_without_steps(self):
        with pytest.raises(ValueError, match=r"lesson 98 has no steps: notebooks/steps/98.py"):
            lesson.steps(98)


def test_importing_loads_neither_torch_nor_the_compiler():
    code = (
        "import sys, quack_lite.lesson, quack_lite.grading.report, quack_lite.grading.history;"
        "import quack_lite.grading.hints, quack_lite.grading.standing;"
        "import quack_lite.grading.proofs; from quack_lite.grading import tasks; list(tasks.every());"
        "print([name for name in ('torch', 'cutlass', 'matplotlib', 'IPython') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.stdout == "[]\n", done.stderr


def execute(folder, *sources):
    """Runs the cells in a real kernel that stands in `folder`; returns the notebook."""
    from nbclient import NotebookClient

    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
    resources = {"metadata": {"path": str(folder)}}
    NotebookClient(notebook, timeout=60, kernel_name="python3", allow_errors=True, resources=resources).execute()
    return notebook


def said(cell):
    """Everything that a cell printed, and its error's traceback, without colours."""
    parts = [output.get("text", "") or "\n".join(output.get("traceback", [])) for output in cell.outputs]
    return re.sub(r"\x1b\[[0-9;]*m", "", "".join(parts)).strip()


def test_a_program_that_fails_shows_the_access_map_of_its_line(tmp_path):
    solution = nbformat.read(ROOT / "solutions" / "05_bytes_in_flight.ipynb", as_version=4).cells
    cells = {cell.id: cell.source for cell in solution}
    store = "b.st_global(z, last, (one + other) / 2, where=rest)"
    off = store.replace("/ 2", "/ 2 + 1")
    notebook = execute(
        tmp_path,
        cells["imports"],
        cells["mean"].replace(store, off),
        cells["mean-check"],
        cells["mean"],
        cells["mean-check"],
    )
    [image] = [output for output in notebook.cells[2].outputs if output.output_type == "display_data"]
    assert image.data["image/png"] and off in image.metadata["image/png"]["alt"]
    assert "GradeFailed (bytes_in_flight.mean, values): n = 15: element 8 is" in said(notebook.cells[2])
    assert "lane 6 stored it, at `b.st_global(z, last" in said(notebook.cells[2])
    assert said(notebook.cells[4]).endswith("✓ bytes_in_flight.mean passed")


def test_what_is_forgotten_is_kept_nowhere(shell):
    shell.run_cell("class Large: pass\nx = Large()\n[x]\nx", store_history=True)
    watched = weakref.ref(shell.user_ns["x"])
    lesson._forget(shell, lambda value: type(value).__name__ == "Large")
    gc.collect()
    assert "x" not in shell.user_ns and watched() is None


@pytest.mark.gpu
def test_release_gives_the_memory_back(shell):
    shell.run_cell("import torch\nx = torch.empty(2**26, device='cuda')\nx.view(2, -1)", store_history=True)
    held = shell.user_ns["torch"].cuda.memory_allocated()
    lesson.release()
    assert "x" not in shell.user_ns and shell.user_ns["torch"].cuda.memory_allocated() <= held - 2**28


@pytest.mark.compile
def test_wrong_answers_by_hand_get_their_sentence_and_the_notebook_lives(tmp_path):
    solution = nbformat.read(ROOT / "solutions" / "05_bytes_in_flight.ipynb", as_version=4).cells
    cells = {cell.id: cell.source for cell in solution}
    notebook = execute(
        tmp_path,
        cells["imports"],
        cells["needed"].replace("copy / 2", "copy"),
        cells["needed-check"],
        cells["needed"],
        "def bytes_needed(copy, latency, sms):\n    while True: pass",
        cells["needed-check"],
        cells["needed"],
        cells["needed-check"],
        cells["cast-imports"],
        cells["cast"].replace(".load().to(mY.element_type))", ".load())"),
        cells["cast-check"],
        cells["cast"],
        "1 + 1",
    )
    assert said(notebook.cells[2]) == (
        "GradeFailed (bytes_in_flight.needed, numbers): bytes_needed: that is twice too much: a copy's GB/s count "
        "reads and writes, and only the reads are waited for"
    )
    assert "a wait without end" in said(notebook.cells[5])
    assert said(notebook.cells[7]).endswith("✓ bytes_in_flight.needed passed")
    assert said(notebook.cells[10]).startswith("GradeFailed (bytes_in_flight.cast, compiles): it does not compile")
    assert notebook.cells[-1].outputs[0]["data"]["text/plain"] == "2"
