"""Dropping groups that teach nothing, and sampling others in their place (`grpo.drop_flat`).

One idea: verl's replay buffer drops a group whose rewards are all equal and draws new prompts; here rollouts that
failed for want of machinery do not count (their reward is no 0), and a step drops only so many groups that it ends.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import transfer_queue as tq
from verl.trainer.ppo.v1.replay_buffer import ReplayBuffer


def flat_reward(scores: Sequence[float], valid: Sequence[bool]) -> float | None:
    """The one reward of a group's valid rollouts; None where they differ.

    A group with fewer than two valid rollouts has no baseline, so nothing to teach: it counts as flat, at its one
    reward or at 0.
    """
    kept = [score for score, good in zip(scores, valid, strict=True) if good]
    return (kept[0] if kept else 0.0) if len(set(kept)) < 2 else None


class FlatGroups(ReplayBuffer):
    """A replay buffer that drops flat groups where `sampler_kwargs` says `drop_flat` (see train.verl_options)."""

    def __init__(self, *args: Any, sampler_kwargs: Any = None, **kwargs: Any) -> None:
        wanted: Mapping[str, Any] = sampler_kwargs or {}
        if wanted.get("drop_flat"):
            kwargs |= {"filter_groups_metric": "reward", "gen_batch_size": 1}
            kwargs["train_batch_size"] = int(wanted["prompts"])
        self._most_dropped, self._dropped = int(wanted.get("most_dropped", 0)), 0
        super().__init__(*args, sampler_kwargs=sampler_kwargs, **kwargs)

    def sample(self, global_steps: int, partition_id: str, batch_size: int) -> tuple[Any, dict[str, Any]]:
        """verl's, with a fresh count of dropped groups."""
        self._dropped = 0
        return super().sample(global_steps, partition_id, batch_size)

    def _dapo_filtered_keys(self, partition_id: str) -> tuple[set[str], Counter[float | None]]:
        """Finished flat groups and how many of them have which reward, at most as many as this step may still drop."""
        if partition_id == "val" or self.filter_groups_metric is None:
            return set(), Counter()
        known = self._dapo_classification_cache[partition_id]
        finished = self.finished_keys[partition_id]
        for uid in known.keys() - finished:
            del known[uid]
        known.update(self._rewards(partition_id, finished - known.keys()))
        flat = sorted(uid for uid, reward in known.items() if reward is not None)
        dropped = flat[: max(0, self._most_dropped - self._dropped)]
        self._dropped += len(dropped)
        return set(dropped), Counter(known[uid] for uid in dropped)

    def _rewards(self, partition_id: str, uids: set[str]) -> dict[str, float | None]:
        """`flat_reward` of each group."""
        keys = [key for key in self.partitions[partition_id] if key.split("_")[0] in uids]
        told: dict[str, list[tuple[float, bool]]] = {uid: [] for uid in uids}
        if keys:
            data = tq.kv_batch_get(keys=keys, partition_id=partition_id, select_fields=["extra_fields"])
            found: list[Any] = list(data["extra_fields"])
            for key, value in zip(keys, found, strict=True):
                record = getattr(value, "data", value)["reward_extra_info"]  # tensordict wraps what is no tensor
                told[key.split("_")[0]].append((float(record["score"]), bool(record["reward_valid"])))
        return {uid: flat_reward(*zip(*pairs, strict=True)) if pairs else 0.0 for uid, pairs in told.items()}
