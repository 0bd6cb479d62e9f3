"""Each kernel that the package can launch compiles, and is the one that a GPU has seen: its receipt says so."""

import os
import shutil
import time

import pytest

from quack_lite import tiling
from quack_lite.evidence import digest, plants, processes, receipts

pytestmark = pytest.mark.compile

PROCESSES = 2
MOST_KERNELS = 400
ONE = plants.load("half_grid").KERNEL
ELEMENT_BITS = {"float32": 32, "float16": 16, "bfloat16": 16}


def soon():
    return time.monotonic() + 170


def listed():
    from quack_lite import catalog

    return catalog.listed()


def test_the_list_has_no_name_twice_and_is_short():
    names = [kernel.name for kernel in listed()]
    assert len(set(names)) == len(names) <= MOST_KERNELS


@pytest.mark.parametrize("dtype", ELEMENT_BITS)
@pytest.mark.parametrize("alignment", [1, 2, 4, 8, 16])
def test_whatever_row_length_comes_its_kernel_is_in_the_list(dtype, alignment):
    plans = {kernel.plan for kernel in listed() if (kernel.operator, kernel.dtype) == ("softmax", dtype)}
    bits = ELEMENT_BITS[dtype]
    wanted = {tiling.plan_row(n, bits, alignment) for n in range(alignment, tiling.MAX_N + 1, alignment)}
    assert wanted <= plans


@pytest.mark.parametrize("dtype", ELEMENT_BITS)
@pytest.mark.parametrize("alignment", [1, 2, 4, 8, 16])
def test_whatever_is_copied_its_kernel_is_in_the_list(dtype, alignment):
    plans = {kernel.plan for kernel in listed() if (kernel.operator, kernel.dtype) == ("copy", dtype)}
    assert tiling.plan_copy(ELEMENT_BITS[dtype], alignment) in plans


@pytest.fixture(scope="module")
def compiled():
    """{name: digests} of the whole list."""
    results = processes.spread("digest", [kernel.name for kernel in listed()], soon(), PROCESSES)
    broken = {name: result for name, result in results.items() if "digests" not in result}
    assert not broken, f"not compiled: {broken}"
    return {name: result["digests"] for name, result in results.items()}


def test_each_kernel_has_a_receipt_that_holds(compiled):
    other = receipts.flavours() - {digest.flavour()}
    if other:
        sentence = f"the DSL here is {digest.flavour()}, the receipts are {'+'.join(other)}'s, whose PTX differs"
        if os.environ.get("CI") == "true":
            pytest.fail(f"{sentence}: install the flavour that requirements.txt names")
        pytest.skip(sentence)
    if faults := receipts.faults(compiled):
        pytest.fail("\n".join(faults), pytrace=False)


def test_no_receipt_is_left_of_a_kernel_that_is_gone():
    names = {kernel.name for kernel in listed()}
    assert {path.stem for path in receipts.FOLDER.glob("*.json")} <= names


def compile_one(plant=None):
    """Digests of one kernel from a process of its own."""
    return {ONE: processes.run("digest", [ONE], soon(), plant=plant)[ONE]["digests"]}


def test_a_change_of_the_grid_alone_fails(tmp_path):
    right = compile_one()
    receipts.write({"kernel": ONE, "digests": right[ONE]}, tmp_path)
    assert receipts.faults(right, tmp_path) == []
    (fault,) = receipts.faults(compile_one("half_grid"), tmp_path)
    assert fault == f"{ONE} changed since it last ran on a GPU (its ir): `make verify` on one"


def test_another_folder_and_another_process_give_the_same_digests(tmp_path, monkeypatch):
    right = compile_one()
    shutil.copytree(receipts.ROOT / "quack_lite", tmp_path / "elsewhere" / "quack_lite")
    monkeypatch.setattr(processes, "ROOT", tmp_path / "elsewhere")
    monkeypatch.setenv("PYTHONHASHSEED", "7")
    assert compile_one() == right
