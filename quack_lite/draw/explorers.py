"""Plans and layouts to play with."""

import ast
from collections.abc import Callable, Sequence

import ipywidgets
from IPython.display import Image
from tensor_layouts import Layout

from quack_lite import tiling
from quack_lite.draw.explorer import Explorer, field
from quack_lite.draw.layouts import layout
from quack_lite.draw.picture import stacked
from quack_lite.draw.plans import plan

BITS = {"bfloat16, float16": 16, "float32": 32}
TABLES = {
    "softmax": tiling.SOFTMAX,
    "log_softmax": tiling.LOG_SOFTMAX,
    "softmax backward": tiling.SOFTMAX_BACKWARD,
    "RMSNorm": tiling.RMS_NORM,
    "RMSNorm backward": tiling.RMS_NORM_BACKWARD,
    "residual + RMSNorm": tiling.ADD_RMS_NORM,
    "residual + RMSNorm backward": tiling.ADD_RMS_NORM_BACKWARD,
    "LayerNorm": tiling.LAYER_NORM,
    "LayerNorm backward": tiling.LAYER_NORM_BACKWARD,
}
ELEMENT_BYTES = [1, 2, 4, 8]


def explore(name: str, values: Sequence, picture: Callable[..., Image], still: Sequence = ()) -> Explorer:
    """A slider over the values, from the first on, and below it what picture(value) draws.

    still: the values whose pictures stand, one below the other, where widgets are not shown; the slider's if none is
    given.
    """
    slider = field(ipywidgets.SelectionSlider, name, values[0], options=list(values))
    alone = (lambda: stacked([picture(value) for value in still])) if still else None
    return Explorer({"value": slider}, lambda value: picture(value), still=alone)


def explore_plan(n: int = 151936) -> Explorer:
    """A slider for the row's length; see plan."""
    controls = {
        "n": field(ipywidgets.IntSlider, "elements", n, min=1, max=tiling.MAX_N),
        "bits": field(ipywidgets.Dropdown, "dtype", 16, options=BITS),
        "table": field(ipywidgets.Dropdown, "operator", tiling.SOFTMAX, options=TABLES),
    }
    return Explorer(controls, draw_plan)


def draw_plan(n: int, bits: int, table: tuple):
    """The plan of a row of n elements from a table of quack_lite.tiling."""
    return plan(n, tiling.plan_row(n, tiling.plans(bits, table)))


def explore_layout(shape: object = (8, 8), stride: object = (8, 1), element_bytes: int = 4) -> Explorer:
    """Fields for shape and stride, as Python tuples; see layout."""
    controls = {
        "shape": field(ipywidgets.Text, "shape", str(shape)),
        "stride": field(ipywidgets.Text, "stride", str(stride)),
        "element_bytes": field(ipywidgets.SelectionSlider, "bytes", element_bytes, options=ELEMENT_BYTES),
        "parts": field(ipywidgets.ToggleButtons, "show", "sectors", options=["sectors", "banks"]),
    }
    return Explorer(controls, draw_layout)


def draw_layout(shape: str, stride: str, element_bytes: int, parts: str):
    """The picture of a layout in writing. ValueError for what is none."""
    try:
        given = Layout(ast.literal_eval(shape), ast.literal_eval(stride))
    except (ValueError, TypeError, SyntaxError, AssertionError) as problem:
        message = "write whole numbers in brackets, as (8, (2, 4)), the same brackets in both"
        raise ValueError(f"{shape} : {stride} is no layout: {message} ({problem})") from problem
    return layout(given, element_bytes, parts=parts)
