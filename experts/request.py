"""What is asked of an expert, and the two shapes of thing that can answer.

`Backend` is what the pool talks to (a served model, or a wrapped program); `PythonExpert` is all that an
embedded program has to be. Integrators write the second and never see the first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from experts.images import Picture
from experts.outcome import ExpertReply
from registry.schema import Sampling

_GREEDY = Sampling()


@dataclass(frozen=True)
class Request:
    """One question to one expert. timeout_s: seconds for one try; the caller's own deadline
    bounds all tries together."""

    prompt: str
    pictures: tuple[Picture, ...] = ()
    system: str | None = None
    sampling: Sampling = _GREEDY
    timeout_s: float = 60.0


class Backend(Protocol):
    """Something that answers requests; safe to use from several event loops."""

    async def ask(self, request: Request) -> ExpertReply:
        """The reply. Raises `experts.outcome.ExpertFailure`, and nothing else, when there is none."""
        ...

    async def aclose(self) -> None:
        """Free what the backend holds (in the running loop)."""
        ...


@runtime_checkable
class PythonExpert(Protocol):
    """An embedded expert: made once as `Class(**options)`, called from several threads at once."""

    def answer(self, prompt: str, pictures: Sequence[Picture]) -> str:
        """The answer in words; an empty string when there is nothing to say."""
        ...
