"""Rooflines, curves, and guesses beside measurements."""

import pytest

from quack_lite import draw
from quack_lite.draw.rooflines import share

CEILINGS, PEAK = {"copy": 4000.0, "read": 4400.0}, 60e12
COPY = (1e9, 4e9, 0.002)  # operations, bytes, seconds: 2000 GB/s
GUESSES = {
    "naive copy": {"guess": 3500.0, "unit": "GB/s", "measured": 2100.0},
    "latency": {"guess": 60.0, "unit": "ns", "measured": 650.0},
    "later": {"guess": 1.0, "unit": "s"},
}


def test_a_kernels_share_is_of_the_fastest_ceiling_or_of_the_peak():
    assert share(COPY, CEILINGS, PEAK) == pytest.approx(2000 / 4400)
    assert share((60e12, 1e9, 2.0), CEILINGS, PEAK) == pytest.approx(0.5)


def test_a_roofline_says_where_the_kernels_are():
    image = draw.roofline({"copy": COPY}, CEILINGS, PEAK)
    assert image.data.startswith(b"\x89PNG") and "copy at 45% of its roof" in image.alt


def test_the_kernel_lies_under_its_roof(figures):
    draw.roofline({"copy": COPY}, CEILINGS, PEAK)
    point = figures[0].axes[0].lines[-1]
    assert (point.get_xdata()[0], point.get_ydata()[0]) == (0.25, 5e11)


@pytest.mark.parametrize(
    "kernels, ceilings, says",
    [({}, CEILINGS, "0 kernels"), ({"a": (0, 1, 1)}, CEILINGS, "positive"), ({"a": COPY}, {"copy": 0.0}, "positive")],
)
def test_what_a_roofline_cannot_show_is_refused(kernels, ceilings, says):
    with pytest.raises(ValueError, match=says):
        draw.roofline(kernels, ceilings, PEAK)


def test_guesses_stand_beside_what_was_measured(figures):
    image = draw.guesses(GUESSES)
    assert "naive copy: guessed 3500, measured 2100 GB/s" in image.alt and "later" not in image.alt
    points = [line.get_xdata()[0] for line in figures[0].axes[0].lines if line.get_marker() == "D"]
    assert points == pytest.approx([3500 / 2100, 60 / 650])
    assert "1 more wait" in figures[0].axes[0].get_xlabel()


def test_a_guess_of_nothing_has_words_and_no_mark(figures):
    given = {**GUESSES, "a gain": {"guess": 0, "unit": "%", "measured": -3}}
    image = draw.guesses(given)
    assert "a gain: guessed 0, measured -3 %" in image.alt
    plot = figures[0].axes[0]
    assert len([line for line in plot.lines if line.get_marker() == "D"]) == 2
    assert [text.get_text() for text in plot.texts][-1].startswith("a gain") and plot.get_ylim()[0] == 2.5
    assert draw.guesses({"a gain": given["a gain"]}).alt == "a gain: guessed 0, measured -3 %."


def test_without_a_measured_guess_a_sentence_says_what_to_do():
    with pytest.raises(ValueError, match="give predict a number"):
        draw.guesses({"later": GUESSES["later"]})


def test_the_curve_by_size_has_the_cache_and_the_ceiling_in_it(figures):
    image = draw.size_curve([(2**20 << k, 6000.0 - 200 * k) for k in range(13)], ceiling=4400.0, cache=60 * 2**20)
    assert image.alt.endswith("1 MB: 6000 GB/s, 4 GB: 3600 GB/s.")
    curve, ceiling, cache = figures[0].axes[0].lines
    assert len(curve.get_xdata()) == 13 and cache.get_xdata()[0] == 60 * 2**20 and ceiling.get_ydata()[0] == 4400
