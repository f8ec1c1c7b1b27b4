"""Boxes in a model's own coordinates, as pixels of the picture that it was shown.

The one idea: a box is worth something only when it is known what its numbers count. `Frame` knows, for one
picture and one box format; it converts exactly in both directions and rounds nothing. Rounding (to a tenth of a
pixel) and clipping come after, in `settle`, and a box that they leave nothing of is refused with the reason.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from registry.schema import Resize, Tool

Box = tuple[float, float, float, float]
"""left, top, right, bottom."""
BoxFormat = Literal["pixel", "norm1000", "resized"]
DECIMALS = 1
_QWEN_2_5 = Resize()


class BoxFault(ValueError):
    """A box that stands for no part of the picture."""


@dataclass(frozen=True)
class Frame:
    """The coordinates of one picture of `width` x `height` pixels, as a model counts them.

    pixel: pixels of the picture. norm1000: thousandths of its width and height, as Qwen3-VL. resized: pixels of
    the picture as the model's processor resizes it, as Qwen2.5-VL.
    """

    width: int
    height: int
    box_format: BoxFormat = "pixel"
    resize: Resize = _QWEN_2_5

    @classmethod
    def of(cls, tool: Tool, width: int, height: int) -> Frame:
        """The frame in which `tool` answers about a picture of this size."""
        return cls(width, height, tool.box_format, tool.resize)

    @cached_property
    def extent(self) -> tuple[int, int]:
        """The model's coordinates of the lower right corner."""
        if self.box_format == "norm1000":
            return 1000, 1000
        if self.box_format == "resized":
            return resized(self.width, self.height, self.resize)
        return self.width, self.height

    def to_pixels(self, box: Box) -> Box:
        """A box of the model in pixels of the picture."""
        across, down = self.extent
        x0, y0, x1, y1 = box
        return (
            x0 * self.width / across,
            y0 * self.height / down,
            x1 * self.width / across,
            y1 * self.height / down,
        )

    def from_pixels(self, box: Box) -> Box:
        """A box in pixels of the picture as the model would write it, before rounding."""
        across, down = self.extent
        x0, y0, x1, y1 = box
        return (
            x0 * across / self.width,
            y0 * down / self.height,
            x1 * across / self.width,
            y1 * down / self.height,
        )

    def settle(self, numbers: Sequence[float]) -> Box:
        """A model's box as pixels inside the picture: swapped corners put right, clipped to the picture, rounded
        to a tenth of a pixel. Raises BoxFault when no area is left or a number is none."""
        if not all(math.isfinite(number) for number in numbers):
            raise BoxFault("has a coordinate that is no number")
        x0, y0, x1, y1 = self.to_pixels((numbers[0], numbers[1], numbers[2], numbers[3]))
        left, right = _within(min(x0, x1), self.width), _within(max(x0, x1), self.width)
        top, bottom = _within(min(y0, y1), self.height), _within(max(y0, y1), self.height)
        if right > left and bottom > top:
            return left, top, right, bottom
        outside = max(x0, x1) <= 0 or max(y0, y1) <= 0 or min(x0, x1) >= self.width or min(y0, y1) >= self.height
        raise BoxFault("is outside the picture" if outside else "is without area")


def _within(value: float, limit: int) -> float:
    return round(min(max(value, 0.0), float(limit)), DECIMALS)


def resized(width: int, height: int, resize: Resize) -> tuple[int, int]:
    """(width, height) after the resizing that Qwen2-VL, Qwen2.5-VL and Qwen3-VL processors do ("smart resize")."""
    factor = resize.factor
    across, down = round(width / factor) * factor, round(height / factor) * factor
    if across * down > resize.max_pixels:
        shrink = math.sqrt(width * height / resize.max_pixels)
        across = max(factor, math.floor(width / shrink / factor) * factor)
        down = max(factor, math.floor(height / shrink / factor) * factor)
    elif across * down < resize.min_pixels:
        enlarge = math.sqrt(resize.min_pixels / (width * height))
        across = math.ceil(width * enlarge / factor) * factor
        down = math.ceil(height * enlarge / factor) * factor
    return max(across, factor), max(down, factor)
