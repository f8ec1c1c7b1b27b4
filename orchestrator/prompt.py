"""From a task to chat messages.

The one idea: pictures are content parts of their own, never text, and the question is foreign text: it is
neutralised, so that the number of image placeholders in the rendered prompt is the number of pictures,
whatever the question says. Evaluation, serving and training build prompts here, so they see the same ones.
"""

from __future__ import annotations

import string
from collections.abc import Sequence
from typing import Any

from orchestrator.neutralise import neutralise
from orchestrator.task import Task


def question_text(task: Task) -> str:
    """The question as a policy reads it: neutralised, with lettered options below where the row has any."""
    return neutralise("\n".join([task.question.strip(), *_options(task.choices)]))


def messages(task: Task, system: str | None = None) -> list[dict[str, Any]]:
    """Chat messages for a processor's template: optional system text, then one user message with one `image`
    part for each picture and the question behind them. The system text is ours and taken as it is."""
    pictures = [{"type": "image"} for _ in task.pictures]
    return _chat(system, [*pictures, {"type": "text", "text": question_text(task)}])


def openai_messages(task: Task, system: str | None = None) -> list[dict[str, Any]]:
    """The same messages for an OpenAI-compatible server, pictures as data URLs."""
    pictures = [{"type": "image_url", "image_url": {"url": picture.data_url()}} for picture in task.pictures]
    return _chat(system, [*pictures, {"type": "text", "text": question_text(task)}])


def _chat(system: str | None, user: list[dict[str, Any]]) -> list[dict[str, Any]]:
    head: list[dict[str, Any]] = [{"role": "system", "content": system}] if system else []
    return [*head, {"role": "user", "content": user}]


def _options(choices: Sequence[str] | None) -> list[str]:
    if not choices:
        return []
    letters = string.ascii_uppercase
    return [f"{letters[i] if i < len(letters) else i + 1}. {choice}" for i, choice in enumerate(choices)]
