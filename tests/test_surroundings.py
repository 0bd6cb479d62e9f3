"""surroundings: each finding of the doctor's, with stand-ins for systems, disks, drivers and GPUs that are not here."""

import platform
import subprocess
import sys
import types

import pytest

from quack_lite import doctor, machine, surroundings

GIB = surroundings.GIB


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty folder in place of the course's."""
    monkeypatch.setattr(surroundings, "ROOT", tmp_path)
    return tmp_path


@pytest.fixture
def gpu(monkeypatch):
    """A GPU that is there: its driver shows one, and torch is what a test makes of it."""
    cuda = types.SimpleNamespace()
    monkeypatch.setattr(machine, "driver_devices", lambda: 1)
    monkeypatch.setattr(machine, "places", lambda: dict.fromkeys(("model", "compiler", "gpu", "hopper"), True))
    monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(cuda=cuda))
    return cuda


def test_a_system_has_its_name(monkeypatch):
    monkeypatch.setattr(platform, "freedesktop_os_release", lambda: {"PRETTY_NAME": "Ubuntu 24.04 LTS"})
    assert surroundings.name_of_system().startswith("Ubuntu 24.04 LTS, ")


def test_a_system_without_a_file_of_its_name_has_one_too(monkeypatch):
    def missing():
        raise OSError("no such file")

    monkeypatch.setattr(platform, "freedesktop_os_release", missing)
    monkeypatch.setattr(platform, "system", lambda: "Darwin")
    assert surroundings.name_of_system().startswith("Darwin ")


@pytest.mark.parametrize("free, state", [(0.4, "wrong"), (1.5, "ok")])
def test_a_full_disk_is_wrong(here, monkeypatch, free, state):
    monkeypatch.setattr(surroundings.shutil, "disk_usage", lambda _: types.SimpleNamespace(free=free * GIB))
    found = surroundings.disk()
    assert found[0] == state and found[1].startswith(f"{free} GiB free")


def test_a_folder_that_cannot_be_written_to_is_wrong(here, monkeypatch):
    monkeypatch.setattr(surroundings.os, "access", lambda *_: False)
    assert surroundings.disk()[:2] == ("wrong", f"{here} cannot be written to")


def set_python(monkeypatch, prefix, base="/usr", conda=None):
    monkeypatch.setattr(sys, "prefix", str(prefix))
    monkeypatch.setattr(sys, "base_prefix", str(base))
    monkeypatch.delenv("CONDA_PREFIX", raising=False)
    if conda:
        monkeypatch.setenv("CONDA_PREFIX", conda)


def test_the_environment_is_named(here, monkeypatch):
    set_python(monkeypatch, here / ".venv")
    assert surroundings.environment() == ("ok", "the course's .venv")
    set_python(monkeypatch, "/home/me/venv")
    assert surroundings.environment() == ("ok", "another venv, /home/me/venv")
    set_python(monkeypatch, "/opt/conda/envs/course", "/opt/conda/envs/course", "/opt/conda/envs/course")
    assert surroundings.environment() == ("ok", "conda, /opt/conda/envs/course")
    set_python(monkeypatch, "/usr")
    assert surroundings.environment() == ("ok", "none, the Python of /usr")


def test_another_environment_beside_the_courses_is_told_of_it(here, monkeypatch):
    (here / ".venv").mkdir()
    set_python(monkeypatch, "/usr")
    assert "make set up .venv too" in surroundings.environment()[2]


def nvidia_smi(monkeypatch, says):
    def answer(command, **_):
        if isinstance(says, Exception):
            raise says
        return subprocess.CompletedProcess(command, 0, stdout=says)

    monkeypatch.setattr(subprocess, "run", answer)


@pytest.mark.parametrize("says", ["Disabled\n", "[N/A]\n", "[Not Supported]\n"])
def test_a_whole_gpu_has_mig_off(gpu, monkeypatch, says):
    nvidia_smi(monkeypatch, says)
    assert surroundings.parts_of_gpu() == ("ok", "MIG is off")


def test_an_instance_of_a_gpu_is_named_with_what_it_has(gpu, monkeypatch):
    nvidia_smi(monkeypatch, "Disabled\nEnabled\n")
    made = types.SimpleNamespace(name="NVIDIA H200 MIG 1g.18gb", multi_processor_count=16, total_memory=16 * GIB)
    gpu.get_device_properties = lambda: made
    state, found, todo = surroundings.parts_of_gpu()
    assert (state, found) == ("ok", "MIG is on; this process has NVIDIA H200 MIG 1g.18gb: 16 SMs, 16 GiB")
    assert "ceilings" in todo


def test_mig_without_an_instance_for_this_process_is_said(gpu, monkeypatch):
    nvidia_smi(monkeypatch, "Enabled\n")
    monkeypatch.setattr(machine, "places", lambda: {"gpu": False})
    assert surroundings.parts_of_gpu()[1] == "MIG is on; this process has no instance that works"


@pytest.mark.parametrize("problem", [FileNotFoundError("nvidia-smi"), subprocess.TimeoutExpired("nvidia-smi", 10)])
def test_an_nvidia_smi_that_does_not_answer_is_no_fault_of_the_machine(gpu, monkeypatch, problem):
    nvidia_smi(monkeypatch, problem)
    assert surroundings.parts_of_gpu() == ("absent", "nvidia-smi does not answer: unknown")


@pytest.mark.parametrize("free, state", [(3.0, "wrong"), (130.5, "ok")])
def test_a_gpu_whose_memory_others_hold_is_wrong(gpu, free, state):
    gpu.mem_get_info = lambda: (free * GIB, 139.8 * GIB)
    found = surroundings.memory_of_gpu()
    assert found[:2] == (state, f"{free} of 139.8 GiB free")
    assert ("nvidia-smi" in found[-1]) == (state == "wrong")


def test_without_a_gpu_its_lines_are_absent(monkeypatch):
    nvidia_smi(monkeypatch, "Enabled\n")
    monkeypatch.setattr(machine, "driver_devices", lambda: 0)
    monkeypatch.setattr(machine, "places", lambda: {"gpu": False})
    looks = (surroundings.parts_of_gpu, surroundings.memory_of_gpu, surroundings.counters)
    assert all(state == "absent" and found.startswith("no GPU") for state, found in (look() for look in looks))


def test_tools_are_listed_and_missing_ones_are_no_fault(monkeypatch):
    monkeypatch.setattr(machine, "tool", lambda name: f"/usr/bin/{name}" if name in ("ncu", "nvdisasm") else None)
    state, found, todo = surroundings.tools()
    assert (state, found) == ("absent", "ncu, nvdisasm; not found: nsys, compute-sanitizer, cuobjdump")
    assert "requirements-tools.txt" in todo
    monkeypatch.setattr(machine, "tool", lambda name: f"/usr/bin/{name}")
    assert surroundings.tools() == ("ok", "ncu, nsys, compute-sanitizer, cuobjdump, nvdisasm")


def executable(path):
    path.parent.mkdir(parents=True)
    path.write_text("")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize(
    "place",
    [
        "usr/local/cuda-13.0/bin/ncu",
        "opt/nvidia/nsight-compute/2026.1.0/ncu",
        "opt/nvidia/nsight-systems/2026.1.0/bin/nsys",
    ],
)
def test_a_tool_is_found_where_it_is_installed(monkeypatch, tmp_path, place):
    monkeypatch.setenv("PATH", "")
    path = executable(tmp_path / place)
    assert machine.tool(path.rsplit("/", 1)[1], tmp_path) == path


@pytest.mark.parametrize("place", ["cu13/bin/cuobjdump", "cu13/compute-sanitizer/compute-sanitizer"])
def test_a_tool_is_found_in_its_wheel(monkeypatch, tmp_path, place):
    monkeypatch.setenv("PATH", "")
    spec = types.SimpleNamespace(submodule_search_locations=[str(tmp_path)])
    monkeypatch.setattr(machine.importlib.util, "find_spec", lambda _: spec)
    path = executable(tmp_path / place)
    assert machine.tool(path.rsplit("/", 1)[1], tmp_path) == path
    (tmp_path / place).chmod(0o644)
    assert machine.tool(path.rsplit("/", 1)[1], tmp_path) is None


@pytest.mark.parametrize(
    "parameters, held, state, says",
    [
        ("RmProfilingAdminOnly: 0\n", "0", "ok", "everybody"),
        ("RmProfilingAdminOnly: 1\n", "000001ffffffffff", "ok", "this process is one"),
        ("RmProfilingAdminOnly: 1\n", "00000000a80425fb", "absent", "ERR_NVGPUCTRPERM"),  # root in a container
        ("Other: 1\n", "0", "absent", "unknown"),
        (None, "0", "absent", "unknown"),
    ],
)
def test_who_may_read_the_counters(gpu, monkeypatch, tmp_path, parameters, held, state, says):
    (tmp_path / "status").write_text(f"Name:\tpython\nCapEff:\t{held}\n")
    if parameters is not None:
        (tmp_path / "params").write_text(f"EnableMSI: 1\n{parameters}")
    monkeypatch.setattr(surroundings, "PARAMETERS", tmp_path / "params")
    monkeypatch.setattr(surroundings, "STATUS", tmp_path / "status")
    found = surroundings.counters()
    assert found[0] == state and says in found[1]
    assert (len(found) == 3) == (says == "ERR_NVGPUCTRPERM")


def test_the_doctor_has_a_line_for_each():
    names = {line.name for line in doctor.lines()}
    assert {"environment", "system", "disk", "MIG", "GPU's memory", "NVIDIA's tools", "counters"} <= names
