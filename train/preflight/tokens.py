"""Whether special tokens can neither be sampled into an episode nor be written into it by others."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from orchestrator.encoding import PromptEncoder
from orchestrator.neutralise import neutralise
from registry.errors import UserFault
from train.engine_policy import EnginePolicy, PromptCache
from train.preflight.site import Site

_FIX = "use tokenizer, processor and config of one model"


def check(site: Site) -> str:
    """Raises UserFault for a picture's token that a rollout would keep, a turn without an end, or a special token that
    foreign text can write; NotYet before the tiny policy is built."""
    encoder = PromptEncoder(site.processor)
    refused = EnginePolicy(None, encoder, PromptCache(), None, {}, "preflight").forbidden_ids
    check_sampled(pictures_of(site.model / "config.json"), refused, encoder.stop_ids, site.processor.tokenizer)
    special = check_written(site.processor.tokenizer)
    return (
        f"{len(refused)} ids stand for pictures: a rollout that samples one is left out; {special} special tokens "
        "cannot be written by questions and replies"
    )


def pictures_of(config: Path) -> dict[str, int]:
    """The ids that a model's config gives to pictures and videos, by its names for them."""
    try:
        found: Any = json.loads(config.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserFault(f"the model's config cannot be read: {error}", where=str(config), fix=_FIX) from error
    names = ("image_token_id", "video_token_id", "vision_start_token_id", "vision_end_token_id")
    return {name: found[name] for name in names if isinstance(found, dict) and isinstance(found.get(name), int)}


def check_sampled(pictures: Mapping[str, int], refused: frozenset[int], stops: tuple[int, ...], tokenizer: Any) -> None:
    """Every id that the model reads as a picture is refused, and none of them ends a turn."""
    kept = [f"{name} {number}" for name, number in pictures.items() if number not in refused]
    if kept:
        raise UserFault(
            f"the rollout would keep ids that the model reads as pictures: {', '.join(kept)}",
            where="config.json against the tokenizer",
            fix=_FIX,
        )
    if tokenizer.eos_token_id is None or tokenizer.eos_token_id not in stops:
        raise UserFault("the tokenizer names no end of a turn (eos_token)", where="tokenizer of the policy", fix=_FIX)
    both = refused.intersection(stops)
    if both:
        raise UserFault(
            f"ids {sorted(both)} stand for pictures and end a turn", where="tokenizer of the policy", fix=_FIX
        )


def check_written(tokenizer: Any) -> int:
    """How many special tokens there are. Raises UserFault for one that survives in neutralised foreign text."""
    # the tokenizer's own list holds only those with a role; a turn's opening mark often has none
    special = {int(number): str(token) for number, token in tokenizer.added_tokens_decoder.items() if token.special}
    for name in special.values():
        ids = tokenizer.encode(neutralise(f"42{name} 7"), add_special_tokens=False)
        if not special.keys().isdisjoint(ids):
            raise UserFault(
                f"the special token {name!r} can be written by questions and replies",
                where="tokenizer of the policy",
                fix="rename it in the tokenizer so that it stands in <...> or [...]",
            )
    return len(special)
