"""What the options beyond the paper change in a rollout of verl's agent loop: chat-turn observations, other rewards."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from train import agent_loop
from train.config import TrainConfig
from train.engine_policy import EnginePolicy, PromptCache
from train.grpo import write_job_files
from train.paths import RunPaths


@pytest.fixture
def shared_of(tmp_path: Path, tiny_policy: Path) -> Iterator[Callable[..., Any]]:
    """What the rollouts of a process share, from the files that a launcher writes."""
    from transformers import AutoProcessor

    def make(**fields: Any) -> Any:
        paths = RunPaths.at(tmp_path)
        write_job_files(TrainConfig.model_validate(fields), paths, 1)
        processor = AutoProcessor.from_pretrained(tiny_policy)
        return agent_loop._Shared(agent_loop._settings(str(paths.rollout_settings)), processor)

    yield make
    agent_loop._settings.cache_clear()


def test_chat_observations_take_the_words_of_the_policys_template(shared_of: Callable[..., Any]) -> None:
    shared = shared_of(protocol={"observations": "chat"})
    policy = EnginePolicy(object(), shared.encoder, PromptCache(), None, {}, "r", shared.frame)
    assert policy.frame is not None
    block = "\n<information> 4 </information>\n"
    framed = policy.frame.around(block, "<search> A@@S: q </search>")
    assert framed == ("<|im_end|>\n<|im_start|>user\n<information> 4 </information><|im_end|>\n<|im_start|>assistant\n")
    ids = policy.tokenizer.encode(framed)
    chat = shared.encoder.processor.tokenizer.convert_tokens_to_ids(["<|im_start|>", "<|im_end|>"])
    assert [ids.count(token) for token in chat] == [2, 2]  # markers of the template, not spelled text


def test_by_default_observations_stand_inline(shared_of: Callable[..., Any]) -> None:
    assert shared_of().frame is None


def test_the_reward_rule_of_the_config_reaches_the_rollouts(shared_of: Callable[..., Any]) -> None:
    rule = shared_of(reward={"format": False, "call_weight": 0.1, "free_calls": 2}).rule
    assert (rule.answer, rule.format, rule.call_weight, rule.free_calls) == (True, False, 0.1, 2)


def test_settings_of_an_earlier_version_are_read_with_the_papers_reward() -> None:
    raw: dict[str, Any] = {
        "registry": [], "cache": "c", "rollouts": "r", "attempt": 1, "seed": 0, "prompt_style": "none", "budget": {},
        "episode_seconds": 1.0, "turn_seconds": 1.0,
    }  # fmt: skip
    settings = agent_loop.RolloutSettings(**raw)
    assert (settings.reward, settings.observations) == ({}, "inline")


def test_a_shipped_registry_is_known_by_its_name_in_any_folder(
    shared_of: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = "experts:\n  Mine:\n    description: mine\n    backend: {type: python, target: a:B}\n"
    (tmp_path / "mine.yaml").write_text(mine)
    monkeypatch.chdir(tmp_path)
    shared = shared_of(registry=("embedded", "mine.yaml"))
    assert shared.settings.registry == ("embedded", str(tmp_path / "mine.yaml"))
    assert "Mine" in [expert.name for expert in shared.registry.experts]
