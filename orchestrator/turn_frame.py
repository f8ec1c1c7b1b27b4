"""Observations as chat turns of their own, in the words of the policy's template.

The one idea: what stands between an assistant turn and the next generation prompt is what the template itself writes
there, found by rendering it once; ids only grow, whatever the template would drop of earlier thoughts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from registry.errors import UserFault

_TURN, _OBSERVATION = "MAESTRO-TURN", "MAESTRO-OBSERVATION"


@dataclass(frozen=True)
class TurnFrame:
    """before: ends the assistant's turn and opens a user's. after: ends that one and opens the assistant's next."""

    before: str
    after: str

    def around(self, block: str, turn: str = "") -> str:
        """`block` as a user turn behind the assistant turn `turn`; what `turn` already ends with is not repeated."""
        size = next((n for n in range(len(self.before), 0, -1) if turn.endswith(self.before[:n])), 0)
        return self.before[size:] + block.strip() + self.after


def frame_of(processor: Any) -> TurnFrame:
    """The frame of a processor's (or tokenizer's) chat template. Raises UserFault where it holds no second turn."""
    chat = [_message("user", "?"), _message("assistant", _TURN), _message("user", _OBSERVATION)]
    try:
        text = str(processor.apply_chat_template(chat, tokenize=False, add_generation_prompt=True))
    except Exception as error:  # templates are programs of their authors
        raise UserFault(
            f"the chat template cannot render a second turn: {type(error).__name__}: {error}",
            fix="set protocol.observations=inline",
        ) from error
    _, found, rest = text.partition(_TURN)
    before, found_too, after = rest.partition(_OBSERVATION)
    if not (found and found_too and before and after):
        raise UserFault(
            "the chat template drops the assistant's turn or the user turn behind it",
            fix="set protocol.observations=inline",
        )
    return TurnFrame(before, after)


def _message(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "content": [{"type": "text", "text": text}]}
