"""Tool `zoom`: a part of the picture, enlarged."""

from __future__ import annotations

import re

from experts.images import Picture
from experts.tools.cutting import Cut, cut, factor_of
from experts.tools.result import ToolResult


class ZoomTool:
    """Cuts out a box and enlarges it."""

    def run(self, picture: Picture, **args: str) -> ToolResult:
        """Arguments: `box` "x0,y0,x1,y1" in pixels, clipped to the picture (default: all of it), `factor`
        1..8 (default 2; less where the result would pass 2048 pixels a side). Raises ValueError for
        arguments that cannot be read or a box without area.
        """
        part = cut_as_told(picture, args)
        return ToolResult(text=part.text, data=part.data, pictures=(part.picture,))


def cut_as_told(picture: Picture, args: dict[str, str]) -> Cut:
    """The part that the arguments `box` and `factor` name. Raises ValueError."""
    return cut(picture, _box(args.get("box", ""), picture), factor_of(args.get("factor", "")))


def _box(text: str, picture: Picture) -> tuple[int, int, int, int]:
    if not text.strip():
        return 0, 0, picture.width, picture.height
    numbers = re.fullmatch(r"[\[(\s]*" + r"[,\s]+".join([r"(-?\d{1,12}(?:\.\d{1,12})?)"] * 4) + r"[\])\s]*", text)
    if not numbers:
        raise ValueError(f"box must be 'x0,y0,x1,y1' in pixels, not {text[:80]!r}")
    x0, y0, x1, y1 = (float(number) for number in numbers.groups())
    left, top = max(int(x0), 0), max(int(y0), 0)
    right, bottom = round(min(x1, picture.width)), round(min(y1, picture.height))
    if right <= left or bottom <= top:
        raise ValueError(f"nothing inside the box {text!r} of a {picture.width}x{picture.height} picture")
    return left, top, right, bottom
