"""Colours of the heat maps: a class for each of 21 steps, with a background and a text colour for light and dark.

The one idea: the text is black or white, whichever stands out more, which gives at least 4.5:1 on any background.
"""

from __future__ import annotations

Colour = tuple[int, int, int]
STEPS = 20
LIGHT: tuple[Colour, Colour] = ((243, 247, 251), (21, 94, 160))
DARK: tuple[Colour, Colour] = ((24, 33, 43), (122, 188, 245))
BLACK: Colour = (0, 0, 0)
WHITE: Colour = (255, 255, 255)


def step(value: float) -> int:
    """0..20 for a share in 0..1."""
    return round(STEPS * min(1.0, max(0.0, value)) ** 0.8)


def pair_of(number: int, ends: tuple[Colour, Colour]) -> tuple[Colour, Colour]:
    """Background and text colour of a step."""
    share = number / STEPS
    ground: Colour = tuple(round(a + (b - a) * share) for a, b in zip(*ends, strict=True))  # type: ignore[assignment]
    text = max((BLACK, WHITE), key=lambda colour: contrast(colour, ground))
    return ground, text


def contrast(one: Colour, other: Colour) -> float:
    """WCAG's contrast ratio, 1 to 21."""
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


def rules() -> str:
    """The style rules of all steps."""
    light = "".join(_rule(number, LIGHT) for number in range(STEPS + 1))
    dark = "".join(_rule(number, DARK) for number in range(STEPS + 1))
    return f"{light}@media (prefers-color-scheme: dark){{{dark}}}"


def _rule(number: int, ends: tuple[Colour, Colour]) -> str:
    ground, text = pair_of(number, ends)
    return f".h{number}{{background:{_hex(ground)};color:{_hex(text)}}}"


def _hex(colour: Colour) -> str:
    return "#" + "".join(f"{part:02x}" for part in colour)


def _luminance(colour: Colour) -> float:
    red, green, blue = (
        part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4
        for part in (value / 255 for value in colour)
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
