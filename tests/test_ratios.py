"""What the records say in one line: means, the lowest with its case, and the total. No GPU, no torch."""

import json
import subprocess
import sys

import pytest

from quack_lite import ratios
from quack_lite.ratios import cases, lines, mean, read_all, total

SOFTMAX = {
    "operator": "softmax",
    "dtype": "bf16",
    "ceilings": {"copy": 4000.0, "read": 4400.0},
    "rows": [
        {"m": 8, "n": 1024, "gbps": {"quack_lite": 4000.0, "torch": 2000.0, "quack-kernels": 4000.0}},
        {"m": 4, "n": 2048, "gbps": {"quack_lite": 2000.0, "torch": 2500.0, "quack-kernels": "wrong: NaN"}},
        {"m": 2, "n": 4096, "gbps": {"quack_lite": 4000.0, "torch": "refused: E", "quack-kernels": 1000.0}},
    ],
}
LOSS = {
    "operator": "cross_entropy",
    "direction": "forward",
    "dtype": "fp32",
    "ceilings": {"copy": 4000.0, "read": 4400.0},
    "rows": [{"m": 8, "n": 1024, "gbps": {"quack_lite": 4400.0, "torch": 2200.0}}],
}
NORM = {
    "operator": "rms_norm",
    "direction": "backward",
    "dtype": "bf16",
    "ceilings": {"copy": 4000.0, "read": 4400.0},
    "rows": [{"m": 8, "n": 1024, "weights": "bf16", "gbps": {"quack_lite": 3000.0, "torch": 1500.0}}],
}


def test_a_line_has_means_over_right_peers_and_the_lowest_ratio_with_its_case():
    [line] = lines([SOFTMAX])
    assert (line.operator, line.direction, line.cases, line.ceiling) == ("softmax", "forward", 3, "copy")
    assert line.quack == pytest.approx((1.0 * 4.0) ** (1 / 2))
    assert line.best == pytest.approx((1.0 * 0.8 * 4.0) ** (1 / 3))
    assert line.worst == (0.8, "softmax bf16, 4 x 2048")
    assert line.lowest == (0.5, "softmax bf16, 4 x 2048")
    assert line.share == pytest.approx(0.5 ** (1 / 3))


def test_directions_are_apart_and_dtypes_together():
    float32 = SOFTMAX | {"dtype": "fp32"}
    backward = SOFTMAX | {"direction": "backward"}
    assert [(line.direction, line.cases) for line in lines([SOFTMAX, float32, backward])] == [
        ("forward", 6),
        ("backward", 3),
    ]


def test_cross_entropy_is_limited_by_reading_and_its_backward_by_copying():
    assert lines([LOSS])[0].share == 1.0
    [line] = lines([LOSS | {"direction": "backward"}])
    assert line.ceiling == "copy" and line.share == pytest.approx(1.1)


def test_a_case_says_its_direction_and_its_narrow_weights():
    assert cases(NORM)[0].label == "rms_norm backward bf16, 8 x 1024, bf16 weights"


def test_where_ours_failed_the_ratio_is_zero_and_not_left_out():
    failed = json.loads(json.dumps(SOFTMAX))
    failed["rows"][0]["gbps"]["quack_lite"] = "wrong: NaN"
    [line] = lines([failed])
    assert line.worst == (0.0, "softmax bf16, 8 x 1024") and line.best == line.quack == line.share == 0.0


def test_without_a_right_peer_there_is_no_ratio():
    alone = SOFTMAX | {"rows": [{"m": 1, "n": 2, "gbps": {"quack_lite": 1.0, "torch": "refused: E"}}]}
    [line] = lines([alone])
    assert line.quack is line.best is line.worst is None
    assert total([alone]) == "geomean vs quack -, worst vs best peer - (no peer), cases 1"


def test_the_total_is_over_all_cases():
    said = "geomean vs quack 2.000, worst vs best peer 0.800 (softmax bf16, 4 x 2048), cases 5"
    assert total([SOFTMAX, LOSS, NORM]) == said


def test_a_mean_is_geometric():
    assert mean([2.0, 8.0]) == pytest.approx(4.0) and mean([]) is None and mean([1.0, 0.0]) == 0.0


def test_a_folder_without_records_is_an_error_that_says_what_writes_them(tmp_path):
    with pytest.raises(ValueError, match="no record of a benchmark in .*make bench"):
        read_all(tmp_path)


def test_the_summary_ends_with_the_total_and_needs_no_torch():
    code = "import sys; sys.modules['torch'] = None; from quack_lite import cli; sys.exit(cli.main())"
    command = [sys.executable, "-c", code, "bench", "--summary"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == total(read_all())


def test_the_summary_has_a_line_for_each_operator_and_direction(capsys, monkeypatch):
    monkeypatch.setattr(ratios, "read_all", lambda: [SOFTMAX, LOSS, NORM])
    assert ratios.show() == 0
    said = capsys.readouterr().out
    assert all(name in said for name in ("softmax forward", "cross_entropy forward", "rms_norm backward"))
    assert "0.800 (softmax bf16, 4 x 2048)" in said and "1.000 of read" in said


def test_the_summary_as_json_is_the_records(capsys, monkeypatch):
    monkeypatch.setattr(ratios, "read_all", lambda: [SOFTMAX, LOSS])
    assert ratios.show(json=True) == 0
    assert json.loads(capsys.readouterr().out) == [SOFTMAX, LOSS]
