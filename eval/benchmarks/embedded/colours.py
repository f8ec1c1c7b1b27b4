"""Colours with names that people agree on, far enough apart that a jittered one keeps its name."""

from __future__ import annotations

from random import Random

Colour = tuple[int, int, int]

NAMED: dict[str, Colour] = {
    "red": (220, 30, 30),
    "green": (40, 160, 60),
    "blue": (40, 80, 220),
    "yellow": (240, 210, 40),
    "orange": (255, 140, 20),
    "purple": (130, 50, 170),
    "pink": (255, 130, 190),
    "cyan": (30, 200, 210),
}
"""Fills of shapes; the names are the answers of colour questions."""

INKS: tuple[Colour, ...] = (
    (31, 119, 180), (214, 39, 40), (44, 160, 44), (148, 103, 189), (140, 86, 75), (227, 119, 194),
    (23, 150, 170), (255, 127, 14), (60, 60, 60),
)  # fmt: skip
"""Colours of outlines and bars, where nobody is asked for a name."""


def jitter(rng: Random, colour: Colour, by: int = 8) -> Colour:
    """The colour with each channel moved by at most `by`."""
    red, green, blue = (min(255, max(0, channel + rng.randint(-by, by))) for channel in colour)
    return red, green, blue


def paper(rng: Random) -> Colour:
    """A background: white in half of the pictures, otherwise a light tint."""
    if rng.random() < 0.5:
        return 255, 255, 255
    red, green, blue = (rng.randint(236, 255) for _ in range(3))
    return red, green, blue


def dark(rng: Random) -> Colour:
    """An ink for text and rules: black or nearly so."""
    shade = rng.choice((0, 0, 20, 45))
    return shade, shade, shade
