"""Cutting a part out of a picture and enlarging it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from PIL import Image

from experts.images import Picture, load_picture

LONGEST_SIDE = 2048  # pixels of an enlarged part
DEFAULT_FACTOR = 2.0
_HIGHEST_FACTOR = 8


@dataclass(frozen=True)
class Cut:
    """A part of a picture. box: whole pixels of that picture. size: of the part as enlarged, in pixels; a very
    narrow one has padding right of it or below it in `picture`."""

    box: tuple[int, int, int, int]
    factor: float
    size: tuple[int, int]
    picture: Picture

    @property
    def text(self) -> str:
        """In words."""
        return f"{self.box} enlarged to {self.size[0]}x{self.size[1]}"

    @property
    def data(self) -> dict[str, Any]:
        """As a JSON object."""
        return {"box": list(self.box), "factor": round(self.factor, 4)}

    def outer(self, box: Sequence[float]) -> tuple[int, int, int, int] | None:
        """A box in pixels of `picture` as the least box of whole pixels around it in the picture that was cut;
        None where it lies in the padding."""
        left, top, right, bottom = self.box
        across, down = (right - left) / self.size[0], (bottom - top) / self.size[1]
        x0, x1 = left + math.floor(box[0] * across), min(left + math.ceil(box[2] * across), right)
        y0, y1 = top + math.floor(box[1] * down), min(top + math.ceil(box[3] * down), bottom)
        return (x0, y0, x1, y1) if x1 > x0 and y1 > y0 else None


def cut(picture: Picture, box: tuple[int, int, int, int], factor: float) -> Cut:
    """The part inside `box` (whole pixels, inside the picture), `factor` times as large; less where a side would pass
    `LONGEST_SIDE`."""
    part = picture.pil().crop(box)
    factor = min(factor, LONGEST_SIDE / max(part.size))
    size = max(round(part.width * factor), 1), max(round(part.height * factor), 1)
    return Cut(box, factor, size, load_picture(part.resize(size, Image.Resampling.BICUBIC)))


def factor_of(text: str) -> float:
    """The argument `factor`. Raises ValueError."""
    if not text.strip():
        return DEFAULT_FACTOR
    try:
        factor = float(text)
    except ValueError:
        raise ValueError(f"factor must be a number from 1 to {_HIGHEST_FACTOR}, not {text!r}") from None
    if not 1 <= factor <= _HIGHEST_FACTOR:
        raise ValueError(f"factor must be from 1 to {_HIGHEST_FACTOR}, not {text!r}")
    return factor
