"""One look at an encoded picture: is it whole, how large will it be seen, what does it look like.

The one idea: the file's own bytes are kept where the loader of `experts.images` would change no pixel, so a mixture
of photographs stays as small as its sources; anything else is normalised here, once.
"""

from __future__ import annotations

import io
from dataclasses import dataclass, field

import xxhash
from PIL import Image

from experts.images import ImageFault, ImageLimits, load_picture
from train.data.looks import Looks, looks_of

MEASURED = 2
"""Changes with the digest and the looks: what was measured otherwise can't be compared."""
_AS_IT_IS = ("JPEG", "PNG", "WEBP")
_FORMATS = ("PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF", "PPM")


@dataclass(frozen=True)
class Seen:
    """data: bytes to store. width, height: pixels as the policy sees them. digest: 16 bytes over the pixels; equal
    for equal pictures, however they are encoded."""

    data: bytes = field(repr=False)
    width: int
    height: int
    digest: bytes
    looks: Looks = field(repr=False)


def look_at(data: bytes, limits: ImageLimits, where: str) -> Seen:
    """Decode a picture wholly and measure it. Raises ImageFault naming `where`: broken, empty, over the limits."""
    plain = _plain(data, limits)
    if plain is None:
        picture = load_picture(data, limits=limits, where=where)
        data, plain = picture.png, picture.pil()
    # Fifteen times as fast as SHA-256. Whoever makes two pictures of one digest has his own row left out.
    digest = xxhash.xxh3_128(b"%dx%d" % plain.size)
    digest.update(plain.tobytes())
    return Seen(data, plain.width, plain.height, digest.digest(), looks_of(plain))


def _plain(data: bytes, limits: ImageLimits) -> Image.Image | None:
    """The decoded picture where it is RGB, upright, one frame and within limits; None where the loader has to say
    what is wrong, or to change something."""
    if not data or len(data) > limits.max_bytes:
        return None
    try:
        image = Image.open(io.BytesIO(data), formats=_FORMATS)
        width, height = image.size
        if image.format not in _AS_IT_IS or image.mode != "RGB" or width * height > limits.max_pixels:
            return None
        if min(width, height) < limits.min_side or max(width, height) > limits.max_ratio * min(width, height):
            return None
        if "transparency" in image.info or getattr(image, "n_frames", 1) > 1:
            return None
        if image.getexif().get(0x0112, 1) in range(2, 9):
            return None
        image.load()
    except Exception:  # whatever is wrong, the loader says it in words
        return None
    return image


__all__ = ["ImageFault", "Seen", "look_at"]
