"""Boxes found in a picture as a tool's result: a line each, a record each, and all drawn with their numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from PIL import ImageDraw, ImageFont

from experts.images import Picture, load_picture
from experts.tools.result import ToolResult

# Told apart on light and dark pictures, neighbours in the list first.
_COLOURS = ("#e6194b", "#4363d8", "#3cb44b", "#f58231", "#911eb4", "#008080", "#9a6324", "#f032e6")


def boxes_result(picture: Picture, records: Sequence[Mapping[str, Any]], notes: Sequence[str] = ()) -> ToolResult:
    """The result of a detection. records: JSON objects with at least "label" and "box", in pixels of `picture`."""
    return ToolResult(
        text="\n".join(f"{record['label']} at {written(record['box'])}" for record in records),
        data=[dict(record) for record in records],
        pictures=(draw_boxes(picture, [record["box"] for record in records]),),
        notes=tuple(notes),
    )


def written(box: Sequence[float]) -> str:
    """A box in whole pixels, as words hold it."""
    return f"({', '.join(f'{value:.0f}' for value in box)})"


def draw_boxes(picture: Picture, boxes: Sequence[Sequence[float]]) -> Picture:
    """`picture` in its own size with each box as a frame and its number, counted from 1; itself without boxes."""
    if not boxes:
        return picture
    image = picture.pil()
    draw = ImageDraw.Draw(image)
    line = max(1, round(max(image.size) / 320))
    font = _font(min(max(10, round(max(image.size) / 45)), 64))
    # Numbers go on top of all frames, or a neighbour's frame would cut through them.
    for index, box in enumerate(boxes):
        x0, y0, x1, y1 = (round(value) for value in box)
        corners = (x0, y0, max(x1 - 1, x0), max(y1 - 1, y0))
        draw.rectangle(corners, outline=_COLOURS[index % len(_COLOURS)], width=line)
    for index, box in enumerate(boxes):
        _write_number(draw, str(index + 1), box, font, _COLOURS[index % len(_COLOURS)])
    return load_picture(image)


def _write_number(
    draw: ImageDraw.ImageDraw,
    number: str,
    box: Sequence[float],
    font: ImageFont.FreeTypeFont | ImageFont.ImageFont,
    colour: str,
) -> None:
    left, top, right, bottom = font.getbbox(number)
    width, height = right - left + 4, bottom - top + 4
    x = min(max(round(box[0]), 0), max(draw.im.size[0] - round(width), 0))
    above = round(box[1]) - height
    y = above if above >= 0 else round(box[1])
    y = min(y, max(draw.im.size[1] - height, 0))
    draw.rectangle((x, y, x + width - 1, y + height - 1), fill=colour)
    draw.text((x + 2 - left, y + 2 - top), number, fill="white", font=font)


@lru_cache(maxsize=64)
def _font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size)
