"""Files that are no usable picture: one kind of fault, whatever is wrong with them."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from image_doubles import RED, encoded, size
from PIL import Image

from experts.images import ImageFault, ImageLimits, load_picture
from maestro.cli.app import run


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "empty image file"),
        (b"not an image at all", "unknown or broken image format"),
        (RED[:60], "broken image"),
        (encoded(Image.effect_noise((80, 80), 90), "JPEG")[:700], "broken image"),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 40 40\n", "unknown or broken image format"),
    ],
)
def test_broken_files_are_named_with_their_row(data, words):
    with pytest.raises(ImageFault, match=words) as caught:
        load_picture({"bytes": data, "path": "a/b.jpg"}, where="row 17")
    assert "a/b.jpg" in str(caught.value)
    assert "row 17" in str(caught.value)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("half.jpg", encoded(Image.effect_noise((80, 80), 90), "JPEG")[:700], "broken image"),
        ("nothing.png", b"", "empty image file"),
        ("words.png", b"<html>404</html>", "unknown or broken image format"),
        ("missing.png", None, "no such image"),
    ],
)
def test_an_unusable_file_is_named_with_its_row(tmp_path: Path, name: str, content: bytes | None, words: str):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    for cell in (name, {"path": name}, {"bytes": None, "path": name}):
        with pytest.raises(ImageFault, match=words) as caught:
            load_picture(cell, roots=[tmp_path], where="row 17 (id q-4)")
        assert name in str(caught.value)
        assert "row 17 (id q-4)" in str(caught.value)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("half.jpg", encoded(Image.effect_noise((80, 80), 90), "JPEG")[:700], "broken image: "),
        ("half.png", encoded(Image.effect_noise((80, 80), 90), "PNG")[:700], "broken image: "),
        ("nothing.png", b"", "empty image file: "),
        ("words.png", b"<html>404</html>", "unknown or broken image format: "),
        ("folder", None, "not a regular file: "),
    ],
)
def test_a_file_of_the_command_line_without_a_picture_gets_a_way_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, content: bytes | None, message: str
):
    file = tmp_path / name
    file.mkdir() if content is None else file.write_bytes(content)
    assert run(["answer", "--image", str(file), "--question", "How many?"]) == 2
    said = capsys.readouterr().err.splitlines()
    assert said[0].startswith(f"error: {message}")
    assert str(file) in said[0]
    assert said[1:] == [
        "  where: --image",
        {
            "half.jpg": "  fix: the file is cut off or damaged: copy or download it again",
            "half.png": "  fix: the file is cut off or damaged: copy or download it again",
            "nothing.png": "  fix: copy or download it again",
            "words.png": "  fix: give a whole file in one of the formats PNG, JPEG, GIF, WEBP, BMP, TIFF, PPM",
            "folder": "  fix: give a file instead of a folder",
        }[name],
    ]


def test_a_shape_that_cannot_be_padded_keeps_its_way_out_apart_from_the_source():
    with pytest.raises(ImageFault) as caught:
        load_picture(encoded(Image.new("L", (40_000, 1))), limits=ImageLimits(max_pixels=1_000_000), where="row 3")
    assert (caught.value.what.split(": ")[0], caught.value.where, caught.value.fix) == (
        "a shape of 40000x1 is too extreme to be padded",
        "row 3",
        "cut the image into parts",
    )


def test_a_huge_one_colour_file_is_refused_before_decoding():
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", 20_000, 20_000, 1, 0, 0, 0, 0)  # one bit for each pixel
    rows = zlib.compress(bytes(2501 * 20_000), 1)
    huge = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")
    with pytest.raises(ImageFault, match="more than 40000000 pixels"):
        load_picture(huge)


def test_the_pixel_limit_holds_for_files_and_images_in_memory():
    image = Image.new("RGB", (50, 50))
    for source in (image, encoded(image)):
        with pytest.raises(ImageFault, match="image of 50x50 has more than 2000 pixels"):
            load_picture(source, limits=ImageLimits(max_pixels=2000))
    with pytest.raises(ImageFault, match="no pixels"):
        load_picture(Image.new("RGB", (0, 5)))


def test_a_file_over_the_byte_limit_is_refused(tmp_path: Path):
    (tmp_path / "big.png").write_bytes(RED)
    limits = ImageLimits(max_bytes=50)
    with pytest.raises(ImageFault, match="larger than 50 bytes"):
        load_picture(RED, limits=limits)
    with pytest.raises(ImageFault, match="the limit is 50"):
        load_picture("big.png", roots=[tmp_path], limits=limits)


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=300))
def test_random_bytes_give_a_picture_or_an_image_fault(data: bytes):
    try:
        load_picture(data)
    except ImageFault:
        pass


GIF = encoded(Image.new("P", (40, 40), 1), "GIF")
TIFF = encoded(Image.new("L", (40, 40), 9), "TIFF")
JPEG = encoded(Image.new("RGB", (40, 40), (9, 9, 9)), "JPEG")
WEBP = encoded(Image.new("RGB", (40, 40), (9, 9, 9)), "WEBP")


@settings(max_examples=300, deadline=None)
@given(st.sampled_from([RED, GIF, TIFF, JPEG, WEBP]), st.integers(0, 10_000), st.binary(min_size=1, max_size=8))
def test_damaged_files_give_a_picture_or_an_image_fault(data: bytes, place: int, damage: bytes):
    place %= len(data)
    try:
        picture = load_picture(data[:place] + damage + data[place + len(damage) :])
    except ImageFault:
        return
    assert min(size(picture)) >= 32


@settings(max_examples=200, deadline=None)
@given(st.one_of(st.text(max_size=60), st.none(), st.integers(), st.lists(st.text(max_size=5), max_size=3)))
def test_any_value_gives_a_picture_or_an_image_fault(value):
    with pytest.raises(ImageFault):
        load_picture(value)
