"""Sections of the training config that go beyond the paper, or that only a GPU node asks for.

One idea: every option is off at its default, so a config that names none of them trains as the paper describes; what
cannot go together is refused by `train.option_rules` before anything starts.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from registry.strict_config import Strict


class RewardSection(Strict):
    """What of an episode is rewarded: R = r_ans + r_fmt (paper 3.4), its ablations, and what a call may cost."""

    answer: bool = Field(True, description="r_ans counts; false: the ablation without the outcome reward")
    format: bool = Field(True, description="r_fmt counts; false: the ablation without the format reward")
    min_calls: int = Field(1, ge=0, description="well-formed calls that the form asks for; the paper's is 1")
    call_weight: float = Field(0.0, ge=0, description="taken off a right answer for each call beyond free_calls")
    free_calls: int = Field(1, ge=0, description="calls that call_weight leaves alone")
    cost_weight: float = Field(
        0.0, ge=0, description="taken off a right answer for each unit of money its calls cost (registry prices)"
    )
    max_penalty: float = Field(
        0.5, gt=0, lt=1, description="most that calls and cost take off, so that right stays better than wrong"
    )


class LoraSection(Strict):
    """Low-rank adapters instead of all weights; merged into the weights whenever the rollout engine gets them."""

    rank: int = Field(0, ge=0, description="rank of the adapters; 0 = all weights are trained")
    alpha: int = Field(32, ge=1, description="scale of the adapters: alpha / rank")
    vision: bool = Field(False, description="adapters in the vision tower too")


class ClusterSection(Strict):
    """The GPUs of actor and rollout; experts have their own (`maestro experts serve`)."""

    nodes: int = Field(1, ge=1, description="nodes of the Ray cluster that train")
    gpus_per_node: int = Field(1, ge=1, description="GPUs of each of them; on a CPU, actor processes")


class EngineSection(Strict):
    """vLLM beside the actor, and how the actor's forward pass is made."""

    tensor_parallel: int = Field(1, ge=1, description="GPUs that one rollout engine is spread over")
    memory: float = Field(0.6, gt=0, lt=1, description="share of a GPU's memory that vLLM may take while it samples")
    max_num_seqs: int = Field(512, ge=1, description="sequences that one engine samples at once")
    dtype: Literal["bfloat16", "float16", "float32"] = Field("bfloat16", description="type of the rollout's weights")
    attention: Literal["sdpa", "flash_attention_2"] = Field(
        "sdpa", description="the actor's attention; flash_attention_2 needs flash-attn on every node and packs rows"
    )
    offload: bool = Field(False, description="weights and optimiser wait in the host's memory while others work")
    sync_mb: int = Field(2048, ge=16, description="bucket in which new weights go to the rollout engine, in MiB")


class RaySection(Strict):
    """Which Ray cluster runs the job. `cluster` says how many of its nodes and GPUs."""

    address: str | None = Field(
        None,
        pattern=r"^(auto|(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):[0-9]{1,5})$",
        description="none: one of its own on this machine, ended with the run; auto: the one that `ray start` began "
        "here; HOST:PORT: that one",
    )
