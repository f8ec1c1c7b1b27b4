"""One picture for everybody: what an expert, a served policy and a viewer are sent decodes to the pixels that a
policy's own processor gets, whatever the picture came from."""

from __future__ import annotations

import base64
import io
from typing import Any

import numpy as np
import pytest
from PIL import Image
from server_doubles import Server, ask, backend

from experts.images import Picture, load_picture
from orchestrator.encoding import PromptEncoder
from orchestrator.prompt import openai_messages
from orchestrator.task import Task


def encoded(image: Image.Image, kind: str, **options: Any) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def sources() -> dict[str, bytes]:
    turned = Image.Exif()
    turned[0x0112] = 6
    noise = Image.effect_noise((90, 60), 80)
    photo = Image.merge("RGB", (noise, noise.rotate(180), noise.transpose(Image.Transpose.FLIP_LEFT_RIGHT)))
    ink = Image.new("RGBA", (50, 50), (0, 0, 0, 0))
    ink.paste((0, 0, 0, 130), (10, 10, 40, 40))
    deep = np.linspace(0, 65535, 50 * 50).astype(np.uint16).reshape(50, 50)
    return {
        "turned JPEG": encoded(photo, "JPEG", exif=turned),
        "transparent PNG": encoded(ink, "PNG"),
        "16 bit PNG": encoded(Image.fromarray(deep), "PNG"),
        "CMYK JPEG": encoded(photo.convert("CMYK"), "JPEG"),
        "palette GIF": encoded(photo.convert("P"), "GIF", save_all=True, append_images=[photo.convert("P")]),
        "lossy WebP": encoded(photo, "WEBP", quality=40),
        "tiny": encoded(photo.resize((5, 3)), "PNG"),
        "narrow": encoded(photo.resize((700, 20)), "PNG"),
        "with a colour profile": encoded(photo, "PNG", icc_profile=b"x" * 200, dpi=(300, 300)),
    }


class Processor:
    """The border to transformers: notes the images that it is given."""

    image_token = "<image>"
    tokenizer = type("T", (), {"eos_token_id": 0, "unk_token_id": 1, "convert_tokens_to_ids": lambda self, name: 2})()

    def __init__(self) -> None:
        self.given: list[Image.Image] = []

    def image_processor(self, images: list[Image.Image], return_tensors: str) -> dict[str, Any]:
        self.given += images
        return {}


def decoded(url: str) -> np.ndarray:
    """The pixels in a data URL as any other program reads them."""
    head, _, body = url.partition(",")
    assert head == "data:image/png;base64"
    image = Image.open(io.BytesIO(base64.b64decode(body, validate=True)))
    assert (image.format, image.mode, image.info) == ("PNG", "RGB", {})
    return np.asarray(image)


@pytest.fixture(scope="module")
def pictures() -> dict[str, Picture]:
    return {name: load_picture(data) for name, data in sources().items()}


def test_expert_policy_and_viewer_see_the_same_pixels(pictures: dict[str, Picture]):
    server = Server()
    try:
        ask(backend(server.url), pictures=tuple(pictures.values()))
    finally:
        server.close()
    (message,) = server.requests[0]["messages"]
    to_expert = [part["image_url"]["url"] for part in message["content"] if part["type"] == "image_url"]
    processor = Processor()
    encoder = PromptEncoder(processor)
    for picture in pictures.values():
        encoder.vision(picture)
    task = Task("r", "b", "g", "What is it?", tuple(pictures.values()))
    to_served_policy = [part["image_url"]["url"] for part in openai_messages(task)[0]["content"][:-1]]
    to_viewer = [picture.data_url() for picture in pictures.values()]
    assert to_expert == to_served_policy == to_viewer
    for picture, url, image in zip(pictures.values(), to_expert, processor.given, strict=True):
        assert image.mode == "RGB"
        assert np.array_equal(decoded(url), picture.rgb())
        assert np.array_equal(np.asarray(image), picture.rgb())
        assert picture.rgb().shape == (picture.height, picture.width, 3)


def test_a_picture_written_and_read_again_is_the_same(pictures: dict[str, Picture]):
    for picture in pictures.values():
        for again in (picture.png, picture.data_url(), picture.pil(), {"bytes": picture.png, "path": None}):
            assert load_picture(again) == picture
            assert load_picture(again).rgb().tobytes() == picture.rgb().tobytes()
            assert load_picture(again).notes == ()
