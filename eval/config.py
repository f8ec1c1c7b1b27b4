"""What an evaluation is made of: rows, arms, limits. The schema of ``configs/eval/*.yaml``.

The one idea: every key has a reader and says what it means; combinations that cannot work are refused
before any row runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, model_validator

from eval.arm import Arm, PolicySource
from eval.benchmarks.catalogue import find_benchmark
from eval.benchmarks.hub import DEADLINE_S
from eval.benchmarks.spec import Benchmark, Switch
from eval.benchmarks.tally import OnFault
from eval.judge_settings import JudgeSettings
from eval.yaml_config import Strict, load_config
from orchestrator.budget import Budget
from registry.errors import UserFault
from registry.names import nearest

TEST, UNSEEN, VALIDATION = "test", "test_unseen", "validation"


class SplitRows(Strict):
    """How many rows of each split."""

    test: int | None = Field(default=None, gt=0)
    """The headline numbers; none: all rows that there are. In the embedded world: new pictures, names and values
    under wordings seen in training."""
    test_unseen: int = Field(default=0, ge=0)
    """The embedded world's wordings never seen in training, reported beside the headline; other benchmarks have
    such rows only in ``parquet.test_unseen``."""
    validation: int = Field(default=0, ge=0)
    """Rows on which the matrix is measured and the best pairs are chosen; never scored as a test. A benchmark that is
    read sets so many of its own rows apart (see ``eval.row_sources``), unless ``parquet.validation`` holds them."""


class DataSettings(Strict):
    """Where a benchmark's rows are read, and what becomes of those that cannot be used."""

    root: Path | None = None
    """A local copy: the benchmark's folder, the folder above it, or one file; none: the hub."""
    on_fault: OnFault = "skip"
    """``skip``: rows that cannot be used are left out, counted and shown; ``fail``: the first one ends the reading."""
    most_faulty: float = Field(default=0.05, ge=0, le=1)
    """``skip``: reading is given up above this share of such rows."""
    text_only: Switch = False
    """Rows are asked without their pictures."""
    deadline_s: float = Field(default=DEADLINE_S, gt=0)
    """Seconds for the hub's first row, and between any two."""


class ParquetFiles(Strict):
    """Files in verl's format to read a split from instead of the benchmark's own rows."""

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
    rows_per_family: int | None = Field(default=None, ge=0)
    """Most rows of each family in the trajectory browser, each shown for every arm; none: as many as fit."""
    megabytes: float = Field(default=16.0, gt=0, le=200)
    """What trajectories and their pictures may take of the report; texts at most half of it."""
    compare_to: str | None = None
    """The arm that all others are compared with, question by question; ``before`` where there is one and nothing
    else is named."""


class EvalConfig(Strict):
    """An evaluation."""

    benchmark: str
    """A benchmark of ``configs/benchmarks``, by its name or an alias, or the path of a YAML file like those. With
    ``parquet.test`` it may be a bare name: rows are then scored under the name that each carries."""
    run: Path
    """Folder for journal, results and report; ``--run`` overrides it."""
    training: Path | None = None
    """Folder of the training run: relative policy paths start here; its ``train.json`` and ``curves.png``
    go into the report."""
    seed: int = 0
    """Rows, sampling and bootstrap."""
    rows: SplitRows = SplitRows()
    data: DataSettings = DataSettings()
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
    spare: tuple[Path, ...] = Field(default=(), exclude_if=lambda value: value == ())
    """Registry files whose parts only ablations use: the expert that stands in for a pool, the skill that stands for
    none. No other arm can call them."""
    report: ReportSettings = ReportSettings()
    judge: JudgeSettings | None = None
    """The model that is asked where a benchmark's published procedure asks one and its rule reads nothing; none: such
    answers are wrong."""

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

    def definition(self) -> Benchmark | None:
        """The benchmark's YAML; ``None`` where rows come from parquet files under a name that has none.

        Raises UserFault for an unknown name or a faulty file."""
        try:
            return find_benchmark(self.benchmark)
        except UserFault as fault:
            if self.parquet.test is not None and not Path(self.benchmark).suffix:
                return None
            raise UserFault(
                fault.what, where=fault.where or "benchmark", fix=f"{fault.fix}; or give a file: parquet.test=PATH"
            ) from None

    def definition_if_any(self) -> Benchmark | None:
        """The same, and ``None`` where it cannot be had: what is in a journal can be counted without it."""
        try:
            return self.definition()
        except UserFault:
            return None

    @property
    def needs_matrix(self) -> bool:
        return any(arm.needs_matrix for arm in self.arms.values())

    @property
    def needs_plain(self) -> bool:
        return any(arm.needs_plain for arm in self.arms.values())

    @property
    def needs_validation(self) -> bool:
        """Whether something is chosen on validation rows."""
        return self.needs_matrix or self.needs_plain

    def identity(self) -> dict[str, Any]:
        """The settings that can change a result. Where it runs, how fast and what is shown can not; nor can a deadline:
        what it ends is an error, not a wrong answer. The judge model stands beside it, where it is asked."""
        text_only = {"text_only": True} if self.data.text_only else {}
        return self.model_dump(mode="json", exclude=_FREE) | text_only


_FREE = {
    "run", "training", "spare", "data", "deadlines", "concurrency", "expert_concurrency", "cache", "endpoints",
    "report", "judge",
}  # fmt: skip


def load_eval_config(path: Path, overrides: Sequence[str] = ()) -> EvalConfig:
    """Read a configuration with ``key=value`` overrides; raises UserFault naming every fault."""
    return load_config(EvalConfig, path, overrides)
