"""A tool whose eyes are a served model: what it is asked, and what its reply means.

The one idea: the model only says things; boxes are converted, cut and drawn here, from the picture's own pixels.
A reply that says nothing usable is a result that says so, a server that fails is an `ExpertFailure`.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any, Protocol

from experts.caller import Ledger
from experts.images import Picture
from experts.outcome import ExpertFailure, ExpertReply, Outcome, Try
from experts.request import Request
from experts.templates import TemplateFault, render
from experts.tools.box_reply import read_boxes
from experts.tools.boxes import BoxFault, Frame
from experts.tools.cutting import Cut, cut, factor_of
from experts.tools.drawing import boxes_result, written
from experts.tools.prompts import ZOOM_SYSTEM, prompt_of
from experts.tools.reply_text import unpacked
from experts.tools.result import ToolResult
from experts.tools.zoom import cut_as_told
from experts.tools.zoom_reply import NoZoom, read_zoom
from registry.schema import Sampling, Tool

_LEAST_TO_ZOOM = 32  # pixels: in a smaller part there is nothing to look for


class Client(Protocol):
    """What answers for the tool."""

    async def ask(self, request: Request, tries: list[Try] | None = None) -> ExpertReply:
        """The reply; each request sent for it goes into `tries`. Raises ExpertFailure."""
        ...


class ServedTool:
    """Carries out one tool of a registry by asking its model."""

    def __init__(self, tool: Tool, client: Client) -> None:
        self._tool = tool
        self._client = client

    def asks(self, args: dict[str, str]) -> bool:
        """Whether a use with these arguments asks the model: a part that is told is cut without it."""
        return self._tool.reads != "zoom" or not args.get("box", "").strip()

    async def run(self, picture: Picture, args: dict[str, str], ledger: Ledger) -> ToolResult:
        """The tool's result. Arguments: `query`, what is looked for; `prompt` in place of the tool's own; for a zoom
        `factor`, and `box` where the part is known already. Raises ExpertFailure."""
        if self._tool.reads == "zoom":
            return await self._zoom(picture, args, ledger)
        reply = await self._ask(picture, args, ledger)
        if self._tool.reads == "boxes":
            return await asyncio.to_thread(boxes_from, self._tool, picture, reply)
        return text_from(reply)

    async def _ask(
        self, picture: Picture, args: dict[str, str], ledger: Ledger, system: str | None = None
    ) -> ExpertReply:
        limits = self._tool.limits
        request = Request(
            prompt=self._prompt(picture, args),
            pictures=(picture,),
            system=system,
            sampling=Sampling(max_tokens=limits.max_output_tokens),
            timeout_s=limits.timeout_s,
        )
        try:
            reply = await self._client.ask(request, ledger.tries)
        except ExpertFailure as failure:
            ledger.usage += failure.usage
            raise
        ledger.usage += reply.usage
        return reply

    def _prompt(self, picture: Picture, args: dict[str, str]) -> str:
        given = args.get("prompt", "").strip()
        if given:
            return given
        prompt, is_template = prompt_of(self._tool)
        if not is_template:
            return prompt
        width, height = Frame.of(self._tool, picture.width, picture.height).extent
        query = " ".join(args.get("query", "").split())
        try:
            return render(prompt, {"query": query, "width": width, "height": height})
        except TemplateFault as fault:
            raise ExpertFailure(Outcome.ERROR, f"the prompt fails: {fault}", attempts=0) from fault

    async def _zoom(self, picture: Picture, args: dict[str, str], ledger: Ledger) -> ToolResult:
        try:
            factor = factor_of(args.get("factor", ""))
            if not self.asks(args):
                return cut_result(await asyncio.to_thread(cut_as_told, picture, args))
        except ValueError as error:
            raise ExpertFailure(Outcome.ERROR, str(error), attempts=0) from None
        part: Cut | None = None
        found: dict[str, Any] = {}
        for number in range(1, self._tool.zoom_rounds + 1):
            shown = picture if part is None else part.picture
            reply = await self._ask(shown, args, ledger, ZOOM_SYSTEM)
            try:
                box, label = part_asked_for(self._tool, shown, part, reply)
            except NoZoom as no:
                if part is None:
                    return whole_result(picture, str(no))
                break
            if part is not None and box == part.box:
                break
            part = await asyncio.to_thread(cut, picture, box, factor)
            found = {"label": label, "rounds": number}
            if max(part.size) < _LEAST_TO_ZOOM:
                break
        assert part is not None  # there is at least one round
        return cut_result(part, found)


def text_from(reply: ExpertReply) -> ToolResult:
    """text: the reply. data: each of its lines as {"text", "box": null, "score": null}."""
    text = unpacked(reply.text)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return ToolResult(text, [{"text": line, "box": None, "score": None} for line in lines])


def boxes_from(tool: Tool, picture: Picture, reply: ExpertReply) -> ToolResult:
    """text: a line each. data: each thing's {"label", "box", "score"}, in pixels of `picture`. pictures: all boxes
    drawn. Boxes that cannot be used are left out with a note."""
    read = read_boxes(reply.text, tool.max_boxes)
    frame = Frame.of(tool, picture.width, picture.height)
    records: list[dict[str, Any]] = []
    refused: Counter[str] = Counter()
    for raw in read.boxes:
        try:
            box = frame.settle(raw.numbers)
        except BoxFault as fault:
            refused[str(fault)] += 1
        else:
            records.append({"label": raw.label, "box": list(box), "score": raw.score})
    notes = [f"boxes left out because each {reason}: {count}" for reason, count in sorted(refused.items())]
    if read.left_out:
        notes.append(f"boxes left out beyond the first {tool.max_boxes}: {read.left_out}")
    if reply.text.strip() and not read.understood:
        notes.append(f"no box in the reply {reply.text.strip()[:80]!r}")
    if reply.finish_reason == "length":
        notes.append("the reply was cut off at its limit of tokens")
    return boxes_result(picture, records, notes)


def part_asked_for(
    tool: Tool, shown: Picture, part: Cut | None, reply: ExpertReply
) -> tuple[tuple[int, int, int, int], str]:
    """The box that the model asks to see larger, in whole pixels of the first picture, and its label. Raises
    NoZoom."""
    # A model that never ends its thoughts may have called the tool inside them.
    raw = read_zoom(reply.text if reply.text.strip() else reply.reasoning)
    try:
        box = Frame.of(tool, shown.width, shown.height).settle(raw.numbers)
    except BoxFault as fault:
        raise NoZoom(f"the box {list(raw.numbers)} {fault}") from None
    whole = part or Cut((0, 0, shown.width, shown.height), 1.0, (shown.width, shown.height), shown)
    outer = whole.outer(box)
    if outer is None:
        raise NoZoom(f"the box {list(raw.numbers)} is outside the picture")
    return outer, raw.label


def cut_result(part: Cut, found: dict[str, Any] | None = None) -> ToolResult:
    """text and data: which part, and how much larger. pictures: the part."""
    return ToolResult(part.text, {**part.data, **(found or {})}, (part.picture,))


def whole_result(picture: Picture, why: str) -> ToolResult:
    """The picture as it is, and why no part was cut out."""
    text = f"The whole picture {written((0, 0, picture.width, picture.height))}: {why}."
    return ToolResult(text, {"box": None, "why": why}, (picture,))
