"""The training config: one YAML file, strict, every field with its meaning.

One idea: a field exists because something reads it, and impossible combinations are refused before anything starts.
`describe()` prints every field with its value and meaning.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, get_args

import yaml
from pydantic import BaseModel, Field, ValidationError, model_validator

from registry.errors import Fault, UserFault
from registry.strict_config import Strict, key_faults, lay_over
from registry.yamltree import MAX_BYTES, read_tree
from train.option_rules import conflicts
from train.options import ClusterSection, EngineSection, LoraSection, RaySection, RewardSection
from train.watch_options import WatchSection


class DataSection(Strict):
    """Where the rows come from."""

    benchmark: str = Field("embedded", description="benchmark whose generator writes the rows")
    train_rows: int = Field(1536, ge=1, description="rows of the training split")
    validation_rows: int = Field(120, ge=1, description="rows of the validation split")
    train_files: tuple[str, ...] = Field((), description="verl parquet files to use instead of the generator")
    validation_files: tuple[str, ...] = Field((), description="verl parquet files to use instead of the generator")


class ProtocolSection(Strict):
    """How an episode runs; all lengths are tokens."""

    horizon: int = Field(4, ge=1, description="delegations an episode (T, paper 4.1)")
    max_prompt_tokens: int = Field(128, ge=1, description="question, image and system prompt together")
    max_turn_tokens: int = Field(48, ge=1, description="one policy turn")
    max_observation_tokens: int = Field(32, ge=4, description="one observation, tags included")
    max_trajectory_tokens: int = Field(160, ge=8, description="everything after the prompt")
    malformed_turns: int = Field(0, ge=0, description="malformed turns answered with a hint before the episode ends")
    observations: Literal["inline", "chat"] = Field(
        "inline", description="inline: in the policy's own turn (the paper's way); chat: as a user turn of the template"
    )
    prompt_style: Literal["none", "compact", "full"] = Field("none", description="system prompt from the registry")
    episode_seconds: float = Field(60.0, gt=0, description="deadline of one episode")
    turn_seconds: float = Field(30.0, gt=0, description="deadline of one policy turn and of one delegation")


class ColdStartSection(Strict):
    """Supervised learning of the protocol from a weak, noisy keyword router (embedded tier)."""

    steps: int = Field(900, ge=1, description="optimiser steps")
    batch: int = Field(48, ge=1, description="demonstrations a step")
    rate: float = Field(2e-3, gt=0, description="peak learning rate")
    router_temperature: float = Field(1.0, gt=0, description="noise of the keyword router that is imitated")
    rehearsal_share: float = Field(0.35, ge=0, lt=1, description="share of a batch with other words, names and replies")
    demonstrations: int = Field(1200, ge=1, description="rows whose router rollouts are demonstrated")
    vocabulary: int = Field(560, ge=300, description="learned tokens of the tiny tokenizer")


class GrpoSection(Strict):
    """Group-relative policy optimisation (paper 3.3, D.4)."""

    steps: int = Field(160, ge=1, description="update steps")
    prompts: int = Field(16, ge=1, description="prompts a step")
    samples: int = Field(8, ge=2, description="trajectories a prompt: the group size G")
    rate: float = Field(1e-4, gt=0, description="learning rate")
    warmup: int = Field(0, ge=0, description="steps over which the rate rises to its value")
    schedule: Literal["constant", "cosine"] = Field("constant", description="cosine: falls to a tenth of the rate")
    kl: float = Field(0.0, ge=0, description="weight of the KL divergence from the policy before RL")
    weight_decay: float = Field(0.01, ge=0, description="AdamW weight decay")
    clip_low: float = Field(0.2, gt=0, description="lower clip of the probability ratio")
    clip_high: float = Field(0.2, gt=0, description="upper clip of the probability ratio")
    spare_above: float = Field(
        1.0, gt=0, le=1, description="tokens of higher probability take no blame from failed rollouts; 1 = all do"
    )
    entropy: float = Field(0.0, ge=0, description="entropy bonus")
    temperature: float = Field(1.0, gt=0, description="sampling temperature of rollouts")
    micro_tokens: int = Field(8192, ge=128, description="tokens a forward pass of the actor")
    mini_prompts: int | None = Field(None, ge=1, description="prompts an optimiser step; none = all prompts of a step")
    dynamic_batch: bool = Field(True, description="forward passes are filled to micro_tokens, not to a count of rows")
    micro_rollouts: int | None = Field(None, ge=1, description="rollouts a pass and GPU, without dynamic_batch")
    log_prob_rollouts: int | None = Field(None, ge=1, description="the same for passes that only compute log-probs")
    betas: tuple[float, float] = Field((0.9, 0.999), description="AdamW betas")
    grad_clip: float = Field(1.0, gt=0, description="largest norm of the gradient")
    validation_samples: int = Field(1, ge=1, description="rollouts of a validation prompt")
    loss: Literal["clip", "gspo"] = Field(
        "clip", description="clip: a ratio a token; gspo: one ratio a trajectory (arXiv 2507.18071)"
    )
    correction: Literal["none", "token", "sequence"] = Field(
        "none", description="weight p_actor / p_rollout, cut at correction_cap; one more forward pass a step"
    )
    correction_cap: float = Field(2.0, gt=0, description="largest importance weight")
    drop_flat: bool = Field(False, description="groups of one reward are dropped, and others are sampled instead")
    drop_flat_most: int = Field(3, ge=1, description="groups dropped a step at most, in steps' worth; more stay in")
    requeue: int = Field(
        3, ge=0, le=16, description="times that a row comes back whose rollouts were lost to machinery; 0 = it is lost"
    )
    max_gap: float = Field(1e-4, gt=0, description="largest |p_actor - p_rollout| before the run warns")


class CheckpointSection(Strict):
    """What is kept, and when it is measured."""

    every: int = Field(20, ge=1, description="steps between checkpoints")
    keep: int = Field(2, ge=1, description="checkpoints kept")
    validate_every: int = Field(40, ge=0, description="steps between validations; 0 = only at the end")
    grace: float = Field(
        25.0, ge=0, description="seconds after SIGTERM that the step under way has to end and be saved; 0 = none"
    )


class TrainConfig(Strict):
    """One training run."""

    name: str = Field("embedded", description="name of the run in logs")
    run: Path = Field(Path("runs/embedded"), description="folder of the run")
    seed: int = Field(0, ge=0, description="seed of rows, weights, order and sampling")
    registry: tuple[str, ...] = Field((), description="registry files or folders; empty = the embedded registry")
    endpoints: Path | None = Field(None, description="file of `maestro experts serve`: where the served models are")
    platform: Literal["cpu", "cuda"] = Field("cpu", description="what the actor and the rollout run on")
    policy: str | None = Field(None, description="Hugging Face folder to start from; none = build the tiny Qwen3-VL")
    resume: str = Field(
        "auto",
        min_length=1,
        description="auto: go on from the newest checkpoint; never: begin anew; or a folder: begin from another run's",
    )
    data: DataSection = DataSection()  # type: ignore[call-arg]
    protocol: ProtocolSection = ProtocolSection()  # type: ignore[call-arg]
    reward: RewardSection = RewardSection()  # type: ignore[call-arg]
    cold_start: ColdStartSection = ColdStartSection()  # type: ignore[call-arg]
    grpo: GrpoSection = GrpoSection()  # type: ignore[call-arg]
    lora: LoraSection = LoraSection()  # type: ignore[call-arg]
    cluster: ClusterSection = ClusterSection()  # type: ignore[call-arg]
    ray: RaySection = RaySection()  # type: ignore[call-arg]
    engine: EngineSection = EngineSection()  # type: ignore[call-arg]
    checkpoint: CheckpointSection = CheckpointSection()  # type: ignore[call-arg]
    watch: WatchSection = WatchSection()  # type: ignore[call-arg]
    verl: dict[str, Any] = Field(default_factory=dict, description="further verl settings, dotted key to value")

    @model_validator(mode="after")
    def _together(self) -> TrainConfig:
        found = conflicts(self)
        if found:
            raise ValueError("; ".join(found))
        return self


def load_config(path: Path, overrides: Sequence[str] = ()) -> TrainConfig:
    """Read `path` and apply `key.sub=value` overrides.

    Raises UserFault naming the file, the key and the nearest key.
    """
    raw = read_file(path)
    for item in overrides:
        lay_override(raw, item)
    try:
        return TrainConfig(**raw)
    except ValidationError as error:
        raise UserFault(
            _explain(error), where=str(path), fix="`maestro train --explain CONFIG` lists every key"
        ) from error


def read_file(path: Path) -> dict[str, Any]:
    """The config file as written, values unchecked. Raises UserFault where it cannot be read as one mapping."""
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
        text = content.decode("utf-8-sig")
    except OSError as error:
        raise UserFault(f"cannot read the config: {error.strerror}", where=str(path), fix="check the path") from error
    except UnicodeDecodeError as error:
        raise UserFault(f"not UTF-8 text: {error}", where=str(path), fix="save the file as UTF-8") from error
    if len(content) > MAX_BYTES:
        raise UserFault(f"the config is larger than {MAX_BYTES} bytes", where=str(path), fix="see configs/train/")
    faults: list[Fault] = []
    read_tree(path, faults)  # refuses what the reader below would pass over: repeated keys, tags, several documents
    if faults and text.strip():
        listing = "\n".join(str(fault) for fault in faults)
        raise UserFault(f"not a valid config:\n{listing}", where=str(path), fix="mend the lines named above")
    raw = yaml.safe_load(text) or {}
    if not isinstance(raw, dict):
        raise UserFault("the config must be a mapping of keys to values", where=str(path), fix="see configs/train/")
    return raw


def lay_override(raw: dict[str, Any], item: str) -> None:
    """Lay one `key.sub=value` over `raw`. Raises UserFault where it is no such thing."""
    key, sign, value = item.partition("=")
    if not sign or not key:
        raise UserFault(f"override {item!r} is not key=value", fix="for example grpo.steps=40")
    keys = key.split(".", 1) if key.startswith("verl.") else key.split(".")  # verl's own keys hold dots
    try:
        parsed = yaml.safe_load(value)
    # A scalar that looks like a date or a tagged value, or a nest of brackets, fails in the reader's own ways.
    except (yaml.YAMLError, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise UserFault(f"override {item[:200]!r}: the value is not valid YAML", fix="quote it") from error
    taken = lay_over(raw, keys, parsed)
    if taken is not None:
        raise UserFault(f"override {item!r}: {taken!r} holds a value, not a section", fix="check the key")


def _explain(error: ValidationError) -> str:
    lines = []
    for fault in key_faults(TrainConfig, error):
        text = fault.message
        if fault.kind == "extra_forbidden":
            text = "unknown key" + (f" (did you mean {fault.near!r}?)" if fault.near else "")
        lines.append(f"{fault.name}: {text}" if fault.name else text)
    return "; ".join(lines)


def describe(config: TrainConfig) -> list[tuple[str, str, str]]:
    """Every key with its value and meaning, in order: (dotted key, value, meaning)."""
    rows: list[tuple[str, str, str]] = []

    def walk(section: BaseModel, prefix: str) -> None:
        for name, field in type(section).model_fields.items():
            value = getattr(section, name)
            if isinstance(value, BaseModel):
                walk(value, f"{prefix}{name}.")
                continue
            choices = [str(c) for c in get_args(field.annotation)] if isinstance(value, str) else []
            meaning = field.description or ""
            if choices and all(c.isalpha() for c in choices):
                meaning += f" ({' | '.join(choices)})"
            rows.append((prefix + name, str(value), meaning))

    walk(config, "")
    return rows
