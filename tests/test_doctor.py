"""doctor and machine: every line has a remedy, and nothing that is missing or broken raises."""

import json
import subprocess
import sys

import pytest

from quack_lite import doctor, machine

PLACES = ["model", "compiler", "gpu", "hopper"]


@pytest.fixture
def fresh(monkeypatch):
    """machine's findings are made anew inside the test, and again after it."""
    machine._reasons.cache_clear()
    yield monkeypatch
    machine._reasons.cache_clear()


def by_name(found):
    return {line.name: line for line in found}


def look_up_without(*missing):
    return lambda name: None if name in missing else "1.0"


def test_places_are_detected_and_have_reasons():
    assert list(machine.places()) == PLACES
    assert machine.places()["model"]
    for place, there in machine.places().items():
        assert (machine.reasons(place) == "") == there


def test_an_unknown_place_is_named():
    with pytest.raises(ValueError, match="'cloud'; there are model, compiler, gpu, hopper"):
        machine.reasons("cloud")


def test_detection_does_not_import_torch_without_a_driver():
    code = (
        "import sys; from quack_lite import machine; machine._driver = lambda: None; places = machine.places();"
        "assert not places['gpu'] and 'torch' not in sys.modules and 'cutlass' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_cutlass_without_cute_is_not_the_dsl(fresh, tmp_path):
    (tmp_path / "cutlass").mkdir()
    (tmp_path / "cutlass" / "__init__.py").write_text("")
    fresh.setattr(sys, "path", [str(tmp_path), *sys.path])
    fresh.delitem(sys.modules, "cutlass", raising=False)  # another test of this process may have imported the real one
    assert not machine.has_dsl()


def test_without_torch_only_the_model_remains(fresh):
    fresh.setattr(machine, "has_module", lambda name: name != "torch")
    assert machine.places() == {"model": True, "compiler": False, "gpu": False, "hopper": False}
    assert machine.reasons("hopper") == "torch is not installed."


def test_a_driver_that_fails_is_a_reason_and_no_exception(fresh):
    class Broken:
        cuDriverGetVersion = cuInit = staticmethod(lambda *_: 999)

    fresh.setattr(machine, "_driver", Broken)
    assert not machine.places()["gpu"]


def test_table_and_json_agree(capsys):
    code = doctor.run()
    table = capsys.readouterr().out
    assert doctor.run(json=True) == code
    report = json.loads(capsys.readouterr().out)
    assert report["places"] == machine.places()
    assert report["ok"] == (code == 0)
    names = [line["name"] for line in report["lines"]]
    assert names[: len(doctor._LOOKS)] == list(doctor._LOOKS)
    assert all(name in table for name in names)


def test_this_machine_is_in_order():
    assert [line for line in doctor.lines() if line.state == "wrong"] == []


def test_every_line_that_is_not_right_says_what_to_do():
    assert all(line.todo for line in doctor.lines() if line.state == "wrong")


def test_a_look_that_raises_becomes_a_line():
    def broken():
        raise RuntimeError("first line\nsecond line")

    line = doctor.safely("GPU", broken)
    assert (line.state, line.found) == ("wrong", "RuntimeError: first line second line")
    assert line.todo


def test_brackets_in_a_finding_are_shown_as_they_are(capsys):
    doctor._print_table([doctor.Line("GPU", "wrong", "[/broken] [Errno 2]", "[bold]mend")])
    assert "[/broken] [Errno 2]" in capsys.readouterr().out


def test_torch_without_cuda_beside_a_gpu_gets_its_pip_command(monkeypatch):
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch.version, "cuda", None)
    monkeypatch.setattr(machine, "driver_devices", lambda: 1)
    monkeypatch.setattr(doctor, "_version", lambda name: "2.13.0+cpu")
    state, found, todo = doctor._torch()
    assert state == "wrong" and "built without CUDA" in found
    assert todo == "pip uninstall -y torch; pip install torch==2.13.0"


@pytest.mark.parametrize("driver, state", [((12, 8), "wrong"), ((13, 0), "ok"), ((14, 1), "ok")])
def test_a_driver_older_than_torchs_cuda_is_wrong(monkeypatch, driver, state):
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setattr(machine, "driver_cuda", lambda: driver)
    assert doctor._driver()[0] == state


@pytest.mark.parametrize(
    "capability, says", [((9, 0), ""), ((8, 6), "tried on Hopper only"), ((12, 0), "part C"), ((7, 5), "Too old")]
)
def test_another_gpu_is_told_what_works(capability, says):
    name, todo = doctor._judge_gpu("GPU", capability)
    assert says in todo and bool(says) == bool(todo)


@pytest.mark.parametrize(
    "missing, state, says",
    [
        (["nvidia-cutlass-dsl-libs-cu13"], "ok", "cu12"),
        (["nvidia-cutlass-dsl-libs-cu12"], "ok", "cu13"),
        ([], "ok", "cu12 and cu13"),
        (["nvidia-cutlass-dsl-libs-cu12", "nvidia-cutlass-dsl-libs-cu13"], "wrong", "neither"),
        (["nvidia-cutlass-dsl"], "absent", "none"),
    ],
)
def test_cuda_flavours_of_the_dsl(monkeypatch, missing, state, says):
    monkeypatch.setattr(doctor, "_version", look_up_without(*missing))
    look = doctor._flavour()
    assert look[0] == state and says in look[1]


def test_another_dsl_version_gets_its_pip_command(monkeypatch):
    monkeypatch.setattr(doctor, "_version", lambda name: "4.7.0")
    monkeypatch.setattr(machine, "has_dsl", lambda: True)
    state, _, todo = doctor._dsl()
    assert state == "wrong" and todo.startswith("pip install nvidia-cutlass-dsl==")


def test_ceilings_that_cannot_be_measured_are_one_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "quack_lite.bench", None)
    monkeypatch.delattr("quack_lite.bench", raising=False)
    (line,) = doctor._measured()
    assert line.state == "wrong" and line.todo


@pytest.mark.gpu
def test_ceilings_are_shown_on_a_gpu():
    found = by_name(doctor.lines())
    assert all(found[name].found.endswith("GB/s") for name in ("read", "write", "copy"))
    assert found["DRAM latency"].found.endswith("ns")
    assert found["GPU works"].state == "ok"
