"""Cold start: supervised learning of the protocol on demonstrations, in plain torch.

One idea: everything the policy learns here is how to speak (a call that copies the question, an answer that copies the
observation) and to see what kind of picture lies before it; which expert-skill pair to choose is left to RL.
"""

from __future__ import annotations

import json
import random
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experts.images import Picture
from orchestrator.encoding import PromptEncoder
from orchestrator.task import Task
from registry.errors import UserFault
from train.config import ColdStartSection
from train.demonstrations import Demonstration
from train.platform.patches import embed_patches_by_product

_FORBIDDEN_LOGPROB = -16.0  # about 1e-7
_FORBIDDEN_WEIGHT = 0.02


@dataclass(frozen=True)
class _Encoded:
    ids: list[int]
    learned: list[bool]
    picture: str


def run_cold_start(
    blank: Path,
    out: Path,
    mixture: Sequence[tuple[Sequence[Demonstration], float]],
    config: ColdStartSection,
    *,
    seed: int,
    log: Path,
    on_step: Callable[[int, float], None] | None = None,
) -> float:
    """Train the policy in folder `blank` on `mixture`, write it to `out`.

    mixture: demonstrations with their share of every batch; the first kind fills what the others leave, an empty kind
    is passed over. Returns the last loss (nats a token). Raises UserFault where there is no demonstration.
    `out` appears complete or not at all. `on_step(step, loss)` is called after every step; `log` gets one JSON line
    every 20 steps.
    """
    import torch
    from transformers import AutoProcessor, Qwen3VLForConditionalGeneration

    embed_patches_by_product()
    torch.manual_seed(seed)
    rng = random.Random(seed)
    processor: Any = AutoProcessor.from_pretrained(blank)
    encoder = PromptEncoder(processor)
    model = Qwen3VLForConditionalGeneration.from_pretrained(blank, dtype=torch.float32, attn_implementation="sdpa")
    model.train()
    if not mixture or not mixture[0][0]:
        raise UserFault("no demonstration to learn from", where=str(out), fix="see why every router rollout failed")
    pictures = {d.picture.sha256: d.picture for kind, _ in mixture for d in kind}
    kinds = [([_encode(encoder, processor.tokenizer, d) for d in kind], share) for kind, share in mixture if kind]
    optimizer = torch.optim.AdamW(model.parameters(), lr=config.rate, weight_decay=0.01)
    log.parent.mkdir(parents=True, exist_ok=True)
    loss_sum, started, last = 0.0, time.monotonic(), 0.0
    with log.open("w", encoding="utf-8") as journal:
        for step in range(1, config.steps + 1):
            for group in optimizer.param_groups:
                group["lr"] = config.rate * _schedule(step, config.steps)
            batch = sorted(_draw(rng, kinds, config.batch), key=lambda row: len(row.ids))
            tokens = sum(sum(row.learned[1:]) for row in batch)
            optimizer.zero_grad()
            last = 0.0
            for part in (batch[: len(batch) // 2], batch[len(batch) // 2 :]):  # the short ones need less padding
                if part:
                    loss = _loss(model, encoder, part, pictures, processor.tokenizer.pad_token_id) / tokens
                    loss.backward()
                    last += loss.item()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            loss_sum += last
            if on_step:
                on_step(step, last)
            if step % 20 == 0 or step == config.steps:
                record = {
                    "step": step,
                    "loss": round(loss_sum / 20, 5),
                    "seconds": round(time.monotonic() - started, 1),
                }
                journal.write(json.dumps(record) + "\n")
                journal.flush()
                loss_sum = 0.0
    partial = out.with_name(out.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    model.save_pretrained(partial)
    processor.save_pretrained(partial)
    shutil.rmtree(out, ignore_errors=True)
    partial.rename(out)
    return last


def _draw(rng: random.Random, kinds: Sequence[tuple[list[_Encoded], float]], size: int) -> list[_Encoded]:
    (first, _), *others = kinds
    batch = [row for rows, share in others for row in rng.choices(rows, k=round(size * share))]
    return batch[: size - 1] + rng.choices(first, k=max(1, size - len(batch)))


def _schedule(step: int, steps: int) -> float:
    """Warm-up over 30 steps, flat, then down to a fiftieth over the last third."""
    warm = min(1.0, step / 30)
    tail = steps * 0.3
    return warm * (1.0 if step < steps * 0.7 else max(0.02, (steps - step) / tail))


def _encode(encoder: PromptEncoder, tokenizer: Any, demonstration: Demonstration) -> _Encoded:
    task = Task("demonstration", "", "", demonstration.question, (demonstration.picture,))
    ids = list(encoder.prompt_ids(task))
    learned = [False] * len(ids)
    for text, is_learned in demonstration.pieces:
        piece = tokenizer.encode(text, add_special_tokens=False)
        ids += piece
        learned += [is_learned] * len(piece)
    return _Encoded(ids, learned, demonstration.picture.sha256)


def _loss(model: Any, encoder: PromptEncoder, batch: Sequence[_Encoded], pictures: dict[str, Picture], pad: int) -> Any:
    """Cross-entropy of a right-padded batch [B, L], summed over its learned tokens."""
    import torch

    length = max(len(row.ids) for row in batch)
    ids = torch.full((len(batch), length), pad, dtype=torch.long)
    mask = torch.zeros_like(ids)
    labels = torch.full_like(ids, -100)
    for i, row in enumerate(batch):
        n = len(row.ids)
        ids[i, :n] = torch.tensor(row.ids)
        mask[i, :n] = 1
        labels[i, :n] = torch.where(torch.tensor(row.learned), ids[i, :n], -100)
    vision = [encoder.vision(pictures[row.picture]) for row in batch]
    logits = model(
        input_ids=ids,
        attention_mask=mask,
        mm_token_type_ids=(ids == encoder.image_token_id).long(),
        pixel_values=torch.cat([v["pixel_values"] for v in vision]),
        image_grid_thw=torch.cat([v["image_grid_thw"] for v in vision]),
    ).logits
    learned = labels[:, 1:] != -100
    logits, targets = logits[:, :-1][learned], labels[:, 1:][learned]
    # A placeholder has no pixels behind it: a server that does not forbid it must hardly ever sample it either.
    forbidden = logits[:, list(encoder.placeholder_ids)].logsumexp(-1) - logits.logsumexp(-1)
    unheard = torch.relu(forbidden - _FORBIDDEN_LOGPROB).sum()
    return torch.nn.functional.cross_entropy(logits, targets, reduction="sum") + _FORBIDDEN_WEIGHT * unheard
