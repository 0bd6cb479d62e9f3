"""Figures for lessons, over layouts and measurements. Every figure is a PNG with a description."""

from quack_lite.draw.bars import speed_bars
from quack_lite.draw.curves import speed_curve
from quack_lite.draw.picture import picture
from quack_lite.draw.requests import warp_request

__all__ = ["picture", "speed_bars", "speed_curve", "warp_request"]
