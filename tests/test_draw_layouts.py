"""Layouts, TV layouts, and the widgets over layouts and plans."""

import base64
import io

import pytest
from matplotlib.image import imread
from tensor_layouts import Layout

from quack_lite import draw, tiling
from quack_lite.draw.cells import NOBODY
from quack_lite.draw.layouts import holders, offsets_of, sectors_of

HELD_BY_FOUR_BY_EIGHT = Layout(((4, 8), (2, 2)), ((32, 1), (16, 8)))


def test_offsets_lie_in_rows_and_columns():
    assert offsets_of(Layout((2, 3), (3, 1))).tolist() == [[0, 1, 2], [3, 4, 5]]
    assert offsets_of(Layout(4, 2)).tolist() == [[0, 2, 4, 6]]


def test_eight_elements_of_four_bytes_fill_a_sector():
    assert sectors_of(offsets_of(Layout(16, 1)), 4).tolist() == [[0] * 8 + [1] * 8]


def test_a_layout_says_how_many_sectors_and_banks_it_touches():
    assert "8 sectors" in draw.layout(Layout((8, 8), (8, 1)), 4).alt
    assert "in 1 bank." in draw.layout(Layout(32, 32), 4, parts="banks").alt
    assert "in 32 banks" in draw.layout(Layout(32, 33), 4, parts="banks").alt


@pytest.mark.parametrize(
    "given, says",
    [
        (Layout((2, 2, 2), (1, 2, 4)), "rank 3"),
        (Layout((99, 9), (1, 99)), "at most 64 x 128"),
        (Layout(4, -1), "no whole numbers from 0"),
    ],
)
def test_a_layout_that_cannot_be_drawn_is_refused_in_a_sentence(given, says):
    with pytest.raises(ValueError, match=says):
        draw.layout(given, 4)


def test_parts_are_sectors_or_banks():
    with pytest.raises(ValueError, match='"sectors" or "banks"'):
        draw.layout(Layout(4, 1), 4, parts="lines")


def test_each_element_has_the_thread_and_the_value_of_the_tv_layout():
    threads, values = holders(HELD_BY_FOUR_BY_EIGHT, Layout((16, 8), (8, 1)))
    assert threads[0].tolist() == [0, 0, 1, 1, 2, 2, 3, 3] and values[0].tolist() == [0, 1] * 4
    assert threads[8, 0] == 0 and values[8, 0] == 2


def test_what_nobody_holds_stays_empty():
    threads, _ = holders(Layout((2, 1), (1, 1)), Layout((2, 2), (1, 2)))
    assert threads.tolist() == [[0, NOBODY], [1, NOBODY]]


def test_a_tv_layout_that_leaves_the_tile_or_shares_an_element_is_refused():
    with pytest.raises(ValueError, match="thread 1, value 0 has index 4; the tile ends at 3"):
        draw.tv_layout(Layout((2, 2), (4, 1)), Layout((2, 2), (1, 2)), 4)
    with pytest.raises(ValueError, match="held by thread 0 and by thread 1"):
        draw.tv_layout(Layout((2, 2), (0, 1)), Layout((2, 2), (1, 2)), 4)


def test_a_tv_picture_says_what_thread_0_holds():
    assert (
        "thread 0 holds (0, 0), (0, 1), (8, 0), (8, 1)"
        in draw.tv_layout(HELD_BY_FOUR_BY_EIGHT, Layout((16, 8), (8, 1)), 2).alt
    )


def test_a_tv_picture_with_a_name_does_not_give_its_layout_away():
    alt = draw.tv_layout(HELD_BY_FOUR_BY_EIGHT, Layout((16, 8), (8, 1)), 2, name="Picture a").alt
    assert alt.startswith("Picture a: 32 threads") and "((32, 1)" not in alt


def shown(explorer):
    return explorer.children[-1].value


def test_moving_the_slider_changes_the_picture():
    explorer = draw.explore_plan()
    before = shown(explorer)
    explorer.children[0].value = 1000
    assert "151936 elements" in before and "1000 elements" in shown(explorer)
    assert before.split("base64,")[1] != shown(explorer).split("base64,")[1]


def test_other_fields_of_a_plan_are_followed_too():
    explorer = draw.explore_plan()
    explorer.children[1].value = 32
    assert "vectors of 4" in shown(explorer)


@pytest.mark.parametrize(
    "operator, table",
    [
        ("softmax", tiling.SOFTMAX),
        ("softmax backward", tiling.SOFTMAX_BACKWARD),
        ("RMSNorm", tiling.RMS_NORM),
        ("RMSNorm backward", tiling.RMS_NORM_BACKWARD),
        ("LayerNorm", tiling.LAYER_NORM),
        ("LayerNorm backward", tiling.LAYER_NORM_BACKWARD),
    ],
)
def test_each_operator_has_its_own_plans(operator, table):
    explorer = draw.explore_plan(131072)
    explorer.children[2].label = operator
    expected = tiling.plan_row(131072, tiling.plans(16, table))
    assert f"{expected.cluster} x {expected.threads} threads x {expected.vectors} vectors" in shown(explorer)


def test_a_row_beyond_an_operators_plans_is_answered_by_a_sentence():
    explorer = draw.explore_plan()
    explorer.children[2].label, explorer.children[1].value = "RMSNorm backward", 32
    most = tiling.longest(tiling.plans(32, tiling.RMS_NORM_BACKWARD))
    assert most < 151936 and f"rows of 1 to {most} elements are supported" in shown(explorer)
    assert "<img" not in shown(explorer)


def test_a_layout_is_drawn_as_it_is_written():
    explorer = draw.explore_layout()
    explorer.children[0].value, explorer.children[1].value = "(8, (2, 4))", "(8, (4, 1))"
    assert "Layout (8, (2, 4)) : (8, (4, 1))" in shown(explorer)
    explorer.children[3].value = "banks"
    assert "banks" in shown(explorer)


@pytest.mark.parametrize("written", ["(8", "x", "(8, 8, 8)", "'a'", "(2.5, 1)", "(0, 8)"])
def test_what_is_no_layout_is_answered_by_a_sentence(written):
    explorer = draw.explore_layout()
    explorer.children[0].value = written
    assert shown(explorer).startswith("<p>") and "<img" not in shown(explorer)


def test_without_widgets_the_picture_stands_alone():
    explorer = draw.explore_plan()
    bundle = explorer._repr_mimebundle_()
    assert base64.b64decode(bundle["image/png"]).startswith(b"\x89PNG")
    assert bundle["text/plain"].startswith("151936 elements")
    assert "application/vnd.jupyter.widget-view+json" in bundle


def test_a_slider_draws_what_its_function_gives():
    explorer = draw.explore("size", (1, 2, 4), draw.plan)
    before = shown(explorer)
    explorer.children[0].value = 4
    assert explorer.children[0].description == "size" and shown(explorer) != before
    assert explorer.image.alt == draw.plan(4).alt


def test_where_no_slider_moves_the_pictures_of_several_values_stand_below_one_another():
    sizes = [1, 2, 4]
    explorer = draw.explore("size", sizes, draw.plan, still=sizes[1:])
    bundle = explorer._repr_mimebundle_()
    assert bundle["text/plain"] == f"{draw.plan(2).alt}\n{draw.plan(4).alt}"
    heights = [pixels(draw.plan(size).data).shape[0] for size in sizes[1:]]
    assert pixels(base64.b64decode(bundle["image/png"])).shape[0] == sum(heights)
    assert explorer.image.alt == draw.plan(1).alt


def pixels(png):
    return imread(io.BytesIO(png), format="png")
