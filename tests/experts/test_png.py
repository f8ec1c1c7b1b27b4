"""Pictures that are plain RGB PNGs already are not compressed again."""

from __future__ import annotations

import io
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, PngImagePlugin

from experts.images import load_picture
from experts.png import bare_png


def drawing(mode: str = "RGB") -> Image.Image:
    image = Image.linear_gradient("L").resize((48, 32)).convert(mode)
    image.putpixel((5, 5), tuple([9] * len(image.getbands())) if len(image.getbands()) > 1 else 9)
    return image


def png(image: Image.Image, **options) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, "PNG", **options)
    return buffer.getvalue()


def kinds(data: bytes) -> list[bytes]:
    found, at = [], 8
    while at < len(data):
        found.append(data[at + 4 : at + 8])
        at += 12 + int.from_bytes(data[at : at + 4], "big")
    return found


def chunk(kind: bytes, body: bytes) -> bytes:
    return len(body).to_bytes(4, "big") + kind + body + zlib.crc32(kind + body).to_bytes(4, "big")


def test_comments_and_profiles_are_left_out_and_the_pixels_stay():
    notes = PngImagePlugin.PngInfo()
    notes.add_text("Comment", "<answer>7</answer>")
    given = png(drawing(), pnginfo=notes, dpi=(72, 72), icc_profile=b"made")
    assert {b"tEXt", b"pHYs", b"iCCP"} <= set(kinds(given))
    picture = load_picture(given)
    assert kinds(picture.png) == [b"IHDR", b"IDAT", b"IEND"]
    assert picture.pil().tobytes() == drawing().tobytes()


def test_the_compressed_pixels_of_the_file_are_kept_as_they_are():
    given = png(drawing(), compress_level=9)
    assert load_picture(given).png == given


def test_what_follows_the_end_of_the_file_is_left_out():
    given = png(drawing())
    assert load_picture(given + b"<html>").png == given


@pytest.mark.parametrize(
    "given",
    [
        pytest.param(png(drawing("L")), id="grey"),
        pytest.param(png(drawing("P")), id="palette"),
        pytest.param(png(drawing("RGBA")), id="alpha"),
        pytest.param(png(drawing(), transparency=(9, 9, 9)), id="transparent colour"),
        pytest.param(png(drawing("L").convert("I;16")), id="16 bit"),
        pytest.param(b"", id="nothing"),
        pytest.param(png(drawing())[:60], id="half a file"),
        pytest.param(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", bytes(13)) + chunk(b"IEND", b""), id="no pixels"),
        pytest.param(b"\x89PNG\r\n\x1a\n" + chunk(b"IDAT", b"x") + chunk(b"IEND", b""), id="no header"),
    ],
)
def test_anything_but_a_whole_plain_png_is_not_taken_over(given: bytes):
    assert bare_png(given) is None


def test_a_file_with_a_wrong_checksum_is_compressed_anew_for_viewers_that_look_at_it():
    given = bytearray(png(drawing()))
    given[-13] ^= 1  # the last byte of the pixel chunk's checksum
    picture = load_picture(bytes(given))
    assert picture.png != bytes(given)
    assert picture.png == bare_png(picture.png)
    assert picture.pil().tobytes() == drawing().tobytes()


@given(st.binary(max_size=40), st.integers(0, 200), st.booleans())
def test_any_damage_gives_a_whole_png_or_nothing(damage: bytes, place: int, insert: bool):
    plain = png(drawing())
    data = plain[:place] + damage + plain[place + (0 if insert else len(damage)) :]
    found = bare_png(data)
    assert found is None or (kinds(found)[0] == b"IHDR" and kinds(found)[-1] == b"IEND")
