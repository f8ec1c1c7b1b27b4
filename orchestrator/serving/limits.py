"""How much one request, and all requests together, may ask of the chat server."""

from __future__ import annotations

from dataclasses import dataclass, fields

from registry.errors import UserFault


@dataclass(frozen=True)
class ServingLimits:
    """Raises UserFault for a number that is too small to work with.

    concurrency: steps worked on at once. waiting: steps that may wait beside them; one more is told to come back.
    step_s: seconds for a whole step, waiting and reading included. body_bytes: of one request. messages, tools,
    pictures: of one request. view_chars: characters of the text in which the policy sees a step.
    """

    concurrency: int = 16
    waiting: int = 64
    step_s: float = 300.0
    body_bytes: int = 8 * 1024 * 1024
    messages: int = 2000
    tools: int = 512
    pictures: int = 16
    view_chars: int = 4000

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            least = {"waiting": 0, "view_chars": 500, "step_s": 0.1}.get(field.name, 1)
            if not least <= value <= 10**10:
                raise UserFault(f"chat server: {field.name} is {value!r}", fix=f"give a number of at least {least}")
