"""The embedded tools: texts read once and in place, shapes with boxes, enlarged parts."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from PIL import Image, ImageDraw, ImageFont

from experts.images import Picture, load_picture
from experts.tools.detect import DetectTool
from experts.tools.ocr import OcrTool
from experts.tools.zoom import ZoomTool


@pytest.fixture(scope="module")
def ocr() -> OcrTool:
    return OcrTool()


def written(*words: tuple[str, int, int], size: tuple[int, int] = (260, 200)) -> Picture:
    import matplotlib

    image = Image.new("RGB", size, "white")
    draw = ImageDraw.Draw(image)
    font = ImageFont.truetype(str(Path(matplotlib.get_data_path()) / "fonts/ttf/DejaVuSans.ttf"), 15)
    for word, x, y in words:
        draw.text((x, y), word, fill="black", font=font, anchor="mm")
    return load_picture(image)


def test_ocr_reads_words_and_numbers_in_place(ocr: OcrTool) -> None:
    result = ocr.run(written(("Kalomi", 70, 40), ("12.5", 190, 150)))
    assert result.text == "Kalomi\n12.5"
    boxes = [entry["box"] for entry in result.data]
    assert boxes[0][0] < 70 < boxes[0][2] and boxes[0][1] < 40 < boxes[0][3]
    assert boxes[1][0] < 190 < boxes[1][2] and boxes[1][1] < 150 < boxes[1][3]


def test_ocr_of_an_empty_picture_is_empty(ocr: OcrTool) -> None:
    result = ocr.run(written())
    assert (result.text, result.data, result.json) == ("", [], "[]")


def test_ocr_reads_a_picture_once_even_from_several_threads(ocr: OcrTool, monkeypatch: pytest.MonkeyPatch) -> None:
    picture = written(("Beturo", 90, 90))
    reads: list[object] = []
    read = ocr._read
    monkeypatch.setattr(ocr, "_read", lambda rgb: reads.append(rgb) or read(rgb))
    with ThreadPoolExecutor(4) as threads:
        texts = {result.text for result in threads.map(ocr.run, [picture] * 8)}
    assert texts == {"Beturo"}
    assert len(reads) == 1


def test_ocr_forgets_the_oldest_picture() -> None:
    tool = OcrTool(keep=1)
    first, second = written(("Kalomi", 90, 90)), written(("Beturo", 90, 90))
    assert [tool.run(picture).text for picture in (first, second, first)] == ["Kalomi", "Beturo", "Kalomi"]
    assert len(tool._known) == 1


def test_detect_gives_kind_colour_and_box() -> None:
    image = Image.new("RGB", (200, 200), "white")
    ImageDraw.Draw(image).rectangle([40, 60, 99, 119], fill=(40, 80, 220))
    result = DetectTool().run(load_picture(image))
    assert result.text == "blue square at (40, 60, 100, 120)"
    (shape,) = result.data
    assert (shape["kind"], shape["colour"]) == ("square", "blue")
    assert shape["box"] == pytest.approx([40, 60, 100, 120], abs=1)
    assert (shape["label"], shape["score"]) == ("blue square", None)
    assert list(shape)[:5] == ["kind", "colour", "box", "centre", "area"]


def test_detect_draws_its_boxes_on_a_picture_of_the_same_size() -> None:
    image = Image.new("RGB", (200, 200), "white")
    ImageDraw.Draw(image).rectangle([40, 60, 99, 119], fill=(40, 80, 220))
    picture = load_picture(image)
    (drawn,) = DetectTool().run(picture).pictures
    assert (drawn.width, drawn.height) == (200, 200)
    assert drawn.rgb()[90, 70].tolist() == [40, 80, 220]  # inside the frame nothing changes
    assert drawn.rgb()[119, 70].tolist() == [230, 25, 75]  # the frame
    assert DetectTool().run(load_picture(Image.new("RGB", (50, 50), "white"))).pictures[0].width == 50


def test_zoom_enlarges_a_part() -> None:
    image = Image.new("RGB", (100, 80), "white")
    image.paste((220, 30, 30), (50, 40, 100, 80))
    result = ZoomTool().run(load_picture(image), box="50,40,100,80", factor="3")
    (picture,) = result.pictures
    assert (picture.width, picture.height) == (150, 120)
    assert tuple(picture.rgb()[60, 75]) == (220, 30, 30)
    assert result.data == {"box": [50, 40, 100, 80], "factor": 3.0}


def test_zoom_takes_the_whole_picture_twice_as_large_by_default() -> None:
    (picture,) = ZoomTool().run(load_picture(Image.new("RGB", (100, 80), "white"))).pictures
    assert (picture.width, picture.height) == (200, 160)


@pytest.mark.parametrize(
    "args",
    [
        {"box": "1,2,3"}, {"box": "90,90,10,10"}, {"box": "400,0,500,50"}, {"box": f"0,0,{'9' * 400},50"},
        {"factor": "0"}, {"factor": "nan"},
    ],
)
def test_zoom_refuses_what_it_cannot_cut(args: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"box|factor"):
        ZoomTool().run(load_picture(Image.new("RGB", (100, 80), "white")), **args)
