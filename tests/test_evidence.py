"""The evidence's own logic: fingerprints, guard regions, receipts, and what is done next. No GPU, no compiler."""

import json

import pytest
import torch

from quack_lite.evidence import digest, guard, plants, processes, receipts, sanitizers, verify

PTX = ".version 8.8\n.visible .entry {name}(\n.param .b64 {name}_param_0\n)\n{{ mov.b32 %r1, {value}; ret; }}"
IR = "module {{ cuda.kernel @kernel_{name}_0() {{ cutlass_launch_facts }} func.func @{name}() {{ gridDim {value} }} }}"


def digests_of(name, ptx_value=1, ir_value=1):
    ptx = PTX.format(name=f"kernel_{name}_0", value=ptx_value)
    return digest.digests(ptx, IR.format(name=name, value=ir_value))


def test_a_name_does_not_change_the_digest():
    assert digests_of("cutlass_a_RowPlan8") == digests_of("cutlass_softmax_RowPl")


def test_one_other_number_changes_the_digest_of_its_text_only():
    right = digests_of("cutlass_a")
    assert digests_of("cutlass_a", ptx_value=2) == {**right, "ptx": digests_of("cutlass_a", ptx_value=2)["ptx"]}
    assert digests_of("cutlass_a", ptx_value=2)["ptx"] != right["ptx"]
    assert digests_of("cutlass_a", ir_value=2)["ir"] != right["ir"]


def test_names_of_two_functions_that_are_exchanged_change_the_digest():
    one = ".entry kernel_a() { A } .entry kernel_ab() { B } call kernel_a"
    other = ".entry kernel_a() { A } .entry kernel_ab() { B } call kernel_ab"
    assert digest.named_anew(one, digest.ENTRY) != digest.named_anew(other, digest.ENTRY)
    assert "kernel" not in digest.named_anew(other, digest.ENTRY)


def test_a_name_that_begins_another_is_replaced_alone():
    inside = ".entry kernel_a() { kernel_a_param_0 } .entry kernel_ab() { kernel_ab_param_0 }"
    apart = inside.replace("kernel_ab", "one").replace("kernel_a", "two")
    assert digest.named_anew(inside, digest.ENTRY) == digest.named_anew(apart, digest.ENTRY)


def test_without_ir_there_is_no_digest():
    with pytest.raises(ValueError, match="CUTE_DSL_KEEP"):
        digest.digests("ptx", None)


def test_what_is_launched_is_read_from_the_ptx():
    assert digest.entries(PTX.format(name="kernel_x_0", value=1)) == ["kernel_x_0"]


@pytest.fixture(params=[torch.float32, torch.bfloat16])
def guarded(request):
    return guard.surround((3, 5), request.param, pad=2, start=1, device="cpu")


def test_a_complete_write_leaves_the_guard_silent(guarded):
    guarded.view.fill_(1.0)
    assert guarded.faults() == []


def test_an_element_left_out_is_named(guarded):
    guarded.view.fill_(1.0)
    guarded.bits[guarded.view[2:, 4:].storage_offset()] = guard.PATTERN[guarded.bits.dtype]
    assert guarded.faults() == ["1 element of the output got no value, the first at row 2, column 4"]


@pytest.mark.parametrize("offset, row, column", [(-1, -1, 6), (5, 0, 5), (6, 0, 6), (19, 2, 5)])
def test_a_write_into_the_padding_or_beyond_is_named(guarded, offset, row, column):
    guarded.view.fill_(1.0)
    guarded.bits[guarded.view.storage_offset() + offset] = 0
    said = f"1 element outside the output got a value, the first at row {row}, column {column}"
    assert guarded.faults() == [said]


def test_the_guard_is_nan_starts_where_asked_and_has_margins(guarded):
    assert guarded.view.isnan().all()
    assert guarded.view.storage_offset() % 8 == 1
    assert guarded.view.stride() == (7, 1)
    assert len(guarded.bits) == 2 * guard.MARGIN + 1 + 3 * 7


def test_nan_from_arithmetic_is_not_the_pattern(guarded):
    guarded.view.copy_(torch.tensor(torch.inf) - torch.inf)
    assert guarded.faults() == []


def a_receipt(name, digests, flavour="cu12"):
    return {"kernel": name, "digests": digests, "versions": {"flavour": flavour}}


def test_a_receipt_holds_for_what_it_was_written_for(tmp_path):
    receipts.write(a_receipt("a", {"ptx": "1", "ir": "2"}), tmp_path)
    assert receipts.lacks("a", {"ptx": "1", "ir": "2"}, tmp_path) == ""
    assert receipts.flavours(tmp_path) == {"cu12"}
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]


@pytest.mark.parametrize("ptx, ir, says", [("9", "2", "its ptx"), ("1", "9", "its ir"), ("9", "9", "its ptx and ir")])
def test_a_change_since_is_named(tmp_path, ptx, ir, says):
    receipts.write(a_receipt("a", {"ptx": "1", "ir": "2"}), tmp_path)
    (fault,) = receipts.faults({"a": {"ptx": ptx, "ir": ir}}, tmp_path)
    assert fault == f"a changed since it last ran on a GPU ({says}): `make verify` on one"


def test_a_kernel_without_a_receipt_is_named(tmp_path):
    assert receipts.faults({"b": {"ptx": "1", "ir": "2"}}, tmp_path) == ["b never ran on a GPU: `make verify` on one"]


def finished(name, wrong=()):
    """What the steps say of a kernel that was run."""
    record = {"problems": [], "tool": {"options": [], "tail": []}}
    steps = {tool: record for tool in sanitizers.TOOLS}
    return {**steps, "check": {"values": {}, "guard_elements": 1, "delay": None, "problems": list(wrong)}}


class Bench:
    """Stands in for the GPU: takes kernels through their steps as told, and records which were asked for."""

    def __init__(self, monkeypatch, folder, results):
        self.asked = []
        self.results = results
        monkeypatch.setattr(verify, "checked", self.checked)
        monkeypatch.setattr(verify, "lanes", lambda: 2)
        monkeypatch.setattr(verify, "KERNELS_A_LANE", 1)
        monkeypatch.setattr(verify.plants, "pairs", lambda: [])
        monkeypatch.setattr(verify.receipts, "write", lambda receipt: receipts_write(receipt, folder))

    def checked(self, kernels, folder, deadline, listener):
        self.asked.append(list(kernels))
        return {kernel: self.results[kernel]() for kernel in kernels}


HERE = {"ceilings": {"copy": 4000.0}, "device": "", "driver": "", "date": "", "versions": {"flavour": "cu12"}}
receipts_write = receipts.write


def rounds(names, seconds=1000):
    console = verify.Console(quiet=True)
    start = verify.Outcome([], {}, names)
    return verify.rounds(start, prepared(names), verify.time.monotonic() + seconds, console)


def prepared(names):
    """What the compilation of kernels without a receipt has left."""
    made = {name: {"digests": {"ptx": name, "ir": name}, "options": "", "entries": [name]} for name in names}
    return verify.Prepared({name: {**made[name], "time": {"gbps": 3600.0}} for name in names}, HERE, "folder")


def test_all_that_is_right_gets_a_receipt_and_what_is_wrong_gets_none(monkeypatch, tmp_path):
    results = {name: lambda name=name: finished(name) for name in "abc"} | {"d": lambda: finished("d", ["wrong"])}
    bench = Bench(monkeypatch, tmp_path, results)
    assert rounds(list("abcd")) == verify.Outcome(["a", "b", "c"], {"d": ["wrong"]}, [])
    assert bench.asked == [["a", "b"], ["c", "d"]]
    assert sorted(path.stem for path in tmp_path.iterdir()) == ["a", "b", "c"]


def test_what_was_not_reached_is_left_for_the_next_run_and_only_that(monkeypatch, tmp_path):
    results = {name: lambda name=name: finished(name) for name in "abcd"}
    results["b"] = lambda: {**finished("b"), "memcheck": processes.UNFINISHED}
    Bench(monkeypatch, tmp_path, results)
    assert rounds(list("ab")).left == ["b"]
    assert receipts.lacks("a", {"ptx": "a", "ir": "a"}, tmp_path) == ""
    assert receipts.lacks("b", {"ptx": "b", "ir": "b"}, tmp_path) != ""


def test_no_round_is_begun_when_time_is_short(monkeypatch, tmp_path):
    bench = Bench(monkeypatch, tmp_path, {})
    assert rounds(["a"], seconds=verify.RESERVE - 1).left == ["a"]
    assert bench.asked == []


def test_a_kernel_that_does_not_compile_fails_alone(monkeypatch, tmp_path):
    Bench(monkeypatch, tmp_path, {"a": lambda: finished("a")})
    known = prepared(["a"])
    known.kernels["b"] = {"problems": ["prepare: the process ended with code 1: ValueError: broken"]}
    monkeypatch.setattr(receipts.lacks, "__defaults__", (tmp_path,))
    start = verify.sorted_out(known, verify.Console(quiet=True))
    assert start.left == ["a"]
    assert start.failed == {
        "b": ["was not compiled or timed: prepare: the process ended with code 1: ValueError: broken"]
    }


CLEAN = "========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n"
FOUND = """========= COMPUTE-SANITIZER
========= Invalid __global__ read of size 16 bytes
=========     at kernel_cutlass_softmax_0+0x10
========= ERROR SUMMARY: 2 errors
"""


@pytest.mark.parametrize(
    "log, errors",
    [
        (CLEAN, 0),
        (FOUND, 2),
        ("========= RACECHECK SUMMARY: 1 hazard displayed (0 errors, 1 warning)", 1),
        ("========= COMPUTE-SANITIZER", None),
        ("", None),
    ],
)
def test_a_tools_summary_is_read(log, errors):
    assert sanitizers.count(log) == errors


@pytest.mark.parametrize(
    "tool_log, worker, says",
    [
        (CLEAN, {"problems": []}, ""),
        (FOUND, {"problems": []}, "memcheck: 2 found, the first: Invalid __global__ read of size 16 bytes, at kern"),
        ("", {"problems": []}, "memcheck: the tool wrote no summary"),
        (CLEAN, {"problems": ["wrong values, or not launched"]}, "memcheck: wrong values, or not launched"),
    ],
)
def test_a_kernel_is_clean_only_if_the_tool_and_the_launch_record_say_so(tool_log, worker, says):
    problems = sanitizers.judged("memcheck", worker, sanitizers.count(tool_log), tool_log)["problems"]
    assert len(problems) == bool(says)
    assert "".join(problems).startswith(says)


def test_a_batch_that_is_not_clean_is_split_until_the_kernel_is_found(monkeypatch):
    watched = []

    def watch(tool, kernels, *rest):
        watched.append(list(kernels))
        return {kernel: {"problems": []} for kernel in kernels}, FOUND if "g" in kernels else CLEAN

    monkeypatch.setattr(sanitizers, "watch", watch)
    found = sanitizers.examine("memcheck", list("abcdefghij"), deadline=0)
    assert [name for name in found if found[name]["problems"]] == ["g"]
    assert sorted(found) == list("abcdefghij") and len(watched) < 9


def test_wrong_values_in_a_clean_batch_are_one_kernels_affair(monkeypatch):
    results = {"a": {"problems": []}, "b": {"problems": ["wrong values"]}}
    monkeypatch.setattr(sanitizers, "watch", lambda *arguments: (results, CLEAN))
    found = sanitizers.examine("memcheck", list("ab"), deadline=0)
    assert (found["a"]["problems"], found["b"]["problems"]) == ([], ["memcheck: wrong values"])


def test_a_batch_whose_process_ended_is_split(monkeypatch):
    def watch(tool, kernels, *rest):
        ended = {"problems": ["the process ended"], "ended": True}
        late = list(kernels)[list(kernels).index("b") + 1 :] if "b" in kernels else []
        results = {kernel: processes.UNFINISHED if kernel in late else {"problems": []} for kernel in kernels}
        return (results | {"b": ended}, "") if "b" in kernels else (results, CLEAN)

    monkeypatch.setattr(sanitizers, "watch", watch)
    found = sanitizers.examine("memcheck", list("abc"), deadline=0)
    assert [bool(found[name]["problems"]) for name in "abc"] == [False, True, False]


def test_a_batch_cut_off_by_the_clock_is_neither_good_nor_bad(monkeypatch):
    for b in (processes.UNFINISHED, {"problems": []}):  # in the end the tool has its summary to write
        seen = {"a": {"problems": []}, "b": b}, "========= COMPUTE-SANITIZER"
        monkeypatch.setattr(sanitizers, "watch", lambda *rest, seen=seen: seen)
        assert sanitizers.examine("memcheck", ["a", "b"], deadline=0) == dict.fromkeys("ab", processes.UNFINISHED)


def worker_that(monkeypatch, body):
    """Replaces the worker by a few lines of Python that see the kernels as sys.argv[1:]."""
    right = processes.subprocess.Popen

    def popen(command, **options):
        kernels = command[command.index("tool") + 1 :]
        return right([processes.sys.executable, "-c", "import sys, json, os, time\n" + body, *kernels], **options)

    monkeypatch.setattr(processes.subprocess, "Popen", popen)


SAY = f"say = lambda name: print({processes.MARK!r} + json.dumps({{'kernel': name, 'problems': []}}), flush=True)\n"


def test_results_are_collected_as_they_come(monkeypatch):
    worker_that(monkeypatch, SAY + "print('noise')\nfor name in sys.argv[1:]: say(name)")
    heard = []
    found = processes.run("tool", ["a", "b"], verify.time.monotonic() + 30, listener=heard.append)
    assert found == {"a": {"problems": []}, "b": {"problems": []}}
    assert len(heard) == 2


def test_a_crash_is_laid_at_the_kernel_it_came_from_and_the_rest_is_run(monkeypatch):
    worker_that(monkeypatch, SAY + "for name in sys.argv[1:]:\n if name == 'b': raise ValueError('broken')\n say(name)")
    found = processes.run_all("tool", ["a", "b", "c"], verify.time.monotonic() + 30)
    assert found["a"] == found["c"] == {"problems": []}
    assert found["b"]["problems"] == ["tool: the process ended with code 1: ValueError: broken"]


def test_a_process_is_killed_at_the_deadline(monkeypatch):
    worker_that(monkeypatch, SAY + "say(sys.argv[1]); time.sleep(60)")
    start = verify.time.monotonic()
    found = processes.run_all("tool", ["a", "b", "c"], start + 1)
    assert verify.time.monotonic() - start < 20
    assert found == {"a": {"problems": []}, "b": processes.UNFINISHED, "c": processes.UNFINISHED}


def test_a_hang_that_the_worker_notices_is_called_one():
    assert "hangs" in processes.ending("delay", 1, "Timeout (0:00:40)!\nThread 0x1 (most recent call first):")


@pytest.mark.parametrize(
    "needs, says",
    [
        (("it has none.", "path", "cu12", set()), "Hopper GPU .* it has none"),
        (("", None, "cu12", set()), "requirements-tools"),
        (("", "path", "cu12+cu13", {"cu12"}), "one flavour"),
        (("", "path", "cu13", {"cu12"}), "the DSL here is cu13, the receipts are cu12's"),
    ],
)
def test_what_verify_needs_is_said(needs, says):
    with pytest.raises(ValueError, match=says):
        verify.require(*needs)


def test_verify_has_what_it_needs_with_receipts_of_its_flavour_or_none():
    verify.require("", "path", "cu12", {"cu12"})
    verify.require("", "path", "cu12", set())


def test_a_receipt_is_plain_json(monkeypatch, tmp_path):
    Bench(monkeypatch, tmp_path, {"a": lambda: finished("a")})
    rounds(["a"])
    receipt = json.loads((tmp_path / "a.json").read_text())
    assert receipt["tools"] == {} and receipts.unwatched("a", verify.TOOLS, tmp_path) == list(verify.TOOLS)
    assert receipt["time"]["of_copy"] == 0.9 and receipt["entries"] == ["a"]


FAKE_WORKER = """
import sys, json, pathlib
words = sys.argv[1:]
at = words.index("quack_lite.evidence.worker")
step, rest = words[at + 1], words[at + 2 :]
options = [word for word in rest if word.startswith("--")]
planted = any(word.startswith("--plant=") for word in options)
if "--log-file" in words:
    log = f"Invalid __global__ read\\n========= ERROR SUMMARY: {int(planted)} errors"
    pathlib.Path(words[words.index("--log-file") + 1]).write_text(log)
assert planted or step == "ceilings" or any(word.startswith("--objects=") for word in options)
for name in rest[len(options) :]:
    said = {
        "prepare": {"digests": {"ptx": name, "ir": name}, "options": "o", "entries": [name], "time": {"gbps": 3.6}},
        "ceilings": {
            "ceilings": {"copy": 4.0}, "device": "d", "driver": "1", "date": "2000-01-01",
            "versions": {"flavour": "cu12"},
        },
        "check": {"values": {"case": 0.5}, "guard_elements": 9, "delay": None},
        "tool": {},
    }[step]
    print("@receipt " + json.dumps({"kernel": name, "problems": [], **said}), flush=True)
"""


@pytest.fixture
def machine_without_a_gpu(monkeypatch, tmp_path):
    """All of verify with workers that only talk; the list is a, b, c, and memcheck has one planted fault to catch."""
    right = processes.subprocess.Popen

    def popen(command, **options):
        return right([processes.sys.executable, "-c", FAKE_WORKER, *command], **options)

    monkeypatch.setattr(processes.subprocess, "Popen", popen)
    monkeypatch.setattr(verify, "named", lambda only: [name for name in "abc" if only in name])
    monkeypatch.setattr(verify, "require", lambda *needs: None)
    monkeypatch.setattr(sanitizers, "find", lambda: "compute-sanitizer")
    monkeypatch.setattr(verify.plants, "pairs", lambda: [("memcheck", "fault")])
    monkeypatch.setattr(verify.plants, "load", lambda name: type("Fault", (), {"KERNEL": "a"}))
    monkeypatch.setattr(receipts.read, "__defaults__", (tmp_path,))
    monkeypatch.setattr(receipts.lacks, "__defaults__", (tmp_path,))
    monkeypatch.setattr(receipts.write, "__defaults__", (tmp_path,))
    monkeypatch.setattr(receipts.unwatched, "__defaults__", (tmp_path,))
    monkeypatch.setattr(receipts.remove, "__defaults__", (tmp_path,))
    return tmp_path


def test_verify_writes_what_is_missing_and_then_has_nothing_to_do(machine_without_a_gpu, capsys):
    assert verify.run(only="b") == 0
    assert [path.stem for path in machine_without_a_gpu.iterdir()] == ["b"]
    assert verify.run() == 0
    said = capsys.readouterr().out
    assert "2 never ran on a GPU" in said and "2 receipts written" in said
    assert verify.run() == 0
    assert "every kernel has a receipt that holds" in capsys.readouterr().out
    assert all(set(receipts.read(name)["tools"]) == set(verify.TOOLS) for name in "abc")


def test_a_tool_that_finds_something_takes_the_receipt_away(machine_without_a_gpu, monkeypatch, capsys):
    right = sanitizers.examine

    def examine(tool, kernels, deadline, **options):
        found = right(tool, kernels, deadline, **options)
        wrong = {"problems": ["racecheck: 3 found"]}
        return {name: wrong if (tool, name) == ("racecheck", "b") else found[name] for name in kernels}

    monkeypatch.setattr(sanitizers, "examine", examine)
    assert verify.run() == 1
    assert "1 kernel failed: b" in capsys.readouterr().out
    assert sorted(path.stem for path in machine_without_a_gpu.iterdir()) == ["a", "c"]


def test_a_kernel_whose_receipt_does_not_hold_is_not_watched(machine_without_a_gpu, monkeypatch):
    assert verify.run() == 0
    old = receipts.read("b") | {"tools": {}, "digests": {"ptx": "old", "ir": "old"}}
    receipts.write(old)
    monkeypatch.setattr(verify, "rounds", lambda start, *rest: start)  # the time is over before b is checked
    assert verify.run() == 0
    assert receipts.read("b") == old


def test_a_receipt_that_lacks_a_tool_is_completed(machine_without_a_gpu):
    assert verify.run() == 0
    receipt = receipts.read("a")
    del receipt["tools"]["memcheck"]
    receipts.write(receipt)
    assert receipts.unwatched("a", verify.TOOLS) == ["memcheck"]
    assert verify.run() == 0
    assert receipts.unwatched("a", verify.TOOLS) == []


def test_verify_writes_nothing_when_a_tool_misses_its_fault(machine_without_a_gpu, monkeypatch, capsys):
    monkeypatch.setitem(sanitizers.TOOLS, "memcheck", sanitizers.Tool((), "words that it does not say"))
    assert verify.run() == 1
    assert "memcheck misses the planted fault fault (it says: memcheck: 1 found" in capsys.readouterr().out
    assert list(machine_without_a_gpu.iterdir()) == []


def test_values_and_guard_regions_are_looked_at_in_one_run():
    pairs = [("guard", "a"), ("values", "a"), ("memcheck", "a"), ("values", "b")]
    found = plants.runs(pairs)
    assert found == {("values", "a"): ["guard", "values"], ("memcheck", "a"): ["memcheck"], ("values", "b"): ["values"]}


def test_each_check_that_misses_its_fault_is_named(monkeypatch):
    problems = ["y: 3 elements outside the output got a value"]
    monkeypatch.setattr(plants, "load", lambda name: type("Fault", (), {"KERNEL": "k"}))
    monkeypatch.setattr(processes, "run", lambda *arguments, **options: {"k": {"problems": problems}})
    (said,) = plants.missed("values", "a", ["guard", "values"], deadline=0)
    assert said == "values misses the planted fault a (it says: y: 3 elements outside the output got a value)"


def test_kernels_are_shared_out_evenly():
    assert verify.batches(list("abcdefg"), 3) == [list("adg"), list("be"), list("cf")]
    size = verify.KERNELS_A_LANE * verify.lanes()
    assert [verify.round_size(left) for left in (1, size, size + 1)] == [1, size, -(-(size + 1) // 2)]
