"""What a picture looks like in 1 kB: a perceptual hash to find its like, and a thumbnail to be sure.

The one idea: a hash of 256 bits (signs of the low frequencies of a 32x32 cosine transform) finds candidates among
all pictures at once; the thumbnails' correlation then tells copies (resized, recompressed, other formats) from
pictures that are only alike, which drawings often are.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from PIL import Image

SIDE = 32
_LOW = 16
WORDS = _LOW * _LOW // 64
"""Words of 64 bits in a hash."""
_FLAT = 2.0  # standard deviation of grey values below which a picture has no features to compare


@dataclass(frozen=True)
class Looks:
    """hash: uint64 [WORDS]. thumbnail: grey values, uint8 [SIDE * SIDE]. flat: one colour all over."""

    hash: np.ndarray
    thumbnail: np.ndarray
    flat: bool


def looks_of(image: Image.Image) -> Looks:
    """Of an RGB picture of any size."""
    # The gap: blocks of whole pixels are added up first, twice as fast as weighing every pixel.
    small = image.convert("L").resize((SIDE, SIDE), Image.Resampling.BOX, reducing_gap=2.0)
    grey = np.asarray(small, dtype=np.uint8)
    waves = _cosines()
    low = waves @ grey.astype(np.float32) @ waves.T
    low[0, 0] = 0.0  # brightness
    bits = (low > np.median(low)).ravel()
    return Looks(np.packbits(bits).view(np.uint64), grey.ravel(), bool(grey.std() < _FLAT))


def correlation(one: np.ndarray, other: np.ndarray) -> float:
    """Of two thumbnails, -1..1; 0 where one of them is of one colour."""
    a = one.astype(np.float32) - one.mean()
    b = other.astype(np.float32) - other.mean()
    size = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / size if size > 0 else 0.0


def distances(hashes: np.ndarray, one: np.ndarray) -> np.ndarray:
    """Differing bits of `one` [w] from each of `hashes` [n, w]: uint16 [n]. Fastest where `hashes` lies by columns."""
    total = np.zeros(len(hashes), np.uint16)
    for column, word in zip(hashes.T, one, strict=True):
        total += np.bitwise_count(column ^ word)
    return total


@lru_cache(maxsize=1)
def _cosines() -> np.ndarray:
    """The first rows of the orthonormal cosine transform (DCT-II) of `SIDE` values."""
    k = np.arange(_LOW)[:, None]
    n = np.arange(SIDE)[None, :]
    rows = np.cos(np.pi * (2 * n + 1) * k / (2 * SIDE)) * np.sqrt(2.0 / SIDE)
    rows[0] /= np.sqrt(2.0)
    return rows.astype(np.float32)
