"""Tool `zoom`: a part of the picture, enlarged."""

from __future__ import annotations

import re

from PIL import Image

from experts.images import Picture, load_picture
from experts.tools.result import ToolResult

_LONGEST_SIDE = 2048


class ZoomTool:
    """Cuts out a box and enlarges it."""

    def run(self, picture: Picture, **args: str) -> ToolResult:
        """Arguments: `box` "x0,y0,x1,y1" in pixels, clipped to the picture (default: all of it), `factor`
        1..8 (default 2; less where the result would pass 2048 pixels a side). Raises ValueError for
        arguments that cannot be read or a box without area.
        """
        left, top, right, bottom = _box(args.get("box", ""), picture)
        factor = _factor(args.get("factor", ""))
        part = picture.pil().crop((left, top, right, bottom))
        factor = min(factor, _LONGEST_SIDE / max(part.size))
        size = max(round(part.width * factor), 1), max(round(part.height * factor), 1)
        zoomed = load_picture(part.resize(size, Image.Resampling.BICUBIC))
        text = f"({left}, {top}, {right}, {bottom}) enlarged to {size[0]}x{size[1]}"
        return ToolResult(
            text=text,
            data={"box": [left, top, right, bottom], "factor": round(factor, 4)},
            pictures=(zoomed,),
        )


def _box(text: str, picture: Picture) -> tuple[int, int, int, int]:
    if not text.strip():
        return 0, 0, picture.width, picture.height
    numbers = re.fullmatch(r"[\[(\s]*" + r"[,\s]+".join([r"(-?\d+(?:\.\d+)?)"] * 4) + r"[\])\s]*", text)
    if not numbers:
        raise ValueError(f"box must be 'x0,y0,x1,y1' in pixels, not {text!r}")
    x0, y0, x1, y1 = (float(number) for number in numbers.groups())
    left, top = max(int(x0), 0), max(int(y0), 0)
    right, bottom = min(round(x1), picture.width), min(round(y1), picture.height)
    if right <= left or bottom <= top:
        raise ValueError(f"nothing inside the box {text!r} of a {picture.width}x{picture.height} picture")
    return left, top, right, bottom


def _factor(text: str) -> float:
    if not text.strip():
        return 2.0
    try:
        factor = float(text)
    except ValueError:
        raise ValueError(f"factor must be a number from 1 to 8, not {text!r}") from None
    if not 1 <= factor <= 8:
        raise ValueError(f"factor must be from 1 to 8, not {text!r}")
    return factor
