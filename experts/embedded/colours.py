"""Colours of a drawn picture: its background, its few inks, and their names.

Drawings hold few colours plus the mixtures that smoothing makes along edges. Pixels are binned to 32
levels a channel, the fullest bins become inks, and every pixel takes the nearest ink through one look-up
table.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

_LEVELS = 32
_NEAR = 40  # largest difference in any channel between a pixel and its ink

# Several shades for each name; the name of a colour is that of the nearest shade in Lab space.
_SHADES: dict[str, tuple[tuple[int, int, int], ...]] = {
    "red": ((220, 30, 30), (255, 0, 0), (214, 39, 40), (180, 20, 20), (200, 50, 60)),
    "green": ((40, 160, 60), (0, 128, 0), (44, 160, 44), (0, 200, 0), (90, 190, 90), (20, 100, 40)),
    "blue": ((40, 80, 220), (0, 0, 255), (31, 119, 180), (0, 120, 255), (30, 40, 140), (70, 130, 210)),
    "yellow": ((240, 210, 40), (255, 255, 0), (250, 230, 80), (230, 200, 20)),
    "orange": ((255, 140, 20), (255, 127, 14), (255, 165, 0), (240, 110, 30)),
    "purple": ((130, 50, 170), (128, 0, 128), (148, 103, 189), (110, 60, 200), (90, 30, 130)),
    "pink": (
        (255, 130, 190),
        (227, 119, 194),
        (255, 182, 193),
        (255, 105, 180),
        (235, 0, 255),
        (240, 150, 200),
    ),
    "cyan": ((30, 200, 210), (0, 255, 255), (23, 190, 207), (64, 200, 200), (0, 150, 160)),
    "brown": ((120, 70, 30), (140, 86, 75), (139, 69, 19), (100, 60, 40)),
    "gray": ((128, 128, 128), (160, 160, 160), (100, 100, 100), (190, 190, 190)),
    "black": ((15, 15, 15), (45, 45, 45)),
    "white": ((250, 250, 250),),
}


@dataclass(frozen=True)
class Inks:
    """The picture's colours, `colours[0]` being the background, and which of them each pixel has.

    colours: K x 3 uint8-valued floats; shares: K, of all pixels; labels: H x W int16, -1 for mixtures.
    """

    colours: np.ndarray
    shares: np.ndarray
    labels: np.ndarray

    def mask(self, ink: int) -> np.ndarray:
        """H x W uint8, 1 where the pixel has this ink."""
        return (self.labels == ink).astype(np.uint8)

    def chromatic(self) -> list[int]:
        """Inks other than the background that are neither black, white nor grey."""
        return [ink for ink in range(1, len(self.colours)) if np.ptp(self.colours[ink]) >= 40]

    def unmixed(self) -> list[int]:
        """Inks that are no mixture of the background with an ink of more contrast, as smoothed rims are."""
        contrast = np.abs(self.colours - self.colours[0]).max(axis=1)
        pure: list[int] = []
        for ink in sorted(range(1, len(self.colours)), key=lambda ink: -contrast[ink]):
            if not any(_mixes(self.colours[0], self.colours[other], self.colours[ink]) for other in pure):
                pure.append(ink)
        return pure


def find_inks(rgb: np.ndarray, *, most: int = 16, least_share: float = 0.0006, apart: int = 32) -> Inks:
    """Split an H x W x 3 uint8 picture into at most `most` inks beside the background, each with a channel
    that differs by more than `apart` from every other ink's."""
    bins = _bins(rgb)
    counts = np.bincount(bins.ravel(), minlength=_LEVELS**3)
    filled = np.flatnonzero(counts)
    colours = np.stack([filled // _LEVELS**2, filled // _LEVELS % _LEVELS, filled % _LEVELS], axis=1) * 8.0 + 4.0
    weights = counts[filled].astype(float)
    inks = _peaks(colours, weights, most + 1, least_share * bins.size, apart)
    distance = np.abs(colours[:, None, :] - inks[None, :, :]).max(axis=2)
    nearest = distance.argmin(axis=1)
    nearest[distance.min(axis=1) > _NEAR] = -1
    table = np.full(_LEVELS**3, -1, np.int16)
    table[filled] = nearest
    shares = np.array([weights[nearest == ink].sum() for ink in range(len(inks))]) / bins.size
    return Inks(inks, shares, table[bins])


def background(rgb: np.ndarray) -> np.ndarray:
    """The most frequent colour, 3 floats."""
    counts = np.bincount(_bins(rgb).ravel(), minlength=_LEVELS**3)
    fullest = int(counts.argmax())
    return np.array([fullest // _LEVELS**2, fullest // _LEVELS % _LEVELS, fullest % _LEVELS]) * 8.0 + 4.0


def ink_mask(rgb: np.ndarray, threshold: int = 48) -> np.ndarray:
    """H x W uint8, 1 where the pixel differs from the background by more than `threshold` in some channel."""
    ground = background(rgb).astype(np.int16)
    difference = np.abs(rgb.astype(np.int16) - ground)
    # Channel by channel: reducing over an axis of three is many times slower.
    strongest = np.maximum(np.maximum(difference[..., 0], difference[..., 1]), difference[..., 2])
    return (strongest > threshold).astype(np.uint8)


def colour_name(colour: np.ndarray) -> str:
    """The plain name of a colour (3 values 0..255), nearest shade in Lab space."""
    offsets = np.linalg.norm(_SHADE_LAB - _lab(np.asarray(colour, float).reshape(1, 3)), axis=1)
    return _SHADE_NAMES[int(offsets.argmin())]


def _mixes(ground: np.ndarray, ink: np.ndarray, colour: np.ndarray) -> bool:
    """Whether the colour lies between the background and the ink."""
    step = ink - ground
    share = float((colour - ground) @ step) / max(float(step @ step), 1e-9)
    return 0.1 < share < 0.9 and float(np.abs(ground + share * step - colour).max()) < 20


def _bins(rgb: np.ndarray) -> np.ndarray:
    levels = (rgb >> 3).astype(np.int32)
    return (levels[..., 0] * _LEVELS + levels[..., 1]) * _LEVELS + levels[..., 2]


def _peaks(colours: np.ndarray, weights: np.ndarray, most: int, least: float, apart: int) -> np.ndarray:
    """Fullest bins first, each averaged with its close neighbours and clearing the space around it."""
    left = weights.copy()
    peaks: list[np.ndarray] = []
    while len(peaks) < most:
        top = int(left.argmax())
        distance = np.abs(colours - colours[top]).max(axis=1)
        close = (distance <= apart / 2) & (left > 0)
        if peaks and left[close].sum() < least:
            break
        peaks.append(np.average(colours[close], axis=0, weights=left[close]))
        left[distance <= apart] = 0
        if left.max() <= 0:
            break
    return np.array(peaks)


def _lab(colours: np.ndarray) -> np.ndarray:
    """sRGB (N x 3, 0..255) to CIE Lab (D65)."""
    unit = colours / 255.0
    linear = np.where(unit > 0.04045, ((unit + 0.055) / 1.055) ** 2.4, unit / 12.92)
    xyz = linear @ np.array([[0.4124, 0.2126, 0.0193], [0.3576, 0.7152, 0.1192], [0.1805, 0.0722, 0.9505]])
    ratio = xyz / np.array([0.9505, 1.0, 1.089])
    root = np.where(ratio > 0.008856, np.cbrt(ratio), 7.787 * ratio + 16 / 116)
    return np.stack([116 * root[:, 1] - 16, 500 * (root[:, 0] - root[:, 1]), 200 * (root[:, 1] - root[:, 2])], axis=1)


_SHADE_NAMES = [name for name, shades in _SHADES.items() for _ in shades]
_SHADE_LAB = _lab(np.array([shade for shades in _SHADES.values() for shade in shades], float))
