"""One way of answering the rows of an evaluation, and where a policy comes from, as configuration."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from eval.yaml_config import Strict

ArmKind = Literal[
    "policy",
    "direct",
    "random_pair",
    "best_single_pair",
    "keyword",
    "oracle",
    "family_pair",
    "single_expert",
    "best_expert",
    "retrieval",
]
NEEDS_POLICY = ("policy", "direct")
NEEDS_MATRIX = ("best_single_pair", "oracle", "family_pair")
BEST = "best"
_POOLED = ("policy", "random_pair", "keyword", "retrieval")  # kinds that choose among what the registry holds


def _optional(default: Any = None) -> Any:
    """A field that is left out of the run's identity where it is not set, so that older runs keep theirs."""
    return Field(default=default, exclude_if=lambda value: value == default)


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
    style: Literal["inline", "chat"] = _optional("inline")
    """``inline``: the server continues one assistant message (vLLM); ``chat``: whole turns only, which every
    OpenAI-compatible server knows."""
    request: dict[str, Any] = _optional({})
    """Fields of the request to set, or with ``null`` to leave out, for models that refuse some:
    ``{temperature: null, max_tokens: null, max_completion_tokens: 4096}``."""

    @field_validator("request", mode="before")
    @classmethod
    def _values(cls, value: Any) -> Any:
        return _typed(value)

    @model_validator(mode="after")
    def _one_source(self) -> PolicySource:
        if (self.path is None) == (self.server is None):
            raise ValueError("give either 'path' (a checkpoint folder) or 'server' (a base URL)")
        if self.server is not None and not self.model:
            raise ValueError("a server needs 'model', the model's name on it")
        if self.path is not None and (self.request or self.style != "inline"):
            raise ValueError("'style' and 'request' belong to a server")
        return self


class PoolLimits(Strict):
    """The part of the registry that an arm sees; what is left out cannot be called and stands in no prompt."""

    experts: tuple[str, ...] | None = None
    """Names; none: all."""
    skills: tuple[str, ...] | None = None
    """Names of Level-1 skills; none: all."""

    @model_validator(mode="after")
    def _holds_something(self) -> PoolLimits:
        if self.experts is None and self.skills is None:
            raise ValueError("name 'experts' or 'skills'")
        if self.experts == () or self.skills == ():
            raise ValueError("an empty list leaves nothing to call; an arm without a pool says 'without'")
        return self


class EmbeddingServer(Strict):
    """A server with ``/v1/embeddings``."""

    server: str
    """Base URL."""
    model: str
    """The model's name on it."""
    api_key_env: str | None = None
    """Name of the environment variable that holds the server's key."""


class Arm(Strict):
    """One way of answering the rows."""

    kind: ArmKind
    """``policy``: a policy with its experts; ``direct``: a policy made to answer at once;
    ``random_pair``: a pair drawn for each question; ``best_single_pair``: the pair with the best mean on
    the validation split; ``keyword``: the pair that the question's words suggest; ``oracle``: for each
    question a pair that answers it right, if there is one; ``family_pair``: the pair that is best for the
    question's family on the validation split; ``single_expert``: one expert, asked without a skill;
    ``best_expert``: the expert that is best so on the validation split; ``retrieval``: expert and skill
    whose descriptions are nearest to the question, each chosen apart."""
    policy: str | None = None
    """Which of ``policies``; for ``policy`` and ``direct``."""
    temperatures: tuple[float, ...] = (1.0, 0.0)
    """``policy`` and ``direct``: sampled at each; 0 is greedy and takes one sample a row. The first is the
    headline."""
    expert: str | None = _optional()
    """``single_expert``: which."""
    skill: str | None = _optional()
    """``single_expert``: under this Level-1 skill instead of none."""
    method: Literal["bm25", "embedding"] | None = _optional()
    """``retrieval``: by words, or by vectors."""
    embeddings: EmbeddingServer | None = _optional()
    """``retrieval`` by vectors: those of a served model; none: of character n-grams, made here."""
    pool: PoolLimits | None = _optional()
    """Only a part of the registry."""
    without: Literal["experts", "skills", "both"] | None = _optional()
    """``policy``: ``skills``: whatever skill a call names, the expert is asked without one; ``experts``: whatever
    expert a call names, ``stand_in`` is asked under the skill; ``both``: ``stand_in`` is asked without a skill."""
    stand_in: str | None = _optional()
    """The expert that takes every call: a name, or ``best``: the best one on the validation split."""
    prompt_style: Literal["none", "compact", "full"] | None = _optional()
    """Instead of the configuration's; a ``direct`` arm has no system prompt unless this says so."""

    @field_validator("temperatures")
    @classmethod
    def _temperatures(cls, value: tuple[float, ...]) -> tuple[float, ...]:
        if not value or any(not 0 <= item <= 5 for item in value) or len(set(value)) != len(value):
            raise ValueError("temperatures must be different numbers from 0 to 5")
        return value

    @model_validator(mode="after")
    def _fits_the_kind(self) -> Arm:
        self._pairs_with("policy", self.policy, self.kind in NEEDS_POLICY)
        self._pairs_with("expert", self.expert, self.kind == "single_expert")
        self._pairs_with("method", self.method, self.kind == "retrieval")
        self._only_with("skill", self.skill, self.kind == "single_expert")
        self._only_with("pool", self.pool, self.kind in _POOLED)
        self._only_with("without", self.without, self.kind == "policy")
        self._only_with("prompt_style", self.prompt_style, self.kind in NEEDS_POLICY)
        if self.embeddings is not None and self.method != "embedding":
            raise ValueError("'embeddings' belongs to the method 'embedding'")
        if (self.stand_in is not None) != (self.without in ("experts", "both")):
            raise ValueError(
                "an arm without its experts needs 'stand_in', the expert that takes every call"
                if self.stand_in is None
                else "'stand_in' belongs to 'without: experts' and 'without: both'"
            )
        return self

    def _pairs_with(self, field: str, value: object, needed: bool) -> None:
        if (value is not None) != needed:
            needs = "needs" if needed else "takes no"
            raise ValueError(f"an arm of kind {self.kind!r} {needs} {field!r}")

    def _only_with(self, field: str, value: object, allowed: bool) -> None:
        if value is not None and not allowed:
            raise ValueError(f"an arm of kind {self.kind!r} takes no {field!r}")

    @property
    def needs_matrix(self) -> bool:
        """Whether every pair must be measured on validation rows first."""
        return self.kind in NEEDS_MATRIX or (self.stand_in == BEST and self.without == "experts")

    @property
    def needs_plain(self) -> bool:
        """Whether every expert must be measured without a skill on validation rows first."""
        return self.kind == "best_expert" or (self.stand_in == BEST and self.without == "both")


def _typed(value: Any) -> Any:
    """YAML's scalars arrive as text: what reads as JSON becomes what it says."""
    if isinstance(value, dict):
        return {key: _typed(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_typed(item) for item in value]
    if isinstance(value, str):
        try:
            return json.loads(value)
        except ValueError:
            return value
    return value
