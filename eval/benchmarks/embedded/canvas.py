"""A drawing surface in final pixels, painted larger and shrunk: edges are smooth and lie where stated."""

from __future__ import annotations

import io
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from random import Random

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from eval.benchmarks.embedded.colours import Colour

SCALE = 3
FONTS = ("DejaVuSans.ttf", "DejaVuSans-Bold.ttf", "DejaVuSerif.ttf", "DejaVuSansMono.ttf")

Point = tuple[float, float]


@lru_cache(maxsize=256)
def font(name: str, size: int) -> ImageFont.FreeTypeFont:
    """One of the DejaVu fonts that matplotlib ships, `size` in pixels."""
    import matplotlib

    return ImageFont.truetype(str(Path(matplotlib.get_data_path()) / "fonts" / "ttf" / name), size)


class Canvas:
    """Draws in final pixels (x right, y down, floats too); `png` shrinks, adds faint speckle and encodes."""

    def __init__(self, width: int, height: int, background: Colour) -> None:
        self.width, self.height = width, height
        self._image = Image.new("RGB", (width * SCALE, height * SCALE), background)
        self._draw = ImageDraw.Draw(self._image)

    def line(self, points: Sequence[Point], colour: Colour, width: float, *, closed: bool = False) -> None:
        """A polyline with round joints; `closed` joins the last point to the first."""
        path = [(x * SCALE, y * SCALE) for x, y in points]
        if closed:
            path += path[:2]
        self._draw.line(path, fill=colour, width=max(1, round(width * SCALE)), joint="curve")

    def polygon(self, points: Sequence[Point], colour: Colour) -> None:
        """A filled polygon."""
        self._draw.polygon([(x * SCALE, y * SCALE) for x, y in points], fill=colour)

    def disc(self, x: float, y: float, radius: float, colour: Colour) -> None:
        """A filled circle."""
        self._draw.ellipse(self._box(x, y, radius), fill=colour)

    def ring(self, x: float, y: float, radius: float, colour: Colour, width: float) -> None:
        """The outline of a circle; the middle of the stroke lies on the radius."""
        self._draw.ellipse(self._box(x, y, radius + width / 2), outline=colour, width=round(width * SCALE))

    def text(self, x: float, y: float, text: str, colour: Colour, face: str, size: int) -> None:
        """Text centred on (x, y), `size` in final pixels."""
        self._draw.text((x * SCALE, y * SCALE), text, font=font(face, size * SCALE), fill=colour, anchor="mm")

    def _box(self, x: float, y: float, radius: float) -> tuple[float, float, float, float]:
        return (x - radius) * SCALE, (y - radius) * SCALE, (x + radius) * SCALE, (y + radius) * SCALE

    def png(self, rng: Random) -> bytes:
        """The finished picture as PNG bytes."""
        return encode(np.asarray(self._image.reduce(SCALE)), rng)


def text_size(text: str, face: str, size: int) -> tuple[float, float]:
    """Width and height in final pixels of text drawn by `Canvas.text`."""
    left, top, right, bottom = font(face, size * SCALE).getbbox(text)
    return (right - left) / SCALE, (bottom - top) / SCALE


def encode(pixels: np.ndarray, rng: Random) -> bytes:
    """PNG bytes of H x W x 3 uint8 pixels, in half of the cases with faint speckle on about 2 % of them."""
    if rng.random() < 0.5:
        noise = np.random.default_rng(rng.getrandbits(32))
        pixels = pixels.copy()
        height, width = pixels.shape[:2]
        spots = noise.integers(0, height * width, size=height * width // 50)
        flat = pixels.reshape(-1, 3)
        flat[spots] = np.clip(flat[spots].astype(int) + noise.integers(-12, 13, size=(len(spots), 1)), 0, 255)
    buffer = io.BytesIO()
    Image.fromarray(pixels, "RGB").save(buffer, "PNG", compress_level=4)
    return buffer.getvalue()
