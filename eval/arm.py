"""One way of answering the rows of an evaluation, and where a policy comes from, as configuration."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import field_validator, model_validator

from eval.yaml_config import Strict

ArmKind = Literal["policy", "direct", "random_pair", "best_single_pair", "keyword", "oracle", "family_pair"]
NEEDS_POLICY = ("policy", "direct")
NEEDS_MATRIX = ("best_single_pair", "oracle", "family_pair")


class PolicySource(Strict):
    """Where a policy comes from: a checkpoint folder run in process, or a server that speaks the OpenAI
    protocol."""

    path: Path | None = None
    """Checkpoint folder; a relative path is looked up in ``training``."""
    server: str | None = None
    """Base URL, for example ``http://localhost:8000/v1``."""
    model: str | None = None
    """The model's name on that server."""
    api_key_env: str | None = None
    """Name of the environment variable that holds the server's key."""

    @model_validator(mode="after")
    def _one_source(self) -> PolicySource:
        if (self.path is None) == (self.server is None):
            raise ValueError("give either 'path' (a checkpoint folder) or 'server' (a base URL)")
        if self.server is not None and not self.model:
            raise ValueError("a server needs 'model', the model's name on it")
        return self


class Arm(Strict):
    """One way of answering the rows."""

    kind: ArmKind
    """``policy``: a policy with its experts; ``direct``: the same policy made to answer at once;
    ``random_pair``: a pair drawn for each question; ``best_single_pair``: the pair with the best mean on
    the validation split; ``keyword``: the pair that the question's words suggest; ``oracle``: for each
    question a pair that answers it right, if there is one; ``family_pair``: the pair that is best for the
    question's family on the validation split."""
    policy: str | None = None
    """Which of ``policies``; for ``policy`` and ``direct``."""
    temperatures: tuple[float, ...] = (1.0, 0.0)
    """``policy`` and ``direct``: sampled at each; 0 is greedy and takes one sample a row. The first is the
    headline."""

    @field_validator("temperatures")
    @classmethod
    def _temperatures(cls, value: tuple[float, ...]) -> tuple[float, ...]:
        if not value or any(not 0 <= item <= 5 for item in value) or len(set(value)) != len(value):
            raise ValueError("temperatures must be different numbers from 0 to 5")
        return value

    @model_validator(mode="after")
    def _policy_where_needed(self) -> Arm:
        if (self.policy is not None) != (self.kind in NEEDS_POLICY):
            needs = "needs" if self.kind in NEEDS_POLICY else "takes no"
            raise ValueError(f"an arm of kind {self.kind!r} {needs} 'policy'")
        return self
