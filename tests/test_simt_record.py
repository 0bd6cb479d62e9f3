"""The Model's counts against a GPU's counters, how those are read, and that the kernels do what the programs do."""

import json
import re
import sys

import pytest

from quack_lite import facts, simt
from quack_lite.draw.places import places_table
from quack_lite.simt import __main__ as command
from quack_lite.simt import counters, patterns

BY_NAME = {pattern.name: pattern for pattern in patterns.PATTERNS}
REQUESTS = "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"
SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"
HEADER = (
    '"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size",'
    '"Device","CC","Section Name","Metric Name","Metric Unit","Metric Value"'
)


def csv_line(number, kernel, metric, value):
    fixed = f'"{number}","77","python3.12","127.0.0.1","{kernel}","1","7","(32, 1, 1)","(1, 1, 1)","0","9.0"'
    return f'{fixed},"Command line profiler metrics","{metric}","","{value}"'


SAMPLE = "\n".join(
    [
        "==PROF== Connected to process 77 (/usr/bin/python3.12)",
        '==PROF== Profiling "kernel_cutlass_a" - 0: 0%....50%....100% - 3 passes',
        "==WARNING== Found outstanding GPU clock reset",
        HEADER,
        csv_line(0, "kernel_cutlass_a", REQUESTS, "1"),
        csv_line(0, "kernel_cutlass_a", SECTORS, "1,024"),
        csv_line(10, "kernel_cutlass_c", REQUESTS, "n/a"),
        csv_line(2, "kernel_cutlass_b", REQUESTS, "3.000000"),
        csv_line(2, "kernel_cutlass_b", "sass__inst_executed_per_opcode", "1,070 (BAR: 4; SHFL: 1,028; LDG: 38)"),
        "==PROF== Disconnected from process 77",
    ]
)


@pytest.fixture(scope="module")
def record():
    return counters.read()


class TestTheModel:
    @pytest.mark.parametrize("name", BY_NAME)
    def test_a_pattern_runs_without_a_report(self, name):
        assert patterns.run(BY_NAME[name]).reports == []

    @pytest.mark.parametrize(
        "name, stem, expected",
        [
            ("coalesced", "ld.global", {"requests": 1, "sectors": 4}),
            ("stride 2", "ld.global", {"requests": 1, "sectors": 8}),
            ("stride 32", "ld.global", {"requests": 1, "sectors": 32}),
            ("misaligned by one element", "ld.global", {"requests": 1, "sectors": 5}),
            ("broadcast", "ld.global", {"requests": 1, "sectors": 1}),
            ("128-bit", "ld.global", {"requests": 1, "sectors": 16}),
            ("array of structs", "ld.global", {"requests": 3, "sectors": 36}),
            ("8 neighbours one by one", "ld.global", {"requests": 8, "sectors": 128}),
            ("8 neighbours at once", "ld.global", {"requests": 1, "sectors": 16}),
            ("shared row", "ld.shared", {"requests": 1, "wavefronts": 1, "conflicts": 0}),
            ("shared column", "ld.shared", {"requests": 1, "wavefronts": 32, "conflicts": 31}),
            ("shared column, padded", "ld.shared", {"requests": 1, "wavefronts": 1, "conflicts": 0}),
            ("shared column, swizzled", "ld.shared", {"requests": 1, "wavefronts": 1, "conflicts": 0}),
            ("shared 128-bit", "ld.shared", {"requests": 1, "wavefronts": 4, "conflicts": 0}),
            ("block sum", "shfl.sync.bfly", {"requests": 28}),
            ("block sum", "bar.sync", {"requests": 4}),
        ],
    )
    def test_counts_worked_out_by_hand(self, name, stem, expected):
        assert counters.counts(patterns.run(BY_NAME[name]))[stem] == expected


@pytest.fixture
def ncu():
    """The module that runs and reads ncu; it needs neither ncu nor a GPU, but its package needs torch and the DSL."""
    pytest.importorskip("torch")
    pytest.importorskip("cutlass.cute")
    from quack_lite.bench.counters import ncu

    return ncu


class TestNcu:
    def test_launches_come_in_their_order_whatever_the_lines_order(self, ncu):
        assert [launch.kernel for launch in ncu.parse(SAMPLE)] == [f"kernel_cutlass_{letter}" for letter in "abc"]

    def test_numbers_with_separators_and_none_where_there_is_none(self, ncu):
        a, b, c = map(ncu.counts, ncu.parse(SAMPLE))
        assert a == {"ld.global": {"requests": 1, "sectors": 1024}}
        assert b == {
            "ld.global": {"requests": 3},
            "shfl.sync.bfly": {"requests": 1028},
            "bar.sync": {"requests": 4},
        }
        assert c == {}

    def test_an_output_without_a_table_has_no_launches_but_messages(self, ncu):
        said = "==PROF== Connected\n==ERROR== ERR_NVGPUCTRPERM - The user does not have permission\n"
        assert ncu.parse(said) == []
        assert ncu.messages(said) == ["==ERROR== ERR_NVGPUCTRPERM - The user does not have permission"]

    def test_the_command_asks_for_each_metric_and_leaves_the_clocks_alone(self, ncu, tmp_path):
        for metrics in ncu.QUESTIONS:
            words = ncu.command("ncu", metrics, tmp_path / "log", ["python3", "x.py"])
            assert words[words.index("--clock-control") + 1] == "none"
            assert words[words.index("--metrics") + 1] == ",".join(metrics)
            assert words[-2:] == ["python3", "x.py"]
        assert "--print-metric-instances" not in words

    def test_a_pattern_without_counters_and_one_that_failed_are_told_of(self, ncu):
        from quack_lite.bench.counters.__main__ import rows_of

        whole = ncu.Launch("kernel_cutlass_a", dict.fromkeys(ncu.COUNTERS.values(), "5"))
        part = ncu.Launch("kernel_cutlass_b", {REQUESTS: "5"})
        launches = [
            {
                "name": "a",
                "numbers": {"stride": 2},
                "entry": "kernel_cutlass_a",
                "ptx": {"ld.global": 1},
                "problem": "",
            },
            {"name": "b", "numbers": {}, "entry": "kernel_cutlass_b", "ptx": {}, "problem": ""},
            {"name": "c", "numbers": {}, "entry": "", "ptx": {}, "problem": "ValueError: no"},
        ]
        rows, problems = rows_of(launches, [part, whole])
        assert [row["name"] for row in rows] == ["a"]
        assert rows[0]["numbers"] == {"stride": 2} and rows[0]["gpu"]["ld.global"] == {"requests": 5, "sectors": 5}
        assert problems == ["b: ncu has no counters for kernel_cutlass_b", "c: ValueError: no"]


# A stand-in for ncu: it does not know the metrics that start with sass__, and counts 5 of each other.
NCU = f"""#!{sys.executable}
import json, sys
if "--version" in sys.argv:
    sys.exit(print("Version 2025.1.0 (build 1)"))
log, metrics = (sys.argv[sys.argv.index(name) + 1] for name in ("--log-file", "--metrics"))
with open(sys.argv[-1], "w") as file:
    for name in "ab":
        told = {{"name": name, "numbers": {{}}, "entry": "kernel_cutlass_" + name, "ptx": {{}}, "problem": ""}}
        print(json.dumps(told), file=file)
with open(log, "w") as file:
    if "sass__" in metrics:
        sys.exit(print("==ERROR== Failed to find metric sass__inst_executed_per_opcode", file=file))
    print('"ID","Kernel Name","Metric Name","Metric Unit","Metric Value"', file=file)
    for number, name in enumerate("ab"):
        for metric in metrics.split(","):
            print(f'"{{number}}","kernel_cutlass_{{name}}","{{metric}}","","5"', file=file)
"""


class TestTheCollector:
    def collect(self, ncu, tmp_path, monkeypatch, text=NCU, times=None):
        from quack_lite.bench.counters import __main__ as collector

        tool = tmp_path / "ncu"
        tool.write_text(text)
        tool.chmod(0o755)
        monkeypatch.setattr(ncu, "find", lambda: str(tool))
        monkeypatch.setattr(collector.machine, "reasons", lambda place: "")
        monkeypatch.setattr(collector, "circumstances", lambda: {"device": "NVIDIA X"})
        monkeypatch.setattr(collector, "try_times", lambda: times or {"rows": []})
        self.arguments = ["--record", str(tmp_path / "new" / "counters.json"), "--raw", str(tmp_path / "raw")]
        return collector.main(self.arguments)

    def test_a_metric_that_ncu_does_not_know_is_left_out(self, ncu, tmp_path, monkeypatch):
        assert self.collect(ncu, tmp_path, monkeypatch) == 0
        record = json.loads((tmp_path / "new" / "counters.json").read_text())
        assert (record["device"], record["ncu"]) == ("NVIDIA X", "2025.1.0")
        assert [row["name"] for row in record["patterns"]] == ["a", "b"]
        assert record["patterns"][0]["gpu"]["ld.shared"] == {"requests": 5, "wavefronts": 5, "conflicts": 5}
        assert "shfl.sync.bfly" not in record["patterns"][0]["gpu"]
        assert "Failed to find" in (tmp_path / "raw" / "run0.csv").read_text()

    def test_what_was_kept_makes_the_record_again_without_ncu(self, ncu, tmp_path, monkeypatch):
        from quack_lite.bench.counters import __main__ as collector

        self.collect(ncu, tmp_path, monkeypatch)
        record = tmp_path / "new" / "counters.json"
        first = record.read_text()
        record.unlink()
        (tmp_path / "ncu").unlink()
        assert collector.main([*self.arguments, "--reread"]) == 0
        assert record.read_text() == first

    def test_without_counters_there_is_no_record_and_each_run_says_why(self, ncu, tmp_path, monkeypatch, capsys):
        refused = NCU.replace('if "sass__" in metrics', "if True").replace("Failed to find metric", "ERR_NVGPUCTRPERM")
        assert self.collect(ncu, tmp_path, monkeypatch, refused) == 1
        said = capsys.readouterr().out
        assert all(f"ncu, run {number}: ==ERROR== ERR_NVGPUCTRPERM" in said for number in range(len(ncu.QUESTIONS)))
        assert said.endswith("problems; no record\n") and not (tmp_path / "new").exists()

    def test_times_that_failed_are_told_of(self, ncu, tmp_path, monkeypatch, capsys):
        assert self.collect(ncu, tmp_path, monkeypatch, times={"problem": "RuntimeError: wrong sums"}) == 1
        assert "times: RuntimeError: wrong sums" in capsys.readouterr().out

    def test_a_run_that_hangs_is_ended(self, ncu, tmp_path, monkeypatch, capsys):
        from quack_lite.bench.counters import __main__ as collector

        monkeypatch.setattr(collector, "SECONDS", 0)
        hangs = NCU.replace("log, metrics", "import time; time.sleep(600)\nlog, metrics")
        assert self.collect(ncu, tmp_path, monkeypatch, hangs) == 1
        assert "ncu, run 0: ==ERROR== ended, since the time was over" in capsys.readouterr().out


@pytest.fixture(scope="module")
def built():
    """{pattern: its compiled kernel}."""
    from quack_lite.bench.counters.builds import build

    return {name: build(pattern) for name, pattern in BY_NAME.items()}


@pytest.mark.compile
class TestTheKernels:
    def test_no_access_is_removed_or_joined(self, built):
        """No loop is left in the PTX, so each warp executes each instruction once."""
        for name, pattern in BY_NAME.items():
            requests = {stem: what["requests"] for stem, what in counters.counts(patterns.run(pattern)).items()}
            text = {stem: number * pattern.block // 32 for stem, number in facts.stems(built[name].ptx).items()}
            assert text == requests, name

    def test_each_access_has_the_width_of_the_program(self, built):
        for name, pattern in BY_NAME.items():
            run = patterns.run(pattern)
            asked = {(event.verb, event.width * 8) for event in run.events if event.space}
            assert widths(built[name].ptx) == asked, name

    def test_kernels_are_told_apart_by_their_names(self, built):
        names = {re.search(r"\.entry (\w+)", kernel.ptx)[1] for kernel in built.values()}
        assert len(names) == len(BY_NAME) and all(name.startswith("kernel_cutlass") for name in names)

    def test_the_record_was_made_from_these_kernels(self, built, record):
        assert {row["name"]: row["ptx"] for row in record["patterns"]} == {
            name: facts.stems(kernel.ptx) for name, kernel in built.items()
        }


def widths(ptx):
    """{(stem, bits)} of the accesses in the text."""
    found = re.findall(r"\b((?:ld|st)\.(?:global|shared))(?:\.v(\d))?\.b(\d+)\b", ptx)
    return {(stem, int(vector or 1) * int(bits)) for stem, vector, bits in found}


class TestTheRecord:
    def test_it_has_all_patterns_and_says_where_it_was_made(self, record):
        assert {row["name"] for row in record["patterns"]} == set(BY_NAME) and len(BY_NAME) >= 12
        assert {"device", "driver", "versions", "date", "ncu"} <= set(record)

    @pytest.mark.parametrize("name", BY_NAME)
    def test_the_model_counts_what_the_gpu_counted(self, name, record):
        assert [row for row in counters.compare(record)[name] if not row.equal] == []

    def test_one_by_one_asks_for_eight_times_the_sectors_and_takes_little_more_time(self, record):
        """Of an H200: 3718 GB/s and 3994 at once, 7 per cent more time, since L1 has seven eighths of the sectors."""
        gpu = {row["name"]: row["gpu"]["ld.global"] for row in record["patterns"]}
        slow, fast = record["times"]["rows"]
        asked, needed = gpu[slow["pattern"]], gpu[fast["pattern"]]["sectors"]
        assert (asked["sectors"], asked["sectors"] - asked["L1 hits"]) == (8 * needed, needed)
        assert 1 < slow["us"] / fast["us"] < 1.2

    def test_the_docstring_has_the_two_speeds_of_the_record(self, record):
        slow, fast = (row["gbps"] for row in record["times"]["rows"])
        assert f"{slow} GB/s instead of {fast}" in " ".join(simt.__doc__.split())


def made_up(change=0):
    """A record as if a GPU had counted what the Model counts, the first pattern's sectors changed."""
    rows = []
    for pattern in patterns.PATTERNS:
        gpu = counters.counts(patterns.run(pattern))
        rows.append({"name": pattern.name, "numbers": dict(pattern.numbers), "ptx": {}, "gpu": gpu})
    rows[0]["gpu"]["ld.global"]["sectors"] += change
    timed = [{"pattern": name, "elements": 8, "us": 1.0, "gbps": 9} for name in list(BY_NAME)[-2:]]
    times = {"read_ceiling": 10.0, "rows": timed}
    said = {"device": "NVIDIA X", "driver": "1.2", "ncu": "3.4", "date": "2026-01-02"}
    return {"patterns": rows, "times": times, **said}


class TestTheCommand:
    def printed(self, record, tmp_path, monkeypatch, capsys):
        path = tmp_path / "counters.json"
        path.write_text(json.dumps(record))
        monkeypatch.setattr(counters, "RECORD", path)
        assert command.main() == 0
        return capsys.readouterr().out.splitlines()

    def test_the_last_line_counts_the_equal_ones(self, tmp_path, monkeypatch, capsys):
        lines = self.printed(made_up(), tmp_path, monkeypatch, capsys)
        assert lines[-1] == f"{len(BY_NAME)} patterns, {len(BY_NAME)} equal"
        assert lines[0] == "GPU: NVIDIA X, driver 1.2, ncu 3.4, 2026-01-02"
        assert any("8 neighbours one by one: 128 sectors a warp; 9 GB/s" in line for line in lines)

    def test_a_difference_is_marked(self, tmp_path, monkeypatch, capsys):
        lines = self.printed(made_up(change=1), tmp_path, monkeypatch, capsys)
        assert lines[-1] == f"{len(BY_NAME)} patterns, {len(BY_NAME) - 1} equal"
        [line] = [line for line in lines if "differs" in line]
        assert " ".join(line.split()) == "coalesced ld.global 1 requests, 4 sectors differs, GPU: 5 sectors"

    def test_a_counter_that_was_not_read_is_no_difference_and_is_told_of(self, tmp_path, monkeypatch, capsys):
        record = made_up()
        del record["patterns"][list(BY_NAME).index("block sum")]["gpu"]["bar.sync"]
        lines = self.printed(record, tmp_path, monkeypatch, capsys)
        assert lines[-1] == f"{len(BY_NAME)} patterns, {len(BY_NAME)} equal"
        [line] = [line for line in lines if "not read" in line]
        assert " ".join(line.split()) == "bar.sync 4 requests GPU: requests not read"

    def test_what_only_the_gpu_counted_is_a_difference(self):
        record = made_up()
        record["patterns"][0]["gpu"]["st.shared"] = {"requests": 0, "wavefronts": 2}
        assert [row for row in counters.compare(record)["coalesced"] if not row.equal] == [
            counters.Row("st.shared", "wavefronts", 0, 2)
        ]

    def test_a_record_of_other_patterns_is_refused(self):
        record = made_up()
        record["patterns"][1]["numbers"]["stride"] = 3
        with pytest.raises(ValueError, match="older than the pattern 'stride 2': python -m quack_lite.bench.counters"):
            counters.compare(record)

    def test_without_a_record_it_says_what_makes_one(self, tmp_path, monkeypatch, capsys):
        monkeypatch.setattr(counters, "RECORD", tmp_path / "counters.json")
        assert command.main() == 1
        assert "python -m quack_lite.bench.counters, on a machine with a Hopper GPU" in capsys.readouterr().err


LINES = {
    "ld.global": "ld.global.nc.L1::no_allocate.v4.b32 {%r1, %r2, %r3, %r4}, [%rd1];",
    "st.global": "st.global.b32 [%rd4], %r1;",
    "ld.shared": "ld.shared.v2.b32 {%r1, %r2}, [%r9];",
    "st.shared": "st.shared.b32 [%r5+132], %r7;",
    "shfl.sync.bfly": "shfl.sync.bfly.b32 %r1, %r2, 16, 31, -1;",
    "shfl.sync.down": "shfl.sync.down.b32 %r1, %r2, 1, 31, -1;",
    "shfl.sync.idx": "shfl.sync.idx.b32 %r1, %r2, 0, 31, -1;",
    "bar.sync": "barrier.cta.sync.aligned 0;",
    "bar.warp.sync": "bar.warp.sync -1;",
    "cp.async": "cp.async.cg.shared.global [%r1], [%rd1], 16, 16;",
    "cp.async.commit_group": "cp.async.commit_group;",
    "cp.async.wait_group": "cp.async.wait_group 1;",
    "cp.async.bulk": "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1], %r2, [%r3];",
    "mbarrier.arrive": "mbarrier.arrive.shared.b64 %rd1, [%r1];",
    "mbarrier.expect_tx": "mbarrier.arrive.expect_tx.shared.b64 %rd1, [%r1], 256;",
    "mbarrier.try_wait": "mbarrier.try_wait.parity.shared.b64 %p1, [%r1], %r2, %r3;",
    "ld.shared::cluster": "ld.shared::cluster.b32 %r1, [%r2];",
    "st.async": "st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%r1], %r2, [%r3];",
    "barrier.cluster.arrive": "barrier.cluster.arrive.relaxed.aligned;",
    "barrier.cluster.wait": "barrier.cluster.wait.aligned;",
}


class TestStems:
    @pytest.mark.parametrize("stem", LINES)
    def test_a_line_counts_for_its_own_stem_only(self, stem):
        assert facts.stems(f"\t{LINES[stem]}\n") == {stem: 1}

    def test_every_verb_that_does_something_has_one(self):
        declared = {".shared", "mbarrier.init"}
        assert {verb.ptx for verb in simt.CARD} - declared == set(facts.STEMS) == set(LINES)


class TestTheTable:
    PTX = "ld.global.v4.b32 {%r1}, [%rd1];\nst.global.b32 [%rd4], %r2;\nbar.sync 0;\n"

    def test_a_column_that_is_not_given_says_so(self):
        table = places_table(patterns.run(BY_NAME["coalesced"]))
        assert table.heads == ("", "Model count", "in the PTX: not compiled", "GPU counter: not recorded")
        assert table.rows[0] == ("ld.global", "1 request, 4 sectors", "-", "-")

    def test_rows_are_stems_of_any_column(self):
        table = places_table(patterns.run(BY_NAME["coalesced"]), self.PTX)
        assert [row[:3] for row in table.rows] == [
            ("ld.global", "1 request, 4 sectors", "1"),
            ("st.global", "1 request, 4 sectors", "1"),
            ("bar.sync", "-", "1"),
        ]
        assert "<th>GPU counter: not recorded</th>" in table._repr_html_() and "bar.sync" in repr(table)

    def test_the_gpu_column_has_device_and_date(self, tmp_path, monkeypatch):
        path = tmp_path / "counters.json"
        path.write_text(json.dumps(made_up()))
        monkeypatch.setattr(counters, "RECORD", path)
        table = places_table(pattern="shared column")
        assert table.heads[1:] == (
            "Model count: no program",
            "in the PTX: not compiled",
            "GPU counter (NVIDIA X, 2026-01-02)",
        )
        assert ("ld.shared", "-", "-", "1 request, 32 wavefronts, 31 conflicts") in table.rows
        with pytest.raises(KeyError, match="no pattern 'nothing' in the record"):
            places_table(pattern="nothing")
