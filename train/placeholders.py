"""The actor's distribution without the ids that the rollout engine never samples.

One idea: verl's engine bans the placeholders of pictures and videos, its actor does not, so their probability, small or
not, parts the two. With their logits silenced in the actor as well both compute the same policy, and a gap between them
says that something else does not line up. (With fused kernels the actor has no logits; nothing is changed there.)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

# Finite, so that p * logit in the entropy is 0 and no NaN; no float32 or bfloat16 policy has logits near it.
SILENT = -1e4


def silence(logits: Any, ids: Sequence[int]) -> None:
    """Gives `ids` probability 0 and no gradient in logits [..., V], in place (a copy costs as much memory again)."""
    import torch

    logits.index_fill_(-1, torch.as_tensor(list(ids), dtype=torch.long, device=logits.device), SILENT)


def forbid_placeholders() -> None:
    """Makes verl's FSDP actors of this process forbid what verl's engine forbids. May be called again."""
    from torch.distributed.tensor import DTensor
    from verl.workers.engine.fsdp import transformer_impl
    from verl.workers.rollout.utils import get_vision_placeholder_token_ids

    engine: Any = transformer_impl.FSDPEngineWithLMHead  # behind a decorator that hides its type
    verls = engine.prepare_model_outputs
    if getattr(verls, "forbids_placeholders", False):
        return

    def prepare_model_outputs(self: Any, output: Any, *arguments: Any, **named: Any) -> Any:
        logits = getattr(output, "logits", None)
        ids = get_vision_placeholder_token_ids(self.model_config.get_processor())
        if logits is not None and ids and not isinstance(logits, DTensor):
            silence(logits, ids)
        return verls(self, output, *arguments, **named)

    prepare_model_outputs.forbids_placeholders = True  # type: ignore[attr-defined]
    engine.prepare_model_outputs = prepare_model_outputs
