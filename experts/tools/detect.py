"""Tool `detect`: the filled coloured shapes of a picture with their boxes."""

from __future__ import annotations

from experts.images import Picture
from experts.tools.result import ToolResult


class DetectTool:
    """Finds filled shapes by their colour; thin lines and outlines are not reported."""

    def run(self, picture: Picture, **args: str) -> ToolResult:
        """text: a line for each shape, largest first. data: each one's kind, colour, box, centre, area."""
        from experts.embedded.shapes import find_shapes

        shapes = find_shapes(picture.rgb())
        lines = [
            f"{shape.colour} {shape.kind} at ({shape.centre[0]:.0f}, {shape.centre[1]:.0f})"
            for shape in shapes
        ]
        return ToolResult(text="\n".join(lines), data=[shape.record() for shape in shapes])
