"""Which pictures and texts count as the same one."""

from __future__ import annotations

import io

import pytest
from PIL import Image

from experts.images import ImageFault, ImageLimits, load_picture
from tests.train.made_mixture import encoded, photo
from train.data.evaluated import EvaluatedPicture, EvaluatedRow, LeakIndex
from train.data.looks import looks_of
from train.data.picture import look_at
from train.data.wording import normal_words

LIMITS = ImageLimits()
LONG = (
    "Which of the four treatments shown in the lower panel keeps most cells alive after two days in the dish "
    "without any serum"
)


def index_of(image: Image.Image, text: str) -> LeakIndex:
    seen = look_at(encoded(image, "PNG"), LIMITS, "evaluated")
    picture = EvaluatedPicture(seen.digest, seen.looks.hash.tobytes(), seen.looks.thumbnail.tobytes())
    rows = [EvaluatedRow("vstar", "vstar/1", " ".join(normal_words(text)), (picture,))]
    return LeakIndex(rows, picture_bits=96, least_correlation=0.955, text_words=20)


def kind(index: LeakIndex, question: str, data: bytes) -> str | None:
    seen = look_at(data, LIMITS, "row")
    found = index.find(question, None, [seen.digest], [seen.looks])
    return None if found is None else found.kind


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (encoded(photo(1, (300, 200)), "PNG"), "same picture"),
        (encoded(photo(1, (300, 200)), "WEBP", lossless=True), "same picture"),
        (encoded(photo(1, (300, 200)).resize((150, 100))), "picture alike"),
        (encoded(photo(1, (300, 200)).resize((517, 341))), "picture alike"),
        (encoded(photo(1, (300, 200)), quality=15), "picture alike"),
        (encoded(photo(2, (300, 200)), "PNG"), None),
    ],
    ids=["exact", "another format", "half size", "enlarged", "recompressed", "another picture"],
)
def test_copies_of_an_evaluated_picture_are_found_whatever_is_asked(data: bytes, expected: str | None) -> None:
    assert kind(index_of(photo(1, (300, 200)), "What is it?"), "Something else entirely?", data) == expected


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        (LONG.upper() + "?!", "same text"),
        (LONG.replace("most", "the most"), "text alike"),
        ("How many people are there?", None),
        ("Which " + " ".join(f"other{i}" for i in range(25)), None),
    ],
    ids=["other case", "a word more", "short", "long and different"],
)
def test_a_long_text_gives_a_row_away_and_a_short_one_does_not(question: str, expected: str | None) -> None:
    index = index_of(photo(1), LONG)
    assert kind(index, question, encoded(photo(7))) == expected
    short = index_of(photo(1), "How many people are there?")
    assert kind(short, "HOW MANY people are there", encoded(photo(7))) is None


def test_pictures_of_one_colour_are_the_same_only_when_their_pixels_are() -> None:
    assert looks_of(Image.new("RGB", (40, 40), (9, 9, 9))).flat
    white = Image.new("RGB", (64, 64), (255, 255, 255))
    evaluated = EvaluatedPicture(look_at(encoded(white, "PNG"), LIMITS, "").digest, None, None)
    rows = [EvaluatedRow("vstar", "vstar/1", "", (evaluated,))]
    index = LeakIndex(rows, picture_bits=256, least_correlation=0.1, text_words=20)
    assert kind(index, "?", encoded(white, "PNG")) == "same picture"
    assert kind(index, "?", encoded(white.resize((80, 80)), "PNG")) is None


def test_chinese_and_full_width_texts_are_compared_by_characters() -> None:
    assert normal_words("图中有几个肺?ＡＢ") == ["图", "中", "有", "几", "个", "肺", "ab"]


def test_a_plain_jpeg_is_stored_as_it_is_and_reads_back_with_the_pixels_that_were_measured() -> None:
    data = encoded(photo(3))
    seen = look_at(data, LIMITS, "row 1")
    assert seen.data == data
    assert (seen.width, seen.height) == (96, 64)
    back = load_picture(seen.data)
    assert look_at(back.png, LIMITS, "").digest == seen.digest


def test_a_turned_or_transparent_picture_is_stored_as_training_will_see_it() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    turned = look_at(encoded(photo(3), exif=exif), LIMITS, "row 1")
    assert (turned.width, turned.height) == (64, 96)
    assert Image.open(io.BytesIO(turned.data)).format == "PNG"
    clear = look_at(encoded(Image.new("RGBA", (40, 40)), "PNG"), LIMITS, "row 2")
    assert load_picture(clear.data).pil().getpixel((5, 5)) == (255, 255, 255)


@pytest.mark.parametrize("data", [b"", b"no picture", encoded(photo(1, (200, 200)), quality=95)[:2000]])
def test_a_broken_picture_is_a_fault_that_names_the_row(data: bytes) -> None:
    with pytest.raises(ImageFault) as fault:
        look_at(data, LIMITS, "chartqa/17")
    assert fault.value.where == "chartqa/17"


def test_a_picture_over_the_budget_is_refused_before_it_is_decoded() -> None:
    with pytest.raises(ImageFault, match="more than 5000 pixels"):
        look_at(encoded(photo(1)), ImageLimits(max_pixels=5000), "row")
