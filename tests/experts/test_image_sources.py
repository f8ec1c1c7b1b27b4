"""Where pictures come from: cells of parquet files, paths, data URLs."""

from __future__ import annotations

import base64
import os
from pathlib import Path

import numpy as np
import pytest
from image_doubles import RED, encoded
from PIL import Image

from experts.data_url import decode_data_url, encode_data_url, holds_image_data
from experts.images import ImageFault, ImageLimits, load_picture, load_pictures


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
