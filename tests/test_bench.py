"""The timing protocol, the ceilings, the records and the command."""

import json

import pytest
import torch

from quack_lite.bench import records

pytestmark = pytest.mark.compile


def test_versions_name_what_ran():
    assert torch.__version__.startswith(records.versions()["torch"].split("+")[0])
    assert "nvidia-cutlass-dsl" in records.versions()


def test_a_record_is_read_as_it_was_written(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "RECORDS", tmp_path / "records")
    path = records.write("bench_a_b", {"rows": [1.5]})
    assert path.name == "bench_a_b.json" and records.read("bench_a_b") == {"rows": [1.5]}


def test_the_command_without_a_gpu_says_so(capsys, monkeypatch):
    from quack_lite.bench import command

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert command.run("softmax", "bf16") == 1
    assert "bench needs an NVIDIA GPU" in capsys.readouterr().out


@pytest.mark.parametrize(
    "words, sentence",
    [
        (("gelu", "bf16"), "operator 'gelu' was given; there are softmax, copy"),
        (("softmax", "bfloat16"), "dtype 'bfloat16' was given; there are bf16, fp16, fp32"),
    ],
)
def test_what_there_is_not_is_refused_with_what_there_is(words, sentence):
    from quack_lite.bench import command

    with pytest.raises(ValueError, match=sentence):
        command.run(*words)


def test_a_ratio_stands_only_beside_right_values():
    from quack_lite.bench import command

    assert command.ours_over({"quack_lite": 3.0, "torch": 2.0, "other": "wrong: NaN"}) == {"torch": 1.5}
    assert command.ours_over({"quack_lite": "wrong: NaN", "torch": 2.0}) == {}


@pytest.mark.parametrize("path", sorted(records.RECORDS.glob("bench_*.json")), ids=lambda path: path.stem)
def test_committed_records_say_what_they_hold_for(path):
    content = json.loads(path.read_text())
    assert "H200" in content["device"] or "H100" in content["device"]
    assert content["driver"] and content["date"] and content["versions"]["torch"]
    assert content["ceilings"]["copy"] > 0 and content["rows"]
    ours = [row["gbps"]["quack_lite"] for row in content["rows"]]
    assert all(isinstance(gbps, float) for gbps in ours), "a length at which ours was refused or wrong"


@pytest.mark.gpu
class TestOnAGpu:
    def copy(self, megabytes=256):
        x = torch.randn(megabytes * 2**18, device="cuda")
        return x, torch.empty_like(x)

    def test_a_copy_is_timed_alike_twice_and_below_the_ceiling(self):
        from quack_lite import bench

        x, y = self.copy()
        first, second = (bench.measure(y.copy_, x, bytes_moved=2 * x.nbytes) for _ in range(2))
        assert abs(first.seconds / second.seconds - 1) < 0.05
        assert first.gbps < 1.1 * bench.ceilings().copy

    def test_a_small_copy_does_not_come_from_the_cache(self):
        from quack_lite import bench

        x, y = self.copy(megabytes=16)
        assert bench.measure(y.copy_, x, bytes_moved=2 * x.nbytes).gbps < 1.1 * bench.ceilings().copy

    def test_a_result_that_turns_wrong_while_it_is_timed_is_found(self):
        from quack_lite import bench

        x, y = self.copy(megabytes=16)

        def check():
            assert torch.equal(x, y), "not a copy any more"

        with pytest.raises(AssertionError, match="not a copy any more"):
            bench.measure(lambda: y.copy_(x).add_(1), bytes_moved=2 * x.nbytes, check=check)

    def test_the_ceilings_are_in_order(self):
        from quack_lite import bench

        limits = bench.ceilings()
        assert limits.copy < limits.read and 100 < limits.latency < 2000
        assert limits is bench.ceilings()

    def test_timing_keeps_everybody_else_out(self):
        import fcntl
        import os
        import tempfile

        from quack_lite import bench

        uuid = torch.cuda.get_device_properties().uuid
        path = os.path.join(tempfile.gettempdir(), f"quack_lite-{os.getuid()}-{uuid}.lock")
        with bench.gpu_lock(exclusive=True), open(path) as other, pytest.raises(BlockingIOError):
            fcntl.flock(other, fcntl.LOCK_SH | fcntl.LOCK_NB)
