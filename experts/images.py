"""`Picture`: the one form in which images travel, and the one loader that makes it.

The one idea: whatever a picture came from (bytes, path, data URL, Pillow image, a parquet cell), after
`load_picture` it is RGB, upright, opaque and within limits, and everybody (policy, expert, cache, viewer)
sees the same pixels.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from PIL.BmpImagePlugin import BmpImageFile
from PIL.GifImagePlugin import GifImageFile
from PIL.JpegImagePlugin import JpegImageFile
from PIL.PngImagePlugin import PngImageFile
from PIL.PpmImagePlugin import PpmImageFile
from PIL.TiffImagePlugin import TiffImageFile
from PIL.WebPImagePlugin import WebPImageFile

from experts.data_url import decode_data_url, encode_data_url
from experts.image_files import read_image_file
from experts.image_limits import ImageFault, ImageLimits
from experts.image_pixels import to_rgb
from experts.png import bare_png

__all__ = ["ImageFault", "ImageLimits", "Picture", "load_picture", "load_pictures"]

# Formats with a safe decoder in Pillow; the rest (EPS starts a program) is refused.
_READERS = (
    PngImageFile,
    JpegImageFile,
    GifImageFile,
    WebPImageFile,
    BmpImageFile,
    TiffImageFile,
    PpmImageFile,
)
_FORMATS = tuple(str(reader.format) for reader in _READERS)

_COMPRESSION = 4  # zlib's level

_AGAIN = "the file is cut off or damaged: copy or download it again"
_SMALLER = "scale the image down"

_LIMITS = ImageLimits()


@dataclass(frozen=True)
class Picture:
    """A normalised image. Two pictures are equal when their pixels are.

    png: the RGB pixels as PNG. sha256: hex digest over size and pixels. source: where it came from, for
    messages. notes: what normalising did ("padded from 5x2000", "first of 2 frames").
    """

    png: bytes = field(repr=False, compare=False)
    width: int
    height: int
    sha256: str
    source: str = field(compare=False)
    notes: tuple[str, ...] = field(default=(), compare=False)

    def pil(self) -> Image.Image:
        """A fresh Pillow image, mode RGB."""
        image = Image.open(io.BytesIO(self.png), formats=("PNG",))
        image.load()
        return image

    def rgb(self) -> np.ndarray:
        """A fresh, writable array [height, width, 3], uint8."""
        return np.array(self.pil())

    def data_url(self) -> str:
        """The picture as `data:image/png;base64,...`."""
        return encode_data_url(self.png)

    def crop(self, box: tuple[float, float, float, float]) -> Picture:
        """The part inside (left, top, right, bottom), in pixels, clipped to the picture and normalised like
        any other. Raises ImageFault when nothing is left."""
        left, top = max(0, int(box[0])), max(0, int(box[1]))
        right, bottom = min(self.width, int(box[2])), min(self.height, int(box[3]))
        if right <= left or bottom <= top:
            raise ImageFault(f"nothing inside the box {tuple(box)} of a {self.width}x{self.height} picture")
        area = (left, top, right, bottom)
        return _picture(self.pil().crop(area), f"{self.source} {area}", _LIMITS, None)


def load_picture(
    source: Any,
    *,
    roots: Sequence[Path] = (),
    limits: ImageLimits = _LIMITS,
    where: str = "",
) -> Picture:
    """One picture from encoded bytes, a path, a data URL, a Pillow image, a `Picture`, a parquet cell
    ({"bytes", "path"}, bytes winning), or a list or array that holds exactly one of these.

    roots: folders that paths in data may reach (see `image_files`). where: put into messages ("row 17").
    Raises ImageFault, and nothing else, for every source that gives no picture.
    """
    place = where or None
    if isinstance(source, Picture):
        return source
    if isinstance(source, (list, tuple, np.ndarray)):
        items = _items(source, place)
        if len(items) != 1:
            fix = "give one image; `load_pictures` takes several"
            raise ImageFault(f"expected one image, found {len(items)}", where=place, fix=fix)
        return load_picture(items[0], roots=roots, limits=limits, where=where)
    if isinstance(source, Mapping):
        return _from_cell(source, roots, limits, where)
    if isinstance(source, Image.Image):
        return _picture(source, f"{source.mode} image in memory", limits, place)
    if isinstance(source, (bytes, bytearray, memoryview)):
        return _decode(bytes(source), f"{len(source)} bytes", limits, place)
    if isinstance(source, str) and source[:5].lower() == "data:":
        return _decode(decode_data_url(source, max_bytes=limits.max_bytes, where=place), "data URL", limits, place)
    if isinstance(source, (str, Path)):
        data = read_image_file(source, roots=roots, max_bytes=limits.max_bytes, where=place)
        return _decode(data, str(source), limits, place)
    raise ImageFault(
        f"no image in a value of type {type(source).__name__}",
        where=place,
        fix="give bytes, a path, a data URL, a Pillow image, or {'bytes': ..., 'path': ...}",
    )


def load_pictures(
    value: Any,
    *,
    roots: Sequence[Path] = (),
    limits: ImageLimits = _LIMITS,
    where: str = "",
) -> tuple[Picture, ...]:
    """All pictures of a row: None and an empty list are no pictures, a single source is one."""
    if value is None:
        return ()
    items = _items(value, where or None) if isinstance(value, (list, tuple, np.ndarray)) else [value]
    before = f"{where}, " if where else ""
    places = [where] if len(items) == 1 else [f"{before}image {i + 1}" for i in range(len(items))]
    return tuple(
        load_picture(item, roots=roots, limits=limits, where=place) for item, place in zip(items, places, strict=True)
    )


def _items(value: Any, where: str | None) -> list[Any]:
    if isinstance(value, np.ndarray):
        if value.dtype.kind not in "OU":  # a fixed-width bytes array has lost trailing zero bytes
            fix = "give a list of bytes, paths or data URLs, or a Pillow image"
            raise ImageFault(f"no images in an array of {value.dtype}", where=where, fix=fix)
        return list(value.ravel())
    return list(value)


def _from_cell(cell: Mapping[str, Any], roots: Sequence[Path], limits: ImageLimits, where: str) -> Picture:
    data, path = cell.get("bytes"), cell.get("path")
    if isinstance(data, (bytes, bytearray, memoryview)):
        return _decode(bytes(data), str(path) if path else f"{len(data)} bytes", limits, where or None)
    if data is None and isinstance(path, (str, Path)) and str(path):
        return load_picture(path, roots=roots, limits=limits, where=where)
    raise ImageFault(
        f"no image in a cell with keys {sorted(map(str, cell))}",
        where=where or None,
        fix="a cell holds 'bytes', or 'path' with 'bytes' empty",
    )


def _decode(data: bytes, source: str, limits: ImageLimits, where: str | None) -> Picture:
    if not data:
        raise ImageFault(f"empty image file: {source}", where=where, fix="copy or download it again")
    if len(data) > limits.max_bytes:
        raise ImageFault(f"image is larger than {limits.max_bytes} bytes: {source}", where=where, fix=_SMALLER)
    try:
        image = Image.open(io.BytesIO(data), formats=_FORMATS)
    except Image.DecompressionBombError:
        what = f"image has more than {limits.max_pixels} pixels: {source}"
        raise ImageFault(what, where=where, fix=_SMALLER) from None
    except Exception as error:  # Pillow's readers fail in many ways on broken headers
        reason = "unknown or broken image format" if isinstance(error, OSError) else f"broken image: {error}"
        fix = f"give a whole file in one of the formats {', '.join(_FORMATS)}"
        raise ImageFault(f"{reason}: {source}", where=where, fix=fix) from None
    with image:
        return _picture(image, source, limits, where, data if image.format == "PNG" else None)


def _picture(
    image: Image.Image, source: str, limits: ImageLimits, where: str | None, encoded: bytes | None = None
) -> Picture:
    """`encoded`: the PNG that `image` was opened from."""
    width, height = image.size
    if width * height > limits.max_pixels:
        what = f"image of {width}x{height} has more than {limits.max_pixels} pixels: {source}"
        raise ImageFault(what, where=where, fix=_SMALLER)
    if width < 1 or height < 1:
        what = f"image of {width}x{height} has no pixels: {source}"
        raise ImageFault(what, where=where, fix="give an image with at least one pixel")
    try:
        rgb, notes = to_rgb(image, limits)
        pixels = rgb.tobytes()
        # Pixels alone: a colour profile or comment of the original must not change what a viewer shows.
        png = bare_png(encoded) if encoded is not None and not notes else None
        if png is None:
            buffer = io.BytesIO()
            Image.frombytes("RGB", rgb.size, pixels).save(buffer, "PNG", compress_level=_COMPRESSION)
            png = buffer.getvalue()
    except ImageFault as fault:
        raise ImageFault(f"{fault.what}: {source}", where=where, fix=fault.fix) from None
    except Exception as error:  # as above: half a file, a broken EXIF block, a decoder's own fault
        raise ImageFault(f"broken image: {source}: {error}", where=where, fix=_AGAIN) from None
    digest = hashlib.sha256(b"%dx%d RGB\n" % rgb.size + pixels).hexdigest()
    return Picture(png, rgb.width, rgb.height, digest, source, tuple(notes))
