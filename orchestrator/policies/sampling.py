"""Seeded sampling and stopping, row by row, inside one batched `generate` call.

The one idea: each row draws with its own uniform numbers, made from its own seed, by inverting the cumulative
distribution; so a row's draws do not depend on which rows share its batch. Imports torch.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import torch
from transformers import LogitsProcessor, StoppingCriteria

from orchestrator.tokens import Tokenizer

_TAIL_TOKENS = 16  # how far back a stop string may begin


class SeededSampler(LogitsProcessor):
    """Turns logits [rows, vocabulary] into a choice per row: temperature 0 = the likeliest id.

    Keeps the log-probability of every choice in `logprobs` (one tensor [rows] per step), under the
    distribution that was drawn from: forbidden ids excluded, temperature applied (1 where it is 0).
    """

    def __init__(self, seeds: Sequence[int], *, temperature: float, max_steps: int, forbidden: Collection[int]) -> None:
        self.temperature = temperature
        self.forbidden = torch.tensor(sorted(forbidden), dtype=torch.long)
        self.uniforms = torch.stack([_uniforms(seed, max_steps) for seed in seeds])
        self.logprobs: list[torch.Tensor] = []

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
        scores = scores.float()
        if len(self.forbidden):
            scores = scores.index_fill(1, self.forbidden.to(scores.device), float("-inf"))
        if self.temperature > 0:
            scores = scores / self.temperature
        logprobs = scores.log_softmax(-1)
        if self.temperature > 0:
            cumulated = logprobs.double().exp().cumsum(-1)
            draw = self.uniforms[:, len(self.logprobs), None].to(scores.device) * cumulated[:, -1:]
            choice = torch.searchsorted(cumulated, draw, right=True).clamp(max=scores.shape[1] - 1)
        else:
            choice = logprobs.argmax(-1, keepdim=True)
        self.logprobs.append(logprobs.gather(1, choice).squeeze(1))
        return torch.full_like(scores, float("-inf")).scatter_(1, choice, 0.0)


class StopRows(StoppingCriteria):
    """Ends a row at a stop id, at the end of a stop string, or at its own length limit.

    lengths: generated ids of each row up to and including the one that ended it. stopped: why ("stop" |
    "length").
    """

    def __init__(
        self,
        prompt_length: int,
        limits: Sequence[int],
        *,
        stop_ids: Collection[int],
        stop_strings: Sequence[str],
        tokenizer: Tokenizer,
    ) -> None:
        self.prompt_length, self.limits, self.tokenizer = prompt_length, limits, tokenizer
        self.stop_ids, self.stop_strings = frozenset(stop_ids), tuple(stop_strings)
        self.lengths = [0] * len(limits)
        self.stopped: list[str | None] = [None] * len(limits)

    def __call__(self, input_ids: torch.Tensor, scores: object, **kwargs: object) -> torch.Tensor:  # type: ignore[override]
        step = input_ids.shape[1] - self.prompt_length
        last = input_ids[:, -1].tolist()
        for row, token in enumerate(last):
            if self.stopped[row] is not None:
                continue
            self.lengths[row] = step
            if token in self.stop_ids or (self.stop_strings and self._at_stop_string(input_ids[row], step)):
                self.stopped[row] = "stop"
            elif step >= self.limits[row]:
                self.stopped[row] = "length"
        return torch.tensor([reason is not None for reason in self.stopped], device=input_ids.device)

    def _at_stop_string(self, ids: torch.Tensor, step: int) -> bool:
        tail = self.tokenizer.decode(ids[-min(step, _TAIL_TOKENS) :].tolist())
        return any(stop in tail for stop in self.stop_strings)


def _uniforms(seed: int, count: int) -> torch.Tensor:
    return torch.rand(count, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
