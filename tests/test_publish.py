"""make notebooks: outputs, device and date are saved; a notebook that fails stays as it was."""

import nbformat
import pytest
from nbclient.exceptions import CellExecutionError
from nbformat.v4 import new_code_cell, new_notebook

from quack_lite import machine, publish


@pytest.fixture
def notebook(tmp_path):
    def write(*sources):
        path = tmp_path / "01_a.ipynb"
        nbformat.write(new_notebook(cells=[new_code_cell(source) for source in sources]), path)
        return path

    return write


def test_outputs_counts_device_and_date_are_saved(notebook):
    path = notebook("import os", "print(os.getcwd()); print('a')")
    assert publish.run_notebook(path, "NVIDIA H200") > 0
    saved = nbformat.read(path, as_version=4)
    assert [cell.execution_count for cell in saved.cells] == [1, 2]
    assert [output.text for output in saved.cells[1].outputs] == [f"{path.parent}\na\n"]
    assert saved.metadata.quack_lite.device == "NVIDIA H200"
    assert len(saved.metadata.quack_lite.date) == len("2026-11-30")
    assert saved.metadata.kernelspec.name == "python3"
    assert "execution" not in saved.cells[0].metadata


def test_a_notebook_that_fails_stays_as_it_was(notebook):
    path = notebook("1 / 0")
    before = path.read_bytes()
    with pytest.raises(CellExecutionError):
        publish.run_notebook(path, "NVIDIA H200")
    assert path.read_bytes() == before


def test_without_a_hopper_nothing_is_run(notebook, monkeypatch, capsys):
    monkeypatch.setattr(machine, "places", lambda: {"hopper": False})
    monkeypatch.setattr(machine, "reasons", lambda place: "no NVIDIA driver answers here.")
    path = notebook("print('a')")
    assert publish.main([str(path)]) == 2
    assert nbformat.read(path, as_version=4).cells[0].execution_count is None
    assert "needs a Hopper GPU: no NVIDIA driver answers here." in capsys.readouterr().err


def test_beside_other_processes_on_the_gpu_nothing_is_run(notebook, monkeypatch, capsys):
    monkeypatch.setattr(machine, "places", lambda: {"hopper": True})
    monkeypatch.setattr(machine, "nvidia_smi", lambda query, *options: ["4711", "4712"])
    path = notebook("print('a')")
    assert publish.main([str(path)]) == 2
    assert nbformat.read(path, as_version=4).cells[0].execution_count is None
    assert "other processes hold a GPU (2): end them" in capsys.readouterr().err
