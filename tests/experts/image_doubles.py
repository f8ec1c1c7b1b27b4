"""Help for the tests of pictures: files made on the spot."""

from __future__ import annotations

import io

from PIL import Image

from experts.images import Picture


def encoded(image: Image.Image, kind: str = "PNG", **options: object) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def size(picture: Picture) -> tuple[int, int]:
    return picture.width, picture.height


RED = encoded(Image.new("RGB", (40, 40), (200, 10, 10)))
