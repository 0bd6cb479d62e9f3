"""Figures: what they count, and that they are pictures with a description. No GPU."""

import numpy as np
import pytest
from tensor_layouts import Layout

from quack_lite import draw, ratios
from quack_lite.draw.records import BEGIN, END, README, speed_by_length, table, write_ratios
from quack_lite.draw.requests import byte_owners

RECORD = {
    "operator": "softmax",
    "dtype": "bf16",
    "device": "a GPU",
    "date": "2026-01-01",
    "ceilings": {"copy": 4000.0},
    "rows": [
        {"m": 8, "n": 1024, "gbps": {"quack_lite": 3900.0, "torch": 2000.0, "quack-kernels": 3900.0}},
        {"m": 4, "n": 151936, "gbps": {"quack_lite": 3700.0, "torch": 1900.0, "quack-kernels": "wrong: NaN"}},
    ],
}


def test_each_byte_has_the_lane_that_asked_for_it():
    sectors, first, last = byte_owners(Layout(32, 1), 2)
    assert sectors.tolist() == [0, 1] and np.array_equal(first, last)
    assert np.array_equal(first.ravel(), np.repeat(np.arange(32), 2))


def test_a_stride_leaves_bytes_that_nobody_asked_for():
    _, first, _ = byte_owners(Layout(32, 8), 4)
    assert first.shape == (32, 32) and (first >= 0).sum() == 32 * 4


def test_the_eight_values_of_a_lane_are_one_request():
    sectors, first, _ = byte_owners(Layout((32, 8), (8, 1)), 2)
    assert len(sectors) == 16 and np.array_equal(first.ravel(), np.repeat(np.arange(32), 16))


@pytest.mark.parametrize("layout, sectors", [(Layout(32, 1), 2), (Layout((32, 8), (8, 1)), 16), (Layout(32, 16), 32)])
def test_a_request_is_a_png_that_says_how_many_sectors(layout, sectors):
    image = draw.warp_request(layout, element_bytes=2)
    assert image.data.startswith(b"\x89PNG") and f"{sectors} sectors" in image.alt


def test_a_curve_has_a_point_for_each_pair_and_a_bound_that_ends_at_the_ceiling():
    image = draw.speed_curve({"one": [(512, 220.0), (1024, 440.0)]}, ceiling=4200.0, latency=340.0, sms=132)
    assert image.data.startswith(b"\x89PNG") and "ceiling" in image.alt


def labels(record):
    return [line.get_label() for line in speed_by_length(record).axes[0].lines]


def test_a_wrong_peer_is_a_cross_and_not_a_speed():
    assert "quack-kernels: wrong" in labels(RECORD) and "quack_lite: wrong" not in labels(RECORD)


def test_a_peer_that_refuses_has_no_point_and_no_cross():
    rows = [RECORD["rows"][0] | {"gbps": {"quack_lite": 3900.0, "liger-kernel": "refused: RuntimeError"}}]
    figure = speed_by_length(RECORD | {"rows": rows})
    lines = {line.get_label(): list(line.get_xdata()) for line in figure.axes[0].lines}
    assert lines["quack_lite"] == [1024] and lines["liger-kernel"] == [] and "liger-kernel: wrong" not in lines


def test_cases_with_other_weights_are_not_drawn():
    rows = [RECORD["rows"][0], RECORD["rows"][1] | {"weights": "bf16"}]
    assert "quack-kernels: wrong" not in labels(RECORD | {"rows": rows})


def test_cross_entropy_has_the_read_ceiling_beside_the_copy_ceiling():
    limits = {"copy": 4000.0, "read": 4400.0}
    assert {"copy ceiling", "read ceiling"} <= set(labels(RECORD | {"operator": "cross_entropy", "ceilings": limits}))
    assert "read ceiling" not in labels(RECORD)


def test_the_table_has_a_line_for_each_operator_and_direction():
    lines = table([RECORD, RECORD | {"direction": "backward"}]).splitlines()
    assert len(lines) == 2 + 2
    assert lines[2] == "| softmax forward | 2 | 1.000 | 1.395 | 1.000 (softmax bf16, 8 x 1024) | 0.950 of copy |"
    assert lines[3].startswith("| softmax backward | 2 | ")


def test_the_readmes_ratios_are_those_of_the_records():
    assert table(ratios.read_all()) in README.read_text()


def test_the_table_is_put_between_its_marks_and_nothing_else_changes(tmp_path):
    readme = tmp_path / "README.md"
    readme.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    write_ratios(readme, "| new |")
    assert readme.read_text() == f"before\n{BEGIN}\n| new |\n{END}\nafter\n"
