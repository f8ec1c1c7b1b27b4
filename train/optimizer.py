"""AdamW that takes no step where there is nothing to learn.

A batch whose groups are all flat, or all of whose rollouts failed, has gradients of exactly 0. AdamW would still move
the weights, by its momentum and by weight decay. Loaded in the actor's process by verl (`actor.optim.optimizer_impl`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

MODULE, CLASS = __name__, "AdamWUnlessFlat"


class AdamWUnlessFlat(torch.optim.AdamW):
    """`torch.optim.AdamW`, but with all gradients 0 (on every rank) a step changes neither weights nor state."""

    def step(self, closure: Callable[[], Any] | None = None) -> Any:  # type: ignore[override]
        if closure is None and not self._any_gradient():
            return None
        return super().step(closure)

    @torch.no_grad()
    def _any_gradient(self) -> bool:
        gradients = [p.grad for group in self.param_groups for p in group["params"] if p.grad is not None]
        local = [g.to_local() if hasattr(g, "to_local") else g for g in gradients]  # type: ignore[operator]
        device = self.param_groups[0]["params"][0].device
        # A rank without gradients takes part as well: the others wait for its word.
        found = torch.zeros(1, dtype=torch.int32, device=device)
        if local:
            found += torch.stack([(g != 0).any() for g in local]).any().to(torch.int32)
        if torch.distributed.is_available() and torch.distributed.is_initialized():
            torch.distributed.all_reduce(found, op=torch.distributed.ReduceOp.MAX)
        return bool(found.item())
