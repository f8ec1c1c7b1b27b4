"""Which part of a picture a model wants to see larger, out of its reply.

The format is that of models trained to look closer by themselves, DeepEyes among them: a call of
`image_zoom_in_tool` as a JSON object between `<tool_call>` tags, with the box under `bbox_2d`. Nothing in a reply
makes reading it raise.
"""

from __future__ import annotations

import json
import re
from typing import Any

from experts.tools.box_reply import RawBox, box_numbers, box_of, label_of, read_boxes

ZOOM_CALL = "image_zoom_in_tool"
_CALL = re.compile(r"<tool_call>(.*?)(?:</tool_call>|<tool_call>|\Z)", re.DOTALL)
_MOST_CALLS = 8


class NoZoom(Exception):
    """The reply names no part. The message says why, as the end of a sentence."""


def read_zoom(text: str) -> RawBox:
    """The first part that is asked for, in the model's coordinates. Raises NoZoom."""
    why = "the model asked for no part"
    for index, match in enumerate(_CALL.finditer(text)):
        if index == _MOST_CALLS:
            break
        try:
            return _read_call(match[1])
        except NoZoom as no:
            why = str(no) if index == 0 else why
    if "<tool_call>" not in text:
        # A model that was not trained on the call may name the part in its usual way.
        found = [box for box in read_boxes(text, 1).boxes if box.keyed]
        if found:
            return found[0]
    raise NoZoom(why)


def _read_call(body: str) -> RawBox:
    call = _loaded(body)
    if isinstance(call, dict):
        name = call.get("name", ZOOM_CALL)
        if name != ZOOM_CALL:
            raise NoZoom(f"the model called {name[:40]!r}" if isinstance(name, str) else "the call has no name")
        arguments = call.get("arguments", call)
        if isinstance(arguments, str):
            arguments = _loaded(arguments)
        if isinstance(arguments, dict):
            numbers = box_numbers(box_of(arguments))
            if numbers is not None:
                return RawBox(label_of(arguments), numbers, keyed=True)
        raise NoZoom("the call has no box")
    found = read_boxes(body, 1).boxes
    if found:
        return found[0]
    raise NoZoom("the call cannot be read")


def _loaded(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
