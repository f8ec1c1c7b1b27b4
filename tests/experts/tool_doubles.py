"""Help for the tests of served tools: a server, a picture, and uses of one tool."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from PIL import Image
from server_doubles import Server, says

from experts.cache import CallCache
from experts.caller import Ledger
from experts.data_url import decode_data_url
from experts.images import Picture, load_picture
from experts.outcome import ExpertFailure
from experts.tools.result import ToolResult
from experts.tools.toolbox import Toolbox
from experts.workers import Workers
from registry.registry import Registry
from registry.schema import Tool

PICTURE = load_picture(Image.new("RGB", (640, 480), (250, 250, 250)))


def quartered() -> Picture:
    """640x480 with a quarter in each of four colours: red, green above blue, black."""
    image = Image.new("RGB", (640, 480), (200, 0, 0))
    image.paste((0, 200, 0), (320, 0, 640, 240))
    image.paste((0, 0, 200), (0, 240, 320, 480))
    image.paste((0, 0, 0), (320, 240, 640, 480))
    return load_picture(image)


class EyeServer(Server):
    """A server for tools, with what it was sent as tools send it."""

    def say(self, *texts: str) -> None:
        self.script = [says(text, usage={"prompt_tokens": 10, "completion_tokens": 2}) for text in texts]

    def system(self) -> str:
        return self.requests[0]["messages"][0]["content"]

    def prompt(self, index: int = 0) -> str:
        return self.requests[index]["messages"][-1]["content"][-1]["text"]

    def picture(self, index: int = 0) -> Picture:
        url = self.requests[index]["messages"][-1]["content"][0]["image_url"]["url"]
        return load_picture(decode_data_url(url, max_bytes=50_000_000))


def tool(server: EyeServer, name: str = "ocr", **fields: Any) -> Tool:
    backend = {"type": "openai", "model": "m", "replicas": [{"url": server.url}]}
    return Tool(name=name, description=fields.pop("description", "Text."), backend=backend, **fields)  # type: ignore[arg-type]


def use(one: Tool, *args: dict[str, str], picture: Picture = PICTURE, ledger: Ledger | None = None) -> list[ToolResult]:
    """The results of using the tool with each of the arguments, one after another."""

    async def main() -> list[ToolResult]:
        box = Toolbox(Registry(tools=(one,)), Workers(), CallCache())
        try:
            return [await box.use(one.name, picture, given, ledger or Ledger()) for given in args or ({},)]
        finally:
            await box.aclose()

    return asyncio.run(main())


def failure(one: Tool, **options: Any) -> ExpertFailure:
    with pytest.raises(ExpertFailure) as caught:
        use(one, **options)
    return caught.value


BOXES = (
    '```json\n[{"bbox_2d": [161, 119, 322, 238], "label": "cup"}, {"bbox_2d": [700, 0, 600, 50], "label": "pen"}]\n```'
)


def call(box: Any, name: str = "image_zoom_in_tool", **arguments: Any) -> str:
    body = json.dumps({"name": name, "arguments": {"bbox_2d": box, **arguments}})
    return f"<think>I have to look closer.</think>\n<tool_call>\n{body}\n</tool_call>"
