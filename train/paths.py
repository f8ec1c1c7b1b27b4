"""Where a run keeps what: one object, so that nobody builds paths by hand."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class RunPaths:
    """The folders and files of one training run under `root` (absolute)."""

    root: Path

    @staticmethod
    def at(root: Path) -> RunPaths:
        return RunPaths(root.expanduser().resolve())

    @property
    def config(self) -> Path:
        return self.root / "config.json"

    @property
    def train_rows(self) -> Path:
        return self.root / "data" / "train.parquet"

    @property
    def validation_rows(self) -> Path:
        return self.root / "data" / "validation.parquet"

    @property
    def cache(self) -> Path:
        """Answers of deterministic experts, by content; shared by every phase."""
        return self.root / "cache"

    @property
    def blank(self) -> Path:
        """The tiny policy with random weights."""
        return self.root / "policy-blank"

    @property
    def cold(self) -> Path:
        """The policy before RL."""
        return self.root / "policy-before"

    @property
    def policy(self) -> Path:
        """The policy after RL, a Hugging Face folder."""
        return self.root / "policy"

    @property
    def best(self) -> Path:
        """The best policy of all checkpoints, a Hugging Face folder with `best.json` (see train.best_policy)."""
        return self.root / "policy-best"

    @property
    def cold_log(self) -> Path:
        return self.root / "cold_start.jsonl"

    @property
    def checkpoints(self) -> Path:
        return self.root / "checkpoints"

    @property
    def rollouts(self) -> Path:
        """One JSON line a trajectory, training and validation."""
        return self.root / "rollouts.jsonl"

    @property
    def requeue(self) -> Path:
        """One JSON line a step: the rows that wait for their turn (see train.requeue)."""
        return self.root / "requeue.jsonl"

    @property
    def metrics(self) -> Path:
        """One JSON line a step."""
        return self.root / "metrics.jsonl"

    @property
    def curves(self) -> Path:
        return self.root / "curves.png"

    @property
    def tensorboard(self) -> Path:
        return self.root / "tensorboard"

    @property
    def pauses(self) -> Path:
        """A file for each worker that waits for its experts, as long as it waits."""
        return self.root / "pauses"

    @property
    def page(self) -> Path:
        """The report of the training: written anew while it trains, and by `maestro train report`."""
        return self.root / "training.html"

    @property
    def rollout_settings(self) -> Path:
        return self.root / "rollout_settings.json"

    @property
    def agent_loops(self) -> Path:
        return self.root / "agent_loops.yaml"

    @property
    def summary(self) -> Path:
        """What the run was and how long each phase took."""
        return self.root / "train.json"

    def verl_log(self, attempt: int) -> Path:
        """verl's own output; one file an attempt, because verl truncates its files on resume."""
        return self.root / "logs" / f"verl-{attempt:02d}.log"

    def verl_metrics(self, attempt: int) -> Path:
        return self.root / "logs" / f"verl-{attempt:02d}.jsonl"
