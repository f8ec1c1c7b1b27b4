"""Pictures from every kind of source: one loader, the same pixels, one kind of fault."""

from __future__ import annotations

import base64
import io
import os
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from experts.data_url import decode_data_url, encode_data_url, holds_image_data
from experts.images import ImageFault, ImageLimits, Picture, load_picture, load_pictures


def encoded(image: Image.Image, kind: str = "PNG", **options: object) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def size(picture: Picture) -> tuple[int, int]:
    return picture.width, picture.height


RED = encoded(Image.new("RGB", (40, 40), (200, 10, 10)))


@pytest.mark.parametrize(
    ("given_size", "expected"),
    [
        ((1, 1), (32, 32)),
        ((26, 28), (52, 56)),
        ((10, 1), (40, 32)),
        ((500, 19), (500, 32)),
        ((332, 27), (332, 32)),
        ((5, 2000), (100, 2000)),
        ((690, 15420), (771, 15420)),
        ((64, 48), (64, 48)),
    ],
)
def test_tiny_and_narrow_pictures_are_enlarged_or_padded(given_size, expected):
    picture = load_picture(Image.new("RGB", given_size, (7, 8, 9)))
    assert size(picture) == expected
    assert picture.rgb()[0, 0].tolist() == [7, 8, 9]


def test_padding_is_white_and_lies_right_and_below():
    picture = load_picture(Image.new("RGB", (500, 19), (0, 0, 0)))
    pixels = picture.rgb()
    assert pixels[18, 499].tolist() == [0, 0, 0]
    assert pixels[19, 0].tolist() == [255, 255, 255]
    assert picture.notes == ("padded from 500x19",)


def test_a_shape_whose_padding_would_pass_the_pixel_limit_is_refused():
    with pytest.raises(ImageFault, match="too extreme"):
        load_picture(Image.new("L", (100_000, 1)))


def test_exif_turn_is_applied_and_the_tag_is_gone():
    image = Image.new("RGB", (40, 20), (255, 255, 255))
    image.paste((255, 0, 0), (0, 0, 10, 20))  # red at the left of what is stored
    exif = Image.Exif()
    exif[0x0112] = 6  # shown turned clockwise: the left becomes the top
    picture = load_picture(encoded(image, "JPEG", exif=exif, quality=95))
    assert size(picture) == (32, 40)  # 20 wide, padded to the least side
    red, white = picture.rgb()[3, 10], picture.rgb()[35, 10]
    assert red[0] > 200 and red[1] < 60
    assert white[1] > 200
    assert picture.pil().getexif().get(0x0112) is None


UPPER_LEFT_GOES = {1: "ul", 2: "ur", 3: "lr", 4: "ll", 5: "ul", 6: "ur", 7: "lr", 8: "ll"}


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "TIFF"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_every_orientation_is_applied_in_every_format_that_has_one(kind: str, orientation: int):
    image = Image.new("RGB", (64, 40), (255, 255, 255))
    image.paste((255, 0, 0), (0, 0, 32, 20))
    exif = Image.Exif()
    exif[0x0112] = orientation
    picture = load_picture(encoded(image, kind, exif=exif))
    assert size(picture) == ((64, 40) if orientation < 5 else (40, 64))
    right, low = picture.width - 6, picture.height - 6
    corners = {"ul": (5, 5), "ur": (5, right), "ll": (low, 5), "lr": (low, right)}
    red = [name for name, (y, x) in corners.items() if picture.rgb()[y, x, 1] < 100]
    assert red == [UPPER_LEFT_GOES[orientation]]
    assert picture.notes == (() if orientation == 1 else ("turned as EXIF says",))


def test_an_orientation_that_does_not_exist_and_a_broken_exif_block_change_nothing():
    exif = Image.Exif()
    exif[0x0112] = 9
    picture = load_picture(encoded(Image.new("RGB", (64, 40)), "JPEG", exif=exif))
    assert (size(picture), picture.notes) == ((64, 40), ())
    garbage = b"\xff\xe1\x00\x1cExif\x00\x00" + b"\x12" * 20
    plain = encoded(Image.new("RGB", (64, 40)), "JPEG")
    assert load_picture(plain[:2] + garbage + plain[2:]) == load_picture(plain)


def _with_transparency() -> dict[str, Image.Image]:
    rgba = Image.new("RGBA", (40, 40), (0, 0, 0, 0))
    rgba.paste((0, 0, 0, 255), (10, 10, 20, 20))
    palette = Image.new("P", (40, 40), 0)
    palette.putpalette([0, 0, 0, 0, 0, 0])
    palette.paste(1, (10, 10, 20, 20))
    palette.info["transparency"] = 0
    return {"RGBA": rgba, "LA": rgba.convert("LA"), "P": palette}


@pytest.mark.parametrize("mode", ["RGBA", "LA", "P"])
def test_black_ink_on_transparency_stays_readable_on_white(mode):
    pixels = load_picture(encoded(_with_transparency()[mode])).rgb()
    assert pixels[0, 0].tolist() == [255, 255, 255]
    assert pixels[15, 15].tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("image", "clear"),
    [
        (Image.new("L", (40, 40), 0), 0),
        (Image.new("RGB", (40, 40), (1, 2, 3)), (1, 2, 3)),
        (Image.fromarray(np.full((40, 40), 300, dtype=np.uint16)), 300),
    ],
)
def test_one_value_that_stands_for_transparent_becomes_white(image: Image.Image, clear):
    assert load_picture(encoded(image, transparency=clear)).rgb()[5, 5].tolist() == [255, 255, 255]


def test_the_transparent_part_of_a_gif_becomes_white():
    image = Image.new("RGBA", (40, 40), (0, 0, 0, 0))
    image.paste((10, 20, 30, 255), (0, 0, 20, 40))
    pixels = load_picture(encoded(image, "GIF")).rgb()
    assert (pixels[5, 5].tolist(), pixels[5, 35].tolist()) == ([10, 20, 30], [255, 255, 255])


def test_the_background_can_be_chosen():
    limits = ImageLimits(background=(0, 128, 255))
    picture = load_picture(Image.new("RGBA", (40, 40), (0, 0, 0, 0)), limits=limits)
    assert picture.rgb()[5, 5].tolist() == [0, 128, 255]


def test_half_transparent_ink_is_mixed_with_white():
    picture = load_picture(Image.new("RGBA", (40, 40), (0, 0, 0, 128)))
    assert picture.rgb()[0, 0].tolist() == [127, 127, 127]


def test_16_bit_grey_is_scaled_not_clipped():
    values = np.full((40, 40), 300, dtype=np.uint16)
    values[:, 20:] = 40000
    pixels = load_picture(encoded(Image.fromarray(values))).rgb()
    assert pixels[0, 0].tolist() == [1, 1, 1]
    assert pixels[0, 30].tolist() == [156, 156, 156]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([0.0, 1.0], [0, 255]),
        ([0.0, 200.0], [0, 200]),
        ([-1.0, 1.0], [0, 255]),
        ([float("nan"), 255.0], [0, 255]),
    ],
)
def test_float_grey_keeps_its_range(values, expected):
    image = Image.fromarray(np.repeat(np.array([values], dtype=np.float32), 32, axis=0).repeat(16, axis=1))
    pixels = load_picture(encoded(image, "TIFF")).rgb()
    assert [int(pixels[0, 0, 0]), int(pixels[0, 31, 0])] == expected


@pytest.mark.parametrize("kind", ["TIFF", "JPEG"])
def test_cmyk_becomes_rgb(kind: str):
    picture = load_picture(encoded(Image.new("CMYK", (40, 40), (0, 255, 255, 0)), kind))
    assert picture.rgb()[0, 0].tolist() == [255, 0, 0]


@pytest.mark.parametrize("kind", ["GIF", "PNG", "WEBP", "MPO"])
def test_first_frame_of_several_is_taken_and_noted(kind: str):
    first, second = Image.new("RGB", (40, 40), (255, 0, 0)), Image.new("RGB", (40, 40), (0, 0, 255))
    picture = load_picture(encoded(first, kind, save_all=True, append_images=[second]))
    assert picture.rgb()[0, 0].tolist() == pytest.approx([255, 0, 0], abs=2)
    assert picture.notes == ("first of 2 frames",)


def test_the_content_decides_whatever_the_file_is_called(tmp_path: Path):
    (tmp_path / "photo.jpg").write_bytes(RED)
    picture = load_picture("photo.jpg", roots=[tmp_path])
    assert picture.data_url().startswith("data:image/png;base64,")
    assert picture.png[:8] == b"\x89PNG\r\n\x1a\n"


def test_the_same_pixels_give_the_same_picture_whatever_held_them():
    image = Image.new("RGB", (40, 40), (200, 10, 10))
    bitmap, png = load_picture(encoded(image, "BMP")), load_picture(RED)
    assert bitmap == png == load_picture(image) == load_picture(png)
    assert bitmap.png == png.png
    assert png.sha256 == "423fe91a3c7e0ba70613730b1e81b175ef9870465df4d7767a720ffff343bb55"


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


def test_a_picture_can_be_cut_and_stays_within_limits():
    picture = load_picture(Image.new("RGB", (100, 100), (1, 2, 3)))
    assert size(picture.crop((10, 10, 60, 80))) == (50, 70)
    assert size(picture.crop((90, 90, 400, 400))) == (40, 40)  # clipped to 10x10, enlarged 4 times
    with pytest.raises(ImageFault, match="nothing inside"):
        picture.crop((200, 200, 300, 300))


def test_every_shape_of_parquet_cell_gives_the_same_picture(tmp_path: Path):
    (tmp_path / "red.png").write_bytes(RED)
    cells = [
        {"bytes": RED},
        {"bytes": RED, "path": "elsewhere.png"},
        {"path": "red.png"},
        {"bytes": None, "path": "red.png"},
        "red.png",
        ["red.png"],
        [{"bytes": RED, "path": None}],
        np.array([{"bytes": RED}], dtype=object),
        np.array(["red.png"]),
        str(tmp_path / "red.png"),
        RED,
        bytearray(RED),
        encode_data_url(RED),
    ]
    pictures = [load_picture(cell, roots=[tmp_path]) for cell in cells]
    assert {picture.sha256 for picture in pictures} == {load_picture(RED).sha256}


def test_a_relative_path_is_found_under_the_first_root_that_holds_it(tmp_path: Path):
    for name, colour in (("b", 10), ("c", 20)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x.png").write_bytes(encoded(Image.new("L", (40, 40), colour)))
    roots = [tmp_path / "a", tmp_path / "b", tmp_path / "c"]
    assert load_picture("x.png", roots=roots).rgb()[0, 0, 0] == 10


def test_no_images_is_an_empty_tuple_and_an_unknown_shape_a_fault_with_the_row():
    assert load_pictures(None) == ()
    assert load_pictures([]) == ()
    assert len(load_pictures([RED, {"bytes": RED}])) == 2
    assert len(load_pictures(RED)) == 1
    for shape in (42, {"url": "x"}, {"bytes": None, "path": None}, [[]], np.zeros(3)):
        with pytest.raises(ImageFault) as caught:
            load_pictures([RED, shape] if not isinstance(shape, np.ndarray) else shape, where="row 3")
        assert "row 3" in str(caught.value)


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        "file:///etc/passwd",
        "../../secret.png",
        "http://169.254.169.254/x.png",
        "link.png",
        "../out.png",
        "folder/../../out.png",
        "file:out.png",
        "HTTP://localhost/x.png",
        "//169.254.169.254/x.png",
    ],
)
def test_data_cannot_reach_files_outside_the_roots(tmp_path: Path, path: str):
    root = tmp_path / "root"
    root.mkdir()
    (tmp_path / "out.png").write_bytes(RED)
    (tmp_path / "middle.png").symlink_to(tmp_path / "out.png")
    (root / "link.png").symlink_to(tmp_path / "middle.png")
    (root / "folder").mkdir()
    for cell in (path, {"bytes": None, "path": path}, [path], np.array([path])):
        with pytest.raises(ImageFault):
            load_picture(cell, roots=[root])


def test_a_pipe_inside_the_roots_is_refused_without_waiting_for_it(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe.png")
    with pytest.raises(ImageFault, match="not a regular file"):
        load_picture("pipe.png", roots=[tmp_path])


def test_without_roots_text_paths_are_refused_and_path_objects_opened(tmp_path: Path):
    file = tmp_path / "red.png"
    file.write_bytes(RED)
    with pytest.raises(ImageFault, match="without a root folder"):
        load_picture(str(file))
    assert load_picture(file) == load_picture(RED)


@pytest.mark.parametrize("path", ["missing.png", "a\0b.png", "x" * 5000, "folder", "ring.png"])
def test_unreadable_paths_are_image_faults(tmp_path: Path, path: str):
    (tmp_path / "folder").mkdir()
    (tmp_path / "ring.png").symlink_to(tmp_path / "ring.png")
    with pytest.raises(ImageFault):
        load_picture(path, roots=[tmp_path])


def test_data_urls_round_trip():
    assert decode_data_url(encode_data_url(RED), max_bytes=10_000) == RED


def test_a_line_break_inside_and_a_wrong_type_in_the_head_do_no_harm():
    text = base64.b64encode(RED).decode()
    url = f"data:image/jpeg;base64,{text[:40]}\n{text[40:]}"
    assert load_picture(url) == load_picture(RED)


@pytest.mark.parametrize(
    ("url", "words"),
    [
        (base64.b64encode(RED * 3).decode(), "base64 text without its head"),
        ("data:image/png;base64," + base64.b64encode(RED).decode().rstrip("=") + "A===", "not valid base64"),
        ("data:image/png;base64," + encode_data_url(RED), "head twice"),
        ("data:image/png,rawbytes", "not a base64 data URL"),
        ("data:image/png;base64," + "A" * 100_000, "larger than the limit"),
        ("data:image/png;base64," + base64.b64encode(RED).decode().replace("/", "_").replace("+", "-"), "not valid"),
        ("data:image/png;base64,iVBORw0", "not valid base64"),
        ("data:image/png;base64,", "empty image file"),
        ("data:text/html;base64," + base64.b64encode(b"<script>").decode(), "unknown or broken image format"),
    ],
)
def test_malformed_data_urls_are_refused(url, words):
    with pytest.raises(ImageFault, match=words):
        load_picture(url, limits=ImageLimits(max_bytes=20_000))


def test_image_data_pasted_into_words_is_noticed():
    assert holds_image_data("look: data:image/png;base64,iVBORw0K")
    assert holds_image_data("A" * 600)
    assert not holds_image_data("How many circles are in the picture? " * 40)


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
