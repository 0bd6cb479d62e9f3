"""Figures for lessons, over layouts, plans, measurements and the Model. Every figure is a PNG with a description."""

from quack_lite.draw.accesses import access_map
from quack_lite.draw.bars import speed_bars
from quack_lite.draw.curves import size_curve, speed_curve
from quack_lite.draw.explorers import explore, explore_layout, explore_plan
from quack_lite.draw.layouts import layout, tv_layout
from quack_lite.draw.picture import picture
from quack_lite.draw.places import places_table
from quack_lite.draw.plans import plan
from quack_lite.draw.predictions import guesses
from quack_lite.draw.reductions import reduction
from quack_lite.draw.requests import warp_request
from quack_lite.draw.rooflines import roofline
from quack_lite.draw.stepping import step_through
from quack_lite.draw.timelines import timeline
from quack_lite.draw.wrong import wrong_elements

__all__ = [
    "access_map",
    "explore",
    "explore_layout",
    "explore_plan",
    "guesses",
    "layout",
    "picture",
    "places_table",
    "plan",
    "reduction",
    "roofline",
    "size_curve",
    "speed_bars",
    "speed_curve",
    "step_through",
    "timeline",
    "tv_layout",
    "warp_request",
    "wrong_elements",
]
