"""Each kernel that the package can launch compiles, and is the one that a GPU has seen: its receipt says so."""

import os
import shutil
import time

import pytest

from quack_lite.evidence import digest, plants, processes, receipts, sanitizers

pytestmark = pytest.mark.compile

PROCESSES = 2
LIMIT = 1800  # seconds for the whole list, where other work runs beside; a kernel that hangs is ended by itself
MOST_KERNELS = 400
ONE = plants.load("half_grid").KERNEL
DTYPES = ("float32", "float16", "bfloat16")


def soon():
    return time.monotonic() + LIMIT


def listed():
    from quack_lite import catalog

    return catalog.listed()


def test_the_list_has_no_name_twice_and_is_short():
    names = [kernel.name for kernel in listed()]
    assert len(set(names)) == len(names) <= MOST_KERNELS


def test_whatever_row_length_comes_its_kernel_is_in_the_list():
    from quack_lite import catalog

    ranges = {}
    for kernel in listed():
        ranges.setdefault((kernel.operator, kernel.dtype), []).append(catalog.lengths(kernel))
    for (operator, dtype), lengths in ranges.items():
        reached = 0
        for shortest, longest in sorted(lengths):
            assert shortest <= reached + 1, f"{operator} {dtype}: no kernel for rows of {reached + 1}"
            reached = max(reached, longest)
        assert reached == catalog.longest(operator, dtype)


def test_the_lengths_of_a_kernel_are_those_that_get_its_plan():
    from quack_lite import catalog

    for kernel in listed():
        for n in catalog.lengths(kernel):
            found = [catalog.plan(kernel.operator, kernel.dtype, n, few) for few in (False, True)]
            assert kernel.plan in found, (kernel.name, n)


def test_every_operator_is_in_the_list_in_every_dtype():
    from quack_lite.evidence import operands

    found = {(kernel.operator, kernel.dtype) for kernel in listed()}
    assert {operator for operator, _ in found} == set(operands.NAMES)
    for operator in operands.NAMES:
        assert {dtype for of, dtype in found if of == operator} >= set(DTYPES)


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


def test_the_sanitizers_tools_have_watched_all_kernels():
    unwatched = [kernel.name for kernel in listed() if receipts.unwatched(kernel.name, sanitizers.TOOLS)]
    assert not unwatched, f"{len(unwatched)} kernels wait for the sanitizer's tools: `make verify` on a Hopper GPU"


def compile_one(plant=None):
    """Digests of one kernel from a process of its own."""
    return {ONE: processes.run("digest", [ONE], soon(), plant=plant)[ONE]["digests"]}


def test_a_change_of_the_grid_alone_fails(tmp_path):
    right = compile_one()
    receipts.write({"kernel": ONE, "digests": right[ONE]}, tmp_path)
    assert receipts.faults(right, tmp_path) == []
    (fault,) = receipts.faults(compile_one("half_grid"), tmp_path)
    assert fault == f"{ONE} changed since it last ran on a GPU (its ir): `make verify` on one"


def test_an_object_file_stands_for_the_compiled_kernel(tmp_path, monkeypatch):
    from quack_lite import catalog
    from quack_lite.evidence import objects

    kernel = next(kernel for kernel in listed() if kernel.name == ONE)
    objects.write(kernel, catalog.compile_kernel(kernel), tmp_path)
    monkeypatch.setattr(catalog, "compile_kernel", lambda kernel: "compiled anew")
    assert objects.read(kernel, None) == "compiled anew"
    built = objects.read(kernel, tmp_path)
    assert built.name == ONE and callable(built.function)
    assert objects.read(kernel._replace(dtype="float16"), tmp_path) == "compiled anew"


def test_another_folder_and_another_process_give_the_same_digests(tmp_path, monkeypatch):
    right = compile_one()
    shutil.copytree(receipts.ROOT / "quack_lite", tmp_path / "elsewhere" / "quack_lite")
    monkeypatch.setattr(processes, "ROOT", tmp_path / "elsewhere")
    monkeypatch.setenv("PYTHONHASHSEED", "7")
    assert compile_one() == right
