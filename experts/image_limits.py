"""How large, small and narrow a picture may be, and the fault raised when a source holds no such picture."""

from __future__ import annotations

from dataclasses import dataclass

from registry.errors import UserFault


class ImageFault(UserFault):
    """A source from which no picture can be made. The message names the source and, where known, the row."""


@dataclass(frozen=True)
class ImageLimits:
    """Bounds that every picture meets before a model sees it.

    max_bytes: of the encoded file. max_pixels: width x height, looked up before anything is decoded.
    min_side: pixels; narrower pictures are padded, wholly smaller ones first enlarged by a whole factor.
    max_ratio: long side over short side; beyond it the short side is padded.
    background: colour under transparency and of padding, RGB.
    """

    max_bytes: int = 32 * 1024 * 1024
    max_pixels: int = 40_000_000
    min_side: int = 32
    max_ratio: float = 20.0
    background: tuple[int, int, int] = (255, 255, 255)

    def __post_init__(self) -> None:
        if min(self.max_bytes, self.max_pixels, self.min_side) < 1 or self.max_ratio < 1:
            raise ValueError(f"image limits must be at least 1: {self}")
