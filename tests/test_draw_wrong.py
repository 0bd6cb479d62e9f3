"""The picture of where an array is wrong."""

import numpy as np

from quack_lite import draw
from quack_lite.draw import wrong


def test_a_hole_at_the_end_is_told():
    got = np.arange(1000.0)
    got[768:] = np.nan
    image = draw.wrong_elements(got, np.arange(1000.0))
    assert image.alt == "232 of 1000 elements are wrong, the first is element 768; block 3, threads 0 to 231."


def test_a_thread_of_each_block_is_told():
    got = np.arange(1024)
    got[255::256] = 0
    image = draw.wrong_elements(got, np.arange(1024))
    assert image.alt == "4 of 1024 elements are wrong, the first is element 255; blocks 0 to 3, thread 255."


def test_nan_equals_nan_and_nothing_is_red():
    x = np.array([1.0, np.nan])
    assert draw.wrong_elements(x, x).alt == "0 of 2 elements are wrong; nothing is red."


def test_many_blocks_share_rows():
    bad = np.zeros(256 * 100, dtype=bool)
    bad[256 * 99] = True
    marks = wrong.rows_of(bad, 256, 5)
    assert marks.shape == (20, 256) and marks[19, 0] == 1 and marks.sum() == 1
    assert (wrong.rows_of(bad[:300], 256, 1)[1, 44:] == -1).all()


def test_a_single_thread_is_drawn_wider_and_a_long_run_as_it_is():
    red = np.zeros((2, 256), dtype=bool)
    red[0, 255], red[1, :100] = True, True
    drawn = wrong.seen(red)
    assert drawn[0].sum() == 2 and drawn[1].sum() == 100
