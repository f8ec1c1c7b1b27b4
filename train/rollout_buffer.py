"""verl's replay buffer asked twenty times a second, and the advantage that leaves failed rollouts out.

Loaded by verl in the trainer process (`trainer.v1.sampler.custom_sampler`), so that the estimator registers there too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from train import advantage  # noqa: F401  (registers the estimator)
from train.group_filter import FlatGroups
from train.requeue import queue_of_run


class PromptBuffer(FlatGroups):
    """A step of the tiny policy lasts a few seconds: the default poll of 2 s would be a third of it.

    Every group that leaves the buffer, into the batch or dropped, is judged: what machinery lost comes back.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs.setdefault("poll_interval", 0.05)
        super().__init__(*args, **kwargs)
        self._rows = queue_of_run()
        if self._rows is not None:
            # the trainer injects a method of its own: its data set is there once it has set itself up
            self._rows.rows.dataset = lambda: self.refill_fn.__self__.train_dataset  # type: ignore[union-attr]

    def sample(self, global_steps: int, partition_id: str, batch_size: int) -> tuple[Any, dict[str, Any]]:
        """verl's; then the line of rows is written down, before the step can be saved."""
        batch, metrics = super().sample(global_steps, partition_id, batch_size)
        if self._rows is not None and partition_id == "train":
            told = self._rows.end_step(global_steps)
            metrics = {**metrics, **{f"training/rows/{name}": count for name, count in told.items()}}
        return batch, metrics

    def _materialize_batch(
        self, partition_id: str, selected_prompt_uids: list[str], partition_snapshot: dict[str, dict]
    ) -> Any:
        self._judge(partition_id, selected_prompt_uids, partition_snapshot)
        return super()._materialize_batch(partition_id, selected_prompt_uids, partition_snapshot)

    def _clear_groups(self, partition_id: str, uids: set[str]) -> None:
        self._judge(partition_id, uids, self.partitions[partition_id])
        super()._clear_groups(partition_id, uids)

    def _judge(self, partition_id: str, uids: Iterable[str], stored: Mapping[str, Mapping[str, Any]]) -> None:
        if self._rows is None or partition_id != "train":
            return
        faults: dict[str, list[str]] = {uid: [] for uid in uids}
        for key, tag in stored.items():
            uid = key.split("_")[0]
            if uid in faults:
                faults[uid].append(str(tag.get("fault", "")))
        for uid, found in faults.items():
            self._rows.judge(uid, found)
