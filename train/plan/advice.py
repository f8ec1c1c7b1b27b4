"""`Suggestion`: the nearest settings that fit, where the config's own do not.

One idea: a few ways out (less at a time, waiting in host memory, adapters, more GPUs, shorter rows), and within each
the smallest change of micro_tokens and engine.memory; a suggestion is the words to add to the command line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from train.config import TrainConfig
from train.option_rules import conflicts
from train.plan.memory import CHUNKED, GpuMemory

Evaluate = Callable[[TrainConfig], GpuMemory]
_MOST = 4


@dataclass(frozen=True)
class Suggestion:
    """changes: `key=value` as the command line takes them. what: the way out. peak, limit: GiB of a GPU then."""

    what: str
    changes: tuple[str, ...]
    peak: float
    limit: float
    kv_rows: float


def suggestions(config: TrainConfig, evaluate: Evaluate) -> tuple[Suggestion, ...]:
    """Up to four ways to make `config` fit, the gentlest first; empty where none of the tried ones does."""
    found = []
    for what, changes in _ways(config):
        base = with_changes(config, changes)
        if base is None:
            continue
        fit = _nearest(base, evaluate)
        if fit is None:
            continue
        smaller, memory = fit
        words = tuple(f"{key}={_word(value)}" for key, value in {**changes, **smaller}.items())
        if all(not set(other.changes) <= set(words) for other in found):  # more changes than one that fits
            found.append(Suggestion(what, words, memory.peak.total, memory.limit, memory.kv_rows))
        if len(found) == _MOST:
            break
    return tuple(found)


def with_changes(config: TrainConfig, changes: Mapping[str, Any]) -> TrainConfig | None:
    """`config` with dotted keys changed, or None where the result contradicts itself."""
    for key, value in changes.items():
        section, name = key.split(".", 1)
        if section == "verl":
            config = config.model_copy(update={"verl": {**config.verl, name: value}})
        else:
            part = getattr(config, section).model_copy(update={name: value})
            config = config.model_copy(update={section: part})
    return config if not conflicts(config) else None


def _ways(config: TrainConfig) -> Iterator[tuple[str, dict[str, Any]]]:
    for what, changes in _reliefs(config):
        yield what, changes
    prompt = config.protocol.max_prompt_tokens
    for part in (0.75, 0.5, 0.25):
        for what, changes in _reliefs(config):
            yield f"{what}; prompts (and their pictures) of {part:.0%}", {
                "protocol.max_prompt_tokens": int(prompt * part), **changes,
            }  # fmt: skip


def _reliefs(config: TrainConfig) -> Iterator[tuple[str, dict[str, Any]]]:
    c = config.cluster
    yield "fewer tokens a pass, another share for vLLM", {}
    packed = {"engine.attention": "flash_attention_2", f"verl.{CHUNKED}": True}
    if config.platform == "cuda" and not (config.verl.get(CHUNKED) and config.engine.attention != "sdpa"):
        yield "packed rows (needs flash-attn) and entropy in chunks", packed
    yield "weights and optimiser wait in host memory", {"engine.offload": True}
    for gpus in (2, 4, 8):
        if gpus > c.gpus_per_node:
            yield f"sharded over {gpus * c.nodes} GPUs", {"cluster.gpus_per_node": gpus}
    for nodes in (2, 4):
        yield f"sharded over {nodes * c.nodes} nodes", {"cluster.nodes": nodes * c.nodes}
    if not config.lora.rank:
        yield "adapters instead of all weights", {"lora.rank": 32}
        yield "adapters, packed rows (needs flash-attn) and entropy in chunks", {"lora.rank": 32, **packed}


def _nearest(config: TrainConfig, evaluate: Evaluate) -> tuple[dict[str, Any], GpuMemory] | None:
    """The smallest change of tokens a pass and of vLLM's share with which `config` fits."""
    trials = [
        (tokens_far + share_far, tokens_far, {**tokens, **share})
        for tokens_far, tokens in enumerate(_passes(config))
        for share_far, share in enumerate(_shares(config))
    ]
    trials.sort(key=lambda trial: (len(trial[2]), trial[0], trial[1]))
    for _, _, changes in trials:
        changed = with_changes(config, changes)
        memory = evaluate(changed) if changed is not None else None
        if memory is not None and memory.fits:
            return changes, memory
    return None


def _passes(config: TrainConfig) -> Iterator[dict[str, Any]]:
    yield {}
    longest = config.protocol.max_prompt_tokens + config.protocol.max_trajectory_tokens
    if config.grpo.dynamic_batch:
        tokens = config.grpo.micro_tokens
        while tokens > longest:
            tokens = max(longest, tokens * 3 // 4 // 256 * 256)
            yield {"grpo.micro_tokens": tokens}
        return
    for rows in range((config.grpo.micro_rollouts or 1) - 1, 0, -1):
        yield {"grpo.micro_rollouts": rows}


def _shares(config: TrainConfig) -> Iterator[dict[str, Any]]:
    yield {}
    now = config.engine.memory
    steps = [step / 20 for step in range(3, 20) if abs(step / 20 - now) > 1e-6]
    for share in sorted(steps, key=lambda share: (abs(share - now), share)):
        yield {"engine.memory": share}


def _word(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else f"{value:g}" if isinstance(value, float) else str(value)
