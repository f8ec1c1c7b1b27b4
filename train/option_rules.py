"""What cannot go together in a training config; every sentence names the keys, their values and the way out.

One idea: a list of small checks over one frozen config. verl itself finds most of these in a worker, minutes after the
start, as a bare assertion.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from train.config import TrainConfig


def conflicts(config: TrainConfig) -> list[str]:
    """Every impossible combination of `config`, in the order of its sections."""
    return [*_lengths(config), *_batches(config), *_rewards(config), *_losses(config), *_places(config)]


def nearest_multiples(value: int, step: int) -> tuple[int, int]:
    """The multiples of `step` at and around `value`; the lower one is at least `step`."""
    low = max(step, value // step * step)
    return low, low + step if value > low else low


def _lengths(config: TrainConfig) -> Iterator[str]:
    p, g = config.protocol, config.grpo
    needed = p.max_turn_tokens + p.max_observation_tokens + 1
    if needed > p.max_trajectory_tokens:
        yield (
            f"protocol: one turn ({p.max_turn_tokens}), one observation ({p.max_observation_tokens}) and a token "
            f"to go on with make {needed} tokens, more than max_trajectory_tokens ({p.max_trajectory_tokens})"
        )
    longest = p.max_prompt_tokens + p.max_trajectory_tokens
    if g.dynamic_batch and g.micro_tokens < longest:
        yield (
            f"grpo.micro_tokens ({g.micro_tokens}) cannot hold one row of protocol.max_prompt_tokens + "
            f"max_trajectory_tokens ({p.max_prompt_tokens} + {p.max_trajectory_tokens} = {longest}): "
            f"set grpo.micro_tokens={longest} or more"
        )


def _batches(config: TrainConfig) -> Iterator[str]:
    g, world = config.grpo, config.cluster.nodes * config.cluster.gpus_per_node
    if not config.data.train_files and config.data.train_rows < g.prompts:
        yield (f"data: train_rows ({config.data.train_rows}) must hold at least one step of grpo.prompts ({g.prompts})")
    mini = g.mini_prompts or g.prompts
    if g.prompts % mini:
        low, high = _nearest_divisors(g.prompts, mini)
        yield (
            f"grpo.mini_prompts ({mini}) does not divide grpo.prompts ({g.prompts}): the nearest that do are "
            f"{low} and {high}"
        )
    if mini * g.samples % world:
        low, high = nearest_multiples(mini, _step(g.samples, world))
        name = "mini_prompts" if mini != g.prompts else "prompts"
        name += " (and grpo.mini_prompts)" if g.mini_prompts == g.prompts else ""
        yield (
            f"an update of {mini} prompts x {g.samples} samples = {mini * g.samples} rollouts does not divide over "
            f"{world} GPUs (cluster.nodes x cluster.gpus_per_node): set grpo.{name} to {low} or {high}"
        )
    elif not g.dynamic_batch:
        each = mini * g.samples // world
        if g.micro_rollouts is None or g.log_prob_rollouts is None:
            yield "grpo.dynamic_batch=false needs grpo.micro_rollouts and grpo.log_prob_rollouts"
        elif each % g.micro_rollouts:
            low, high = _nearest_divisors(each, g.micro_rollouts)
            yield (
                f"grpo.micro_rollouts ({g.micro_rollouts}) does not divide the {each} rollouts of one GPU's update: "
                f"the nearest that do are {low} and {high}"
            )


def _rewards(config: TrainConfig) -> Iterator[str]:
    r, horizon = config.reward, config.protocol.horizon
    if not r.answer and not r.format:
        yield "reward: with answer and format both false every episode has the same reward; keep one of them"
    if (r.call_weight or r.cost_weight) and not r.answer:
        yield "reward: call_weight and cost_weight are taken off right answers; they need answer: true"
    if r.min_calls > horizon:
        yield f"reward.min_calls ({r.min_calls}) is more than protocol.horizon ({horizon}) allows"
    if r.min_calls != 1 and not r.format:
        yield "reward.min_calls is part of the form; it needs reward.format: true"
    if r.call_weight and r.min_calls > r.free_calls:
        yield (
            f"reward: call_weight would punish the {r.min_calls} calls that min_calls asks for; "
            f"set free_calls to at least {r.min_calls}"
        )


def _losses(config: TrainConfig) -> Iterator[str]:
    g = config.grpo
    if g.clip_low >= 1:
        yield f"grpo.clip_low ({g.clip_low:g}) must be below 1: a probability ratio is never negative"
    if g.loss == "gspo" and g.spare_above < 1:
        yield "grpo: spare_above spares single tokens, gspo weighs whole trajectories; leave spare_above at 1"
    if g.loss == "gspo" and g.correction == "token":
        yield "grpo: gspo weighs whole trajectories; set correction: sequence instead of token"


def _places(config: TrainConfig) -> Iterator[str]:
    world = config.cluster.nodes * config.cluster.gpus_per_node
    if world % config.engine.tensor_parallel:
        yield (
            f"engine.tensor_parallel ({config.engine.tensor_parallel}) does not divide the {world} GPUs of the cluster"
        )
    if config.engine.tensor_parallel > config.cluster.gpus_per_node:
        yield (
            f"engine.tensor_parallel ({config.engine.tensor_parallel}) is more than a node's GPUs "
            f"(cluster.gpus_per_node {config.cluster.gpus_per_node})"
        )
    if config.platform == "cpu":
        if config.cluster.nodes > 1:
            yield f"cluster.nodes ({config.cluster.nodes}): platform cpu is one machine"
        if config.ray.address is not None:
            yield "ray.address: platform cpu has a cluster of its own, of slots that no other one has"
        if config.engine.tensor_parallel > 1:
            yield f"engine.tensor_parallel ({config.engine.tensor_parallel}): platform cpu has one engine a process"
        if config.engine.attention != "sdpa":
            yield "engine.attention: platform cpu has sdpa only"


def _step(samples: int, world: int) -> int:
    """The least number of prompts whose rollouts divide over `world`."""
    return next(prompts for prompts in range(1, world + 1) if prompts * samples % world == 0)


def _nearest_divisors(whole: int, wanted: int) -> tuple[int, int]:
    divisors = [d for d in range(1, whole + 1) if whole % d == 0]
    low = max(d for d in divisors if d <= wanted)
    return low, min((d for d in divisors if d >= wanted), default=whole)
