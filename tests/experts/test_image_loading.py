"""Pictures of every shape and mode: one loader, the same pixels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from image_doubles import RED, encoded, size
from PIL import Image

from experts.images import ImageFault, ImageLimits, load_picture


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
    assert bitmap.rgb().tobytes() == png.rgb().tobytes()  # how they are compressed may differ
    assert png.sha256 == "423fe91a3c7e0ba70613730b1e81b175ef9870465df4d7767a720ffff343bb55"


def test_a_picture_can_be_cut_and_stays_within_limits():
    picture = load_picture(Image.new("RGB", (100, 100), (1, 2, 3)))
    assert size(picture.crop((10, 10, 60, 80))) == (50, 70)
    assert size(picture.crop((90, 90, 400, 400))) == (40, 40)  # clipped to 10x10, enlarged 4 times
    with pytest.raises(ImageFault, match="nothing inside"):
        picture.crop((200, 200, 300, 300))
