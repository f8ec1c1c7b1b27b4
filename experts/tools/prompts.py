"""What a served tool's model is asked where the registry does not say it."""

from __future__ import annotations

import json

from experts.tools.zoom_reply import ZOOM_CALL
from registry.names import normalise
from registry.schema import Tool

CAPTION = (
    "Describe this picture in one paragraph: what kind of picture it is, what it shows, where the main things are "
    "and how they relate, and what text and numbers stand out. Say only what can be seen."
)

BOXES = """\
{% if query %}Find in the picture every single thing that this is about: {{ query }}
{% else %}Find every single thing in the picture.
{% endif -%}
Reply with a JSON list alone, with one entry for each thing and none twice:
[{"bbox_2d": [x0, y0, x1, y1], "label": "what it is"}]
Coordinates run from 0, 0 at the upper left to {{ width }}, {{ height }} at the lower right. Reply with [] if there is \
no such thing."""

ZOOM = """\
{% if query %}Question: {{ query }}
{% endif -%}
Think first. If a part of the picture has to be seen larger{% if query %} in order to answer{% endif %}, call \
**image_zoom_in_tool** on that part, with some room around it. Otherwise reply with <answer>none</answer>."""

_SIGNATURE = {
    "type": "function",
    "function": {
        "name": ZOOM_CALL,
        "description": "Cuts a part out of the picture and shows it larger.",
        "parameters": {
            "type": "object",
            "properties": {
                "bbox_2d": {
                    "type": "array",
                    "items": {"type": "number"},
                    "minItems": 4,
                    "maxItems": 4,
                    "description": "The part, as [x0, y0, x1, y1] from its upper left to its lower right corner.",
                },
                "label": {"type": "string", "description": "What is in that part."},
            },
            "required": ["bbox_2d"],
        },
    },
}

ZOOM_SYSTEM = f"""\
You look at a picture and may have a part of it shown larger.

# Tools

There is one function to call. Its signature stands inside <tools></tools>:
<tools>
{json.dumps(_SIGNATURE)}
</tools>

To call it, put a JSON object with its name and arguments inside <tool_call></tool_call>:
<tool_call>
{json.dumps({"name": ZOOM_CALL, "arguments": {"bbox_2d": [40, 25, 180, 130], "label": "the sign on the wall"}})}
</tool_call>"""


def prompt_of(tool: Tool) -> tuple[str, bool]:
    """(the prompt, whether it is a template): the registry's, ours, or for any other text the description."""
    if tool.prompt is not None:
        return tool.prompt, True
    if tool.reads != "text":
        return (BOXES if tool.reads == "boxes" else ZOOM), True
    captions = "caption" in map(normalise, (tool.name, *tool.aliases))
    return (CAPTION if captions else tool.description), False
