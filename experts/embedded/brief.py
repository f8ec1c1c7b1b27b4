"""What a procedure asks of an embedded expert, read from its prompt.

A prompt is a handful of `Field: value` lines (`Task`, `Question`, `OCR`, `Shapes`). The first line of a
field wins and lines without a field go on with the one before, so text inside a question cannot replace
the task above it.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from registry.names import normalise

_FIELD = re.compile(r"^\s*(task|question|ocr|shapes)\s*:[ \t]*(.*)$", re.IGNORECASE)


@dataclass(frozen=True)
class TextBox:
    """One line of text read in the picture; the box is in pixels of the picture asked about."""

    text: str
    x0: float
    y0: float
    x1: float
    y1: float

    @property
    def centre(self) -> tuple[float, float]:
        return (self.x0 + self.x1) / 2, (self.y0 + self.y1) / 2

    @property
    def height(self) -> float:
        return self.y1 - self.y0


@dataclass(frozen=True)
class Brief:
    """A prompt taken apart; evidence that was not given or cannot be read is None."""

    task: str | None
    question: str
    texts: tuple[TextBox, ...] | None = None
    shapes: tuple[dict[str, Any], ...] | None = None


def read_brief(prompt: str) -> Brief:
    """Take a prompt apart; a prompt without fields is a question without a task. Never raises."""
    fields = _fields(prompt)
    task = normalise(fields["task"]) if fields.get("task", "").strip() else None
    question = fields.get("question", "" if task else prompt)
    return Brief(task, question.strip(), _text_boxes(fields.get("ocr")), _shape_records(fields.get("shapes")))


def _fields(prompt: str) -> dict[str, str]:
    found: dict[str, list[str]] = {}
    current: list[str] = []
    for line in prompt.splitlines():
        match = _FIELD.match(line)
        if match and match[1].lower() not in found:
            current = found.setdefault(match[1].lower(), [])
            line = match[2]
        current.append(line)
    return {name: "\n".join(lines) for name, lines in found.items()}


def _records(text: str | None) -> list[dict[str, Any]] | None:
    """The JSON list of objects in an evidence field, or None where it holds none."""
    try:
        data = json.loads(text) if text is not None else None
    except (ValueError, RecursionError):
        return None
    return [entry for entry in data if isinstance(entry, dict)] if isinstance(data, list) else None


def _text_boxes(text: str | None) -> tuple[TextBox, ...] | None:
    records = _records(text)
    if records is None:
        return None
    boxes = []
    for record in records:
        corners = _numbers(record.get("box"), 4)
        if corners is not None and isinstance(record.get("text"), str):
            boxes.append(TextBox(record["text"], *corners))
    return tuple(boxes)


def _shape_records(text: str | None) -> tuple[dict[str, Any], ...] | None:
    """Shape records with a known layout: kind, colour, area, box [x0, y0, x1, y1], centre [x, y]."""
    records = _records(text)
    if records is None:
        return None
    return tuple(
        record
        for record in records
        if isinstance(record.get("kind"), str)
        and isinstance(record.get("colour"), str)
        and _numbers([record.get("area")], 1) is not None
        and _numbers(record.get("box"), 4) is not None
        and _numbers(record.get("centre"), 2) is not None
    )


def _numbers(value: object, length: int) -> tuple[float, ...] | None:
    """A list of `length` finite numbers of a picture's size, or None."""
    if not isinstance(value, list) or len(value) != length:
        return None
    if not all(isinstance(entry, (int, float)) and abs(entry) < 1e7 for entry in value):
        return None
    return tuple(float(entry) for entry in value)
