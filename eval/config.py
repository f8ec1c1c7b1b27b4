"""What an evaluation is made of: rows, arms, limits. The schema of ``configs/eval/*.yaml``.

The one idea: every key has a reader and says what it means; combinations that cannot work are refused
before any row runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, model_validator

from eval.arm import NEEDS_MATRIX, Arm, PolicySource
from eval.yaml_config import Strict, load_config
from orchestrator.budget import Budget
from registry.names import nearest

TEST, UNSEEN, VALIDATION = "test", "test_unseen", "validation"


class SplitRows(Strict):
    """How many rows of each split."""

    test: int = Field(gt=0)
    """New pictures, names and values under wordings seen in training: the headline numbers."""
    test_unseen: int = Field(default=0, ge=0)
    """Wordings never seen in training, reported beside the headline."""
    validation: int = Field(gt=0)
    """Rows on which the matrix is measured and the best pairs are chosen; never scored as a test."""


class ParquetFiles(Strict):
    """Files to read a split from instead of the benchmark's generator."""

    test: Path | None = None
    test_unseen: Path | None = None
    validation: Path | None = None


class Deadlines(Strict):
    """Seconds."""

    episode_s: float = Field(default=120.0, gt=0)
    call_s: float = Field(default=30.0, gt=0)


class BudgetSettings(Strict):
    """Limits of an episode; each name says what it covers (tokens of the policy's tokenizer)."""

    horizon: int = Field(default=4, ge=0)
    max_prompt_tokens: int = Field(default=4096, gt=0)
    max_turn_tokens: int = Field(default=512, gt=0)
    max_observation_tokens: int = Field(default=512, gt=0)
    max_trajectory_tokens: int = Field(default=4096, gt=0)
    malformed_turns: int = Field(default=1, ge=0)

    def build(self) -> Budget:
        """The orchestrator's budget; raises UserFault where the limits contradict each other."""
        return Budget(**self.model_dump())


class ReportSettings(Strict):
    """What the report shows beside the numbers."""

    title: str = "Evaluation"
    rows_per_family: int = Field(default=8, ge=0)
    """Rows of each family in the trajectory browser; each is shown for every arm."""
    compare_to: str | None = None
    """The arm that all others are compared with, question by question; ``before`` where there is one and nothing
    else is named."""


class EvalConfig(Strict):
    """An evaluation."""

    benchmark: str
    """Name under which rows are made and scored."""
    run: Path
    """Folder for journal, results and report; ``--run`` overrides it."""
    training: Path | None = None
    """Folder of the training run: relative policy paths start here; its ``train.json`` and ``curves.png``
    go into the report."""
    seed: int = 0
    """Rows, sampling and bootstrap."""
    rows: SplitRows
    parquet: ParquetFiles = ParquetFiles()
    policies: dict[str, PolicySource] = Field(default_factory=dict)
    arms: dict[str, Arm] = Field(min_length=1)
    """The arms named ``before`` and ``after`` are the headline; all others are baselines."""
    samples: int = Field(default=1, ge=1)
    """Samples of each row where an arm's temperature is above 0."""
    pass_at: tuple[int, ...] = (1,)
    """The k of pass@k and of sc@k (self-consistency)."""
    prompt_style: Literal["none", "compact", "full"] = "none"
    """System prompt made from the registry."""
    budget: BudgetSettings = BudgetSettings()
    deadlines: Deadlines = Deadlines()
    concurrency: int = Field(default=32, ge=1)
    """Episodes of a policy in flight; many make large batches."""
    expert_concurrency: int = Field(default=8, ge=1)
    """Calls in flight where only experts work (matrix, oracle, rules): little more than they can serve at once, since
    waiting counts against a call's deadline."""
    cache: Path | None = None
    """Folder of the call cache for deterministic experts; none: no cache."""
    endpoints: Path | None = None
    """The file that `maestro experts serve` writes: where the served models are; none: as the registry says."""
    report: ReportSettings = ReportSettings()

    @model_validator(mode="after")
    def _fits_together(self) -> EvalConfig:
        for name, arm in self.arms.items():
            if arm.policy is not None and arm.policy not in self.policies:
                near = nearest(arm.policy, self.policies, 1)
                hint = f"; did you mean {near[0]!r}?" if near else ""
                raise ValueError(f"arm {name!r} names the policy {arm.policy!r}, which 'policies' does not hold{hint}")
        named = self.report.compare_to
        if named is not None and named not in self.arms:
            near = nearest(named, self.arms, 1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise ValueError(f"report.compare_to names the arm {named!r}, which 'arms' does not hold{hint}")
        if any(k < 1 or k > self.samples for k in self.pass_at):
            raise ValueError(f"pass_at {list(self.pass_at)} needs 1 <= k <= samples ({self.samples})")
        self.budget.build()
        return self

    def checkpoint(self, name: str) -> Path | None:
        """The checkpoint folder of a policy; ``None`` for one behind a server."""
        path = self.policies[name].path
        return path if path is None or self.training is None else self.training / path

    @property
    def needs_matrix(self) -> bool:
        return any(arm.kind in NEEDS_MATRIX for arm in self.arms.values())

    def identity(self) -> dict[str, Any]:
        """The settings that can change a result. Where it runs, how fast and what is shown can not; nor can a deadline:
        what it ends is an error, not a wrong answer."""
        return self.model_dump(mode="json", exclude=_FREE)


_FREE = {"run", "training", "deadlines", "concurrency", "expert_concurrency", "cache", "endpoints", "report"}


def load_eval_config(path: Path, overrides: Sequence[str] = ()) -> EvalConfig:
    """Read a configuration with ``key=value`` overrides; raises UserFault naming every fault."""
    return load_config(EvalConfig, path, overrides)
