"""Pictures are read on a phone, on a dark page, and with any colour vision."""

import importlib
import itertools

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.text import Text
from model_programs import run_block_sum, run_cluster_sum, run_column, run_lost_warp, run_two_stages
from tensor_layouts import Layout

from quack_lite import draw

colours = importlib.import_module("quack_lite.draw.picture")

PHONE = 380  # CSS pixels
LEAST = 6.7  # of print there
COPY = {"copy": (1e9, 4e9, 0.002)}
GUESS = {"a copy of one element a thread": {"guess": 3500.0, "unit": "GB/s", "measured": 2100.0}}
TWOS = (2, 2, 2, 2, 2)
NESTED = Layout((TWOS, TWOS), ((1, 4, 16, 64, 256), (2, 8, 32, 128, 512)))
POINTS = {"1 load of 16 bits": [(512, 220.0), (1024, 440.0)], "1 load of 128 bits": [(4096, 1800.0), (8192, 3000.0)]}
PICTURES = {
    "plan": lambda: draw.plan(151936),
    "plan of a short row": lambda: draw.plan(5),
    "plan of the longest row": lambda: draw.plan(300000),
    "layout": lambda: draw.layout(NESTED, 2),
    "banks": lambda: draw.layout(Layout((32, 32), (33, 1)), 4, parts="banks"),
    "TV layout": lambda: draw.tv_layout(Layout(((8, 4), 8), ((32, 1), 4)), Layout((4, 64), (64, 1)), 2),
    "request": lambda: draw.warp_request(Layout((32, 8), (8, 1)), element_bytes=2),
    "access map": lambda: draw.access_map(run_column(0).requests(verb="ld.global")[0]),
    "access map by bank": lambda: draw.access_map(run_column(0).requests(verb="ld.shared")[0]),
    "reduction": lambda: draw.reduction(run_block_sum()),
    "reduction of a cluster": lambda: draw.reduction(run_cluster_sum()),
    "timeline": lambda: draw.timeline(run_cluster_sum()),
    "timeline with copies": lambda: draw.timeline(run_two_stages()),
    "timeline of a hang": lambda: draw.timeline(run_lost_warp()),
    "bars": lambda: draw.speed_bars({"naive copy": 2100.0, "128 bits": 4200.0}, "copy", 4300.0, {"128 bits": 3000.0}),
    "curve": lambda: draw.speed_curve(POINTS, ceiling=4200.0, latency=340.0, sms=132),
    "roofline": lambda: draw.roofline(COPY, {"copy": 4000.0}, 6e13),
    "guesses": lambda: draw.guesses(GUESS),
}

# How linear red, green and blue look with one kind of cone missing: Machado, Oliveira, Fernandes (2009), severity 1.
VISION = {
    "all cones": np.eye(3),
    "protanopia": [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
    "deuteranopia": [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
    "tritanopia": [[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]],
}
TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
WHITE = TO_XYZ.sum(axis=1)


def linear(colour):
    channels = np.array(to_rgb(colour))
    return np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)


def lab(channels):
    """CIE 1976 L*a*b* of linear red, green and blue."""
    ratios = TO_XYZ @ np.clip(channels, 0, 1) / WHITE
    x, y, z = np.where(ratios > 0.008856, np.cbrt(ratios), 7.787 * ratios + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def contrast(one, other):
    """The contrast ratio of the Web Content Accessibility Guidelines."""
    low, high = sorted(TO_XYZ[1] @ linear(colour) for colour in (one, other))
    return (high + 0.05) / (low + 0.05)


@pytest.fixture(scope="module", params=PICTURES.values(), ids=PICTURES)
def drawn(request):
    """(image, figure) of a picture."""
    with pytest.MonkeyPatch.context() as patch:
        seen, save = [], Figure.savefig
        patch.setattr(
            Figure, "savefig", lambda figure, *args, **given: seen.append(figure) or save(figure, *args, **given)
        )
        image = request.param()
    FigureCanvasAgg(seen[0]).draw()
    return image, seen[0]


def prints(figure):
    """The visible texts that say something; ticks beyond an axis are not drawn."""
    beyond = {id(label) for plot in figure.axes for axis in (plot.xaxis, plot.yaxis) for label in labels_beyond(axis)}
    texts = (text for text in figure.findobj(Text) if id(text) not in beyond)
    return [text for text in texts if text.get_visible() and text.get_text().strip()]


def labels_beyond(axis):
    low, high = sorted(axis.get_view_interval())
    ticks = [*axis.get_major_ticks(), *axis.get_minor_ticks()]
    return [label for tick in ticks if not low <= tick.get_loc() <= high for label in (tick.label1, tick.label2)]


def test_print_is_read_at_a_phones_width(drawn):
    _, figure = drawn
    for text in prints(figure):
        pixels = text.get_fontsize() / 72 / figure.get_figwidth() * PHONE
        assert pixels >= LEAST, (text.get_text(), pixels)


def test_nothing_is_cut_off(drawn):
    _, figure = drawn
    width, height = figure.get_size_inches() * figure.dpi
    for text in prints(figure):
        box = text.get_window_extent()
        inside = box.x0 >= -1 and box.y0 >= -1 and box.x1 <= width + 1 and box.y1 <= height + 1
        assert inside, (text.get_text(), box)


def test_a_picture_has_its_own_white_ground_and_a_description(drawn):
    image, figure = drawn
    assert to_rgb(figure.get_facecolor()) == (1, 1, 1)
    assert len(image.alt) > 40 and "\n" not in image.alt


@pytest.mark.parametrize("matrix", VISION.values(), ids=VISION)
def test_neighbours_colours_differ_for_every_colour_vision(matrix):
    for one, other in itertools.combinations(colours.CYCLE, 2):
        apart = np.linalg.norm(lab(np.array(matrix) @ linear(one)) - lab(np.array(matrix) @ linear(other)))
        assert apart > 15, (one, other, apart)


def test_black_print_is_read_on_the_colours_of_cells():
    assert min(contrast("black", colour) for colour in colours.CYCLE) > 4.5


def test_lines_are_seen_on_white():
    assert min(contrast("white", colour) for colour in (colours.BLUE, colours.RED, colours.GREY)) > 3
