"""One turn of an episode: what of a generation is kept, and what it asks for.

The one idea: a turn ends where its first action closes. Tokens are kept whole; those that lie entirely behind
that border never enter the episode, are never trained on and never scored. Sampled ids are decoded to be
read, never to be encoded again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from orchestrator.action import Action
from orchestrator.observation import Observation
from orchestrator.policy import PolicyTurn
from orchestrator.protocol import STOP_STRINGS, action_end, missing_close, parse_turn
from orchestrator.tokens import Tokenizer, estimate_tokens

if TYPE_CHECKING:
    from registry.registry import Registry

_FORGERY = "<information>"


@dataclass(frozen=True)
class Turn:
    """A kept turn.

    text, token_ids, logprobs: what stays of the generation (ids None where the policy has none).
    dropped_text: what the policy wrote behind its action. forged: it wrote an information block of its own,
    before or behind the action. closing, closing_ids: the stop tag that a server removed, put back unlearned
    (mask 0).
    observation: the world's answer, None while it is awaited or where none came.
    """

    text: str
    action: Action
    token_ids: tuple[int, ...] | None = None
    logprobs: tuple[float, ...] | None = None
    finish_reason: str = "stop"
    latency_s: float = 0.0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    dropped_text: str = ""
    forged: bool = False
    closing: str = ""
    closing_ids: tuple[int, ...] | None = None
    observation: Observation | None = None

    @property
    def n_tokens(self) -> int:
        """Tokens that this turn and its observation add to the context; estimated where ids are missing."""
        own = estimate_tokens(self.text) if self.token_ids is None else len(self.token_ids)
        closing = estimate_tokens(self.closing) if self.closing_ids is None else len(self.closing_ids)
        seen = self.observation
        if seen is None:
            return own + closing
        return own + closing + (seen.n_tokens if seen.token_ids is None else len(seen.token_ids))


def read_turn(
    sampled: PolicyTurn, *, limit: int, tokenizer: Tokenizer | None, registry: Registry | None
) -> Turn:
    """Cuts a generation at its border and reads it. `limit`: tokens that may be kept (only enforced on
    ids)."""
    ids, logprobs, full = sampled.token_ids, sampled.logprobs, sampled.text
    if ids is not None and tokenizer is not None:
        full = tokenizer.decode(ids)
        keep = _border(ids[:limit], full, tokenizer)
        text = full if keep == len(ids) else tokenizer.decode(ids[:keep])
        dropped = full[len(text) :]
        ids, logprobs = ids[:keep], None if logprobs is None else logprobs[:keep]
        # These ids are complete: an end-of-text token closes nothing, only a named stop string was removed.
        stopped = sampled.finish_reason if sampled.finish_reason in STOP_STRINGS else None
    else:
        end = action_end(full)
        text, dropped = full[:end], "" if end is None else full[end:]
        if dropped:  # without a tokenizer nobody knows which ids these characters are
            ids = logprobs = None
        stopped = sampled.finish_reason
    closing = missing_close(text, stopped)
    closing_ids: tuple[int, ...] | None = ()
    if closing:
        closing_ids = None if ids is None or tokenizer is None else tuple(tokenizer.encode(closing))
    return Turn(
        text=text,
        action=parse_turn(text, registry, stopped=stopped),
        token_ids=ids,
        logprobs=logprobs,
        finish_reason=sampled.finish_reason,
        latency_s=sampled.latency_s,
        prompt_tokens=sampled.prompt_tokens,
        completion_tokens=sampled.completion_tokens,
        dropped_text=dropped,
        forged=_FORGERY in dropped or _FORGERY in text.rpartition("</think>")[2],
        closing=closing,
        closing_ids=closing_ids,
    )


def _border(ids: tuple[int, ...], full: str, tokenizer: Tokenizer) -> int:
    """How many ids to keep: up to the one that holds the last character of the first action."""
    end = action_end(full)
    if end is None or not _holds(tokenizer.decode(ids), full, end):
        return len(ids)
    low, high = 0, len(ids)  # `low` ids hold fewer than `end` characters, `high` ids hold them all
    while high - low > 1:
        middle = (low + high) // 2
        if _holds(tokenizer.decode(ids[:middle]), full, end):
            high = middle
        else:
            low = middle
    return high


def _holds(prefix: str, full: str, end: int) -> bool:
    return len(prefix) >= end and prefix[:end] == full[:end]
