"""Tool `detect`: the filled coloured shapes of a picture with their boxes."""

from __future__ import annotations

from experts.images import Picture
from experts.tools.drawing import boxes_result
from experts.tools.result import ToolResult


class DetectTool:
    """Finds filled shapes by their colour; thin lines and outlines are not reported."""

    def run(self, picture: Picture, **args: str) -> ToolResult:
        """text: a line for each shape, largest first. data: each one's kind, colour, box, centre, area, label and
        score (always null). pictures: the picture with the boxes drawn."""
        from experts.embedded.shapes import find_shapes

        shapes = find_shapes(picture.rgb())
        records = [{**shape.record(), "label": f"{shape.colour} {shape.kind}", "score": None} for shape in shapes]
        return boxes_result(picture, records)
