"""Figures: what they count, and that they are pictures with a description. No GPU."""

import json

import numpy as np
import pytest
from tensor_layouts import Layout

from quack_lite import draw
from quack_lite.draw.records import BEGIN, END, README, RECORDS, ratios, speed_by_length, write_ratios
from quack_lite.draw.requests import byte_owners

RECORD = {
    "operator": "softmax",
    "dtype": "bf16",
    "device": "a GPU",
    "date": "2026-01-01",
    "ceilings": {"copy": 4000.0},
    "rows": [
        {"n": 1024, "gbps": {"quack_lite": 3900.0, "torch": 2000.0, "quack-kernels": 3900.0}},
        {"n": 151936, "gbps": {"quack_lite": 3700.0, "torch": 1900.0, "quack-kernels": "wrong: NaN"}},
    ],
}


def test_each_byte_has_the_lane_that_asked_for_it():
    owner = byte_owners(Layout(32, 1), 2)
    assert owner.shape == (2, 32)
    assert np.array_equal(owner.ravel(), np.repeat(np.arange(32), 2))


def test_a_stride_leaves_bytes_that_nobody_asked_for():
    owner = byte_owners(Layout(32, 8), 4)
    assert owner.shape == (32, 32) and (owner >= 0).sum() == 32 * 4


@pytest.mark.parametrize("layout, sectors", [(Layout(32, 1), 2), (Layout((32, 8), (8, 1)), 16), (Layout(32, 16), 32)])
def test_a_request_is_a_png_that_says_how_many_sectors(layout, sectors):
    image = draw.warp_request(layout, element_bytes=2)
    assert image.data.startswith(b"\x89PNG") and f"{sectors} sectors" in image.alt


def test_a_curve_has_a_point_for_each_pair_and_a_bound_that_ends_at_the_ceiling():
    image = draw.speed_curve({"one": [(512, 220.0), (1024, 440.0)]}, ceiling=4200.0, latency=340.0, sms=132)
    assert image.data.startswith(b"\x89PNG") and "ceiling" in image.alt


def test_a_wrong_peer_is_a_cross_and_not_a_speed():
    labels = [line.get_label() for line in speed_by_length(RECORD).axes[0].lines]
    assert "quack-kernels: wrong" in labels and "quack_lite: wrong" not in labels


def test_the_readmes_ratios_are_those_of_the_records():
    softmax, copy = (json.loads((RECORDS / f"bench_{name}_bf16.json").read_text()) for name in ("softmax", "copy"))
    assert ratios(softmax, copy) in README.read_text()


def test_the_table_is_put_between_its_marks_and_nothing_else_changes(tmp_path):
    readme = tmp_path / "README.md"
    readme.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    write_ratios(readme, "| new |")
    assert readme.read_text() == f"before\n{BEGIN}\n| new |\n{END}\nafter\n"
