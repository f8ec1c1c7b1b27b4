"""The policies behind the arms of an evaluation.

The one idea: every arm, baselines and oracle included, is a policy driven by the same runner with the same
experts, so that all rows of the table are made of the same kind of trajectory.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from eval.arm import Arm
from eval.config import EvalConfig
from eval.matrix import Matrix, Pair
from eval.pools import Measured
from eval.variants import Variant
from orchestrator.episode import Episode
from orchestrator.policies.direct import Direct
from orchestrator.policies.embedding_client import EmbeddingClient
from orchestrator.policies.fixed_pair import FixedPair
from orchestrator.policies.in_process import InProcessPolicy
from orchestrator.policies.keyword_router import KeywordRouter
from orchestrator.policies.openai_server import OpenAIServerPolicy
from orchestrator.policies.random_pair import RandomPair
from orchestrator.policies.retrieval import RetrievalDispatch
from orchestrator.policy import Policy, PolicyTurn
from registry.errors import UserFault
from registry.prompt import system_prompt
from registry.registry import Registry


@dataclass(frozen=True)
class Choices:
    """What was measured beforehand: the matrix of the validation split, and the oracle's pair of each row."""

    matrix: Matrix | None = None
    oracle: dict[str, Pair] = field(default_factory=dict)
    """Filled as rows come."""
    plain: Matrix | None = None
    """Every expert without a skill."""

    @property
    def measured(self) -> Measured:
        return Measured(self.matrix, self.plain)


class PairByRow:
    """Asks the pair laid down for each row, then repeats its reply."""

    def __init__(self, name: str, pairs: Mapping[str, Pair]) -> None:
        self.name = name
        self._pairs = pairs

    async def act(self, episode: Episode, *, seed: int) -> PolicyTurn:
        return await FixedPair(*self._pairs[episode.task_id]).act(episode, seed=seed)

    async def aclose(self) -> None:
        """Nothing is held."""


class PairByFamily:
    """Asks the pair laid down for the row's family (which no policy may know), then repeats its reply."""

    name = "family_pair"

    def __init__(self, pairs: Mapping[str, Pair], otherwise: Pair) -> None:
        self._pairs = pairs
        self._otherwise = otherwise

    async def act(self, episode: Episode, *, seed: int) -> PolicyTurn:
        group = episode.task.group if episode.task else ""
        return await FixedPair(*self._pairs.get(group, self._otherwise)).act(episode, seed=seed)

    async def aclose(self) -> None:
        """Nothing is held."""


def build_policy(config: EvalConfig, registry: Registry, variant: Variant, choices: Choices) -> Policy:
    """The policy of an arm at a temperature; the caller closes it.

    registry: what the arm sees (``eval.pools``); all names that it may write, and its system prompt, come from there.

    Raises:
        UserFault: a checkpoint folder is missing or holds no model, an API key is not set.
    """
    arm = config.arms[variant.arm]
    if arm.policy is not None:
        policy = _model(config, registry, arm, variant.temperature)
        return Direct(policy) if arm.kind == "direct" else policy
    if arm.kind == "random_pair":
        return RandomPair(registry, seed=config.seed)
    if arm.kind == "keyword":
        return KeywordRouter(registry, temperature=0.0)
    if arm.kind == "retrieval":
        return _retrieval(config, registry, arm)
    if arm.kind in ("single_expert", "best_expert"):
        return FixedPair(registry.experts[0].name, registry.skills[0].name)
    matrix = choices.matrix
    if matrix is None:
        raise ValueError(f"arm {variant.arm!r} of kind {arm.kind!r} needs the matrix")
    if arm.kind == "best_single_pair":
        return FixedPair(*matrix.best_single()[0])
    if arm.kind == "family_pair":
        return PairByFamily({family: matrix.best(family)[0] for family in matrix.families}, matrix.best_single()[0])
    return PairByRow("oracle", choices.oracle)


def _model(
    config: EvalConfig, registry: Registry, arm: Arm, temperature: float
) -> InProcessPolicy | OpenAIServerPolicy:
    assert arm.policy is not None
    source = config.policies[arm.policy]
    style = arm.prompt_style or ("none" if arm.kind == "direct" else config.prompt_style)
    system = None if style == "none" else system_prompt(registry, style, horizon=config.budget.horizon)
    path = config.checkpoint(arm.policy)
    if path is not None:
        require_checkpoint(config, arm.policy)
        return InProcessPolicy(path, temperature, system=system, name=arm.policy)
    assert source.server is not None and source.model is not None
    return OpenAIServerPolicy(
        source.server,
        source.model,
        temperature=temperature,
        style=source.style,
        system=system,
        api_key_env=source.api_key_env,
        timeout_s=config.deadlines.episode_s,
        extensions=source.style == "inline",
        request=source.request,
    )


def _retrieval(config: EvalConfig, registry: Registry, arm: Arm) -> RetrievalDispatch:
    assert arm.method is not None
    if (place := arm.embeddings) is None:
        return RetrievalDispatch(registry, arm.method)
    client = EmbeddingClient(
        place.server, place.model, api_key_env=place.api_key_env, timeout_s=config.deadlines.call_s
    )
    return RetrievalDispatch(registry, arm.method, client)


def require_checkpoint(config: EvalConfig, name: str) -> None:
    """Raises UserFault where the folder of an in-process policy is not there."""
    path = config.checkpoint(name)
    if path is not None and not (path / "config.json").is_file():
        raise UserFault(
            f"policy {name!r}: no checkpoint in {path}",
            where=f"policies.{name}.path",
            fix="train first (`maestro train`), or point at the run with training=FOLDER or policies."
            f"{name}.path=FOLDER",
        )
