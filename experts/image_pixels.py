"""From what Pillow opened to pixels that a vision model takes: RGB, upright, opaque, not too narrow."""

from __future__ import annotations

import math

import numpy as np
from PIL import Image, ImageOps

from experts.image_limits import ImageFault, ImageLimits

_TURNED = range(2, 9)  # EXIF orientations that ask for a turn or a mirror image; other values mean nothing
_ALPHA_MODES = ("RGBA", "LA", "PA", "RGBa", "La")
_CHANNELS_OF_PREMULTIPLIED = {"RGBa": "RGBA", "La": "LA"}


def to_rgb(image: Image.Image, limits: ImageLimits) -> tuple[Image.Image, list[str]]:
    """The first frame: EXIF turn applied, on the background, 8 bit, within limits; with what was done."""
    notes = []
    frames = getattr(image, "n_frames", 1)
    if frames > 1:
        image.seek(0)
        notes.append(f"first of {frames} frames")
    turned = image.getexif().get(0x0112, 1) in _TURNED
    upright = ImageOps.exif_transpose(image)  # a copy, also where there is nothing to turn
    if turned:
        notes.append("turned as EXIF says")
    upright, fitted = fit(_opaque(upright, limits.background), limits)
    return upright, notes + fitted


def fit(image: Image.Image, limits: ImageLimits) -> tuple[Image.Image, list[str]]:
    """Enlarge and pad an RGB image until it meets `limits`. Padding goes right and below, so that coordinates
    measured on the original stay right. Raises ImageFault when padding would pass `max_pixels`."""
    notes = []
    long_side = max(image.size)
    if long_side < limits.min_side:
        factor = math.ceil(limits.min_side / long_side)
        image = image.resize((image.width * factor, image.height * factor), Image.Resampling.NEAREST)
        notes.append(f"enlarged {factor} times")
        long_side *= factor
    shortest = max(limits.min_side, math.ceil(long_side / limits.max_ratio))
    width, height = max(image.width, shortest), max(image.height, shortest)
    if width * height > limits.max_pixels:
        what = f"a shape of {image.width}x{image.height} is too extreme to be padded"
        raise ImageFault(what, fix="cut the image into parts")
    if (width, height) != image.size:
        sheet = Image.new("RGB", (width, height), limits.background)
        sheet.paste(image, (0, 0))
        notes.append(f"padded from {image.width}x{image.height}")
        image = sheet
    return image, notes


def _opaque(image: Image.Image, background: tuple[int, int, int]) -> Image.Image:
    if image.mode == "RGB" and "transparency" not in image.info:
        return image
    if image.mode.startswith("I") or image.mode == "F":
        return _deep_grey(image, background)
    if image.mode not in _ALPHA_MODES and "transparency" not in image.info:
        return image.convert("RGB")
    plain = _CHANNELS_OF_PREMULTIPLIED.get(image.mode)
    with_alpha = (image.convert(plain) if plain else image).convert("RGBA")
    sheet = Image.new("RGBA", with_alpha.size, (*background, 255))
    return Image.alpha_composite(sheet, with_alpha).convert("RGB")


def _deep_grey(image: Image.Image, background: tuple[int, int, int]) -> Image.Image:
    values = np.asarray(image)
    rgb = Image.fromarray(_to_8_bit(values, image.mode)).convert("RGB")
    clear = image.info.get("transparency")
    if isinstance(clear, int):  # one grey value that stands for "nothing here"
        rgb.paste(background, None, Image.fromarray(((values == clear) * 255).astype(np.uint8)))
    return rgb


def _to_8_bit(values: np.ndarray, mode: str) -> np.ndarray:
    """Scale deep grey values to 0..255. 16 bit by its full range; 32 bit and floats have no agreed range:
    they count as 8 bit, 16 bit or 0..1 where all values fit that, and are stretched from least to greatest
    if not."""
    grey = np.nan_to_num(values.astype(np.float64))
    low, high = float(grey.min()), float(grey.max())
    if mode.startswith("I;16") or (mode == "I" and low >= 0 and 255 < high <= 65535):
        grey = grey / 257.0
    elif mode == "F" and low >= 0 and high <= 1:
        grey = grey * 255.0
    elif low < 0 or high > 255:
        grey = (grey - low) * (255.0 / (high - low))
    return np.rint(grey).astype(np.uint8)
