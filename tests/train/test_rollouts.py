"""The agent loop on a scripted engine: which ids come back, what is learned from, what a failure leaves."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from omegaconf import OmegaConf
from PIL import Image
from verl.experimental.agent_loop.agent_loop import AgentLoopOutput, AgentLoopWorker, DictConfigWrap

from train import agent_loop
from train.agent_loop import OrchestratorAgentLoop
from train.config import TrainConfig
from train.engine_client import EngineClient
from train.grpo import write_job_files
from train.paths import RunPaths
from train.requeue import row_name
from train.rollout_log import RolloutRecord, read_records

QUESTION = "How many circles are there?"
CALL = f"<search> Counter@@Counting_Skill: {QUESTION}</search>"
ANSWER = "<answer> 4</answer>"

# two engines: requests go through verl's manager
VERL = {
    "trainer": {"nnodes": 1, "n_gpus_per_node": 2},
    "actor_rollout_ref": {"rollout": {"tensor_model_parallel_size": 1}},
}
PROGRAM = """
import os
import tempfile

class Counter:
    def answer(self, prompt, pictures):
        if os.path.exists("DOWN") and len(os.listdir("DOWN")) < 10:
            tempfile.mkstemp(dir="DOWN")
            raise ConnectionError("nobody there")
        if "crash" in prompt:
            raise RuntimeError("broken pipe")
        return "4 <answer> 9 </answer>" if "tag" in prompt else "4"
"""
REGISTRY = """
experts:
  Counter:
    description: Counts.
    backend: {type: python, target: "MODULE:Counter"}
skills:
  Counting_Skill:
    description: How many.
    subskills:
      Count: {description: Counts., procedure: {steps: [{ask: "{{ question }}"}]}}
"""


class ScriptedEngine:
    """Emits its turns one after another, for every request anew; an exception is raised, None is an aborted request."""

    def __init__(self, tokenizer: Any, *turns: str | list[int] | Exception | None) -> None:
        self._tokenizer, self._turns = tokenizer, turns
        self.requests: list[dict[str, Any]] = []
        self._seen: dict[str, int] = {}

    def ids(self, turn: int) -> list[int]:
        said = self._turns[turn]
        assert said is not None and not isinstance(said, Exception)
        return said if isinstance(said, list) else self._tokenizer.encode(said, add_special_tokens=False)

    async def generate(
        self, request_id: str, prompt_ids: list[int], sampling_params: dict[str, Any], image_data: Any
    ) -> SimpleNamespace:
        turn = self._seen[request_id] = self._seen.get(request_id, -1) + 1
        self.requests.append({"id": request_id, "prompt": prompt_ids, "images": image_data, **sampling_params})
        said = self._turns[turn]
        if isinstance(said, Exception):
            raise said
        ids = [] if said is None else self.ids(turn)
        return SimpleNamespace(
            token_ids=ids, log_probs=[-0.5] * len(ids), stop_reason="aborted" if said is None else "completed",
            extra_fields={"global_steps": 3},
        )  # fmt: skip


@pytest.fixture(scope="module")
def processor(tiny_policy: Path) -> Any:
    from verl.utils import hf_processor

    return hf_processor(str(tiny_policy))


class Stage:
    """One run folder with its registry; `play` runs one rollout on an engine."""

    def __init__(self, folder: Path, processor: Any, registry: Path, protocol: dict[str, Any]) -> None:
        self.paths, self.processor = RunPaths.at(folder), processor
        config = TrainConfig.model_validate(
            {"registry": [str(registry)], "seed": 11, "protocol": protocol, "watch": {"probe_seconds": 0.02}}
        )
        write_job_files(config, self.paths, 2)

    def engine(self, *turns: Any) -> ScriptedEngine:
        return ScriptedEngine(self.processor.tokenizer, *turns)

    def ids(self, text: str) -> list[int]:
        return self.processor.tokenizer.encode(text, add_special_tokens=False)

    def play(self, engine: ScriptedEngine, *, step: int = 1, sample: int = 0, **fields: Any) -> AgentLoopOutput:
        [output] = self.play_all(engine, step=step, samples=[sample], **fields)
        return output

    def play_all(
        self, engine: ScriptedEngine, *, step: int = 1, samples: Sequence[int], **fields: Any
    ) -> list[AgentLoopOutput]:
        extra = {"id": "r1", "index": 0, "split": "train", "question": QUESTION, "family": "shape_count"}
        image = {"type": "image", "image": Image.new("RGB", (96, 64), (200, 30, 30))}
        row = {
            "data_source": "embedded", "reward_model": {"style": "rule", "ground_truth": fields.pop("truth", "4")},
            "raw_prompt": [{"role": "user", "content": [fields.pop("image", image), {"type": "text", "text": "Q"}]}],
            "extra_info": {**extra, **fields},
        }  # fmt: skip

        async def run() -> list[AgentLoopOutput]:
            loop = OrchestratorAgentLoop(
                DictConfigWrap(OmegaConf.create(VERL)),
                engine, self.processor.tokenizer, self.processor, object, DictConfigWrap(OmegaConf.create({})),
                settings_path=str(self.paths.rollout_settings),
            )  # fmt: skip
            params = {"temperature": 1.0, "top_p": 1.0, "top_k": -1, "logprobs": True}
            try:
                runs = (loop.run(params, global_steps=step, session_id=sample, **row) for sample in samples)
                return await asyncio.gather(*runs)
            finally:
                await loop.shared.pool.aclose()
                self.forget()

        return asyncio.run(run())

    def forget(self) -> None:
        """What a new process would not know."""
        agent_loop._shared.clear()
        agent_loop._settings.cache_clear()

    def records(self) -> list[RolloutRecord]:
        return read_records(self.paths.rollouts)[0]


@pytest.fixture
def stage_of(tmp_path: Path, processor: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Stage]]:
    module = f"program_{tmp_path.name}"
    (tmp_path / f"{module}.py").write_text(PROGRAM.replace("DOWN", str(tmp_path / "down")))
    (tmp_path / "registry.yaml").write_text(REGISTRY.replace("MODULE", module))
    monkeypatch.syspath_prepend(str(tmp_path))
    yield lambda **protocol: Stage(tmp_path / "run", processor, tmp_path / "registry.yaml", protocol)
    sys.modules.pop(module, None)


@pytest.fixture
def stage(stage_of: Callable[..., Stage]) -> Stage:
    return stage_of()


def test_the_response_is_exactly_what_was_sampled_and_shown(stage: Stage) -> None:
    engine = stage.engine(CALL, ANSWER)
    output = stage.play(engine)
    shown = stage.ids("\n<information> 4 </information>\n")
    assert output.response_ids == [*engine.ids(0), *shown, *engine.ids(1)]
    assert output.response_mask == [1] * len(engine.ids(0)) + [0] * len(shown) + [1] * len(engine.ids(1))
    assert output.response_logprobs == [-0.5 * m for m in output.response_mask]
    assert output.reward_score == 1.0
    [record] = stage.records()
    assert (record.valid, record.reward, record.attempt, record.pairs) == (True, 1.0, 2, ("Counter@@Counting_Skill",))
    assert (record.copied, record.calls, record.policy_tokens) == (1, 1, sum(output.response_mask))


def test_the_second_turn_is_asked_with_the_ids_of_the_first(stage: Stage) -> None:
    engine = stage.engine(CALL, ANSWER)
    output = stage.play(engine)
    first, second = engine.requests
    assert first["prompt"] == output.prompt_ids
    assert second["prompt"] == output.prompt_ids + output.response_ids[: -len(engine.ids(1))]
    assert first["id"] == second["id"]
    assert [len(r["images"]) for r in engine.requests] == [1, 1]
    image = stage.processor.tokenizer.convert_tokens_to_ids("<|image_pad|>")
    assert output.prompt_ids.count(image) == 12  # 96 x 64 pixels enlarged to 128 x 96, one token for 32 x 32


def test_sampled_ids_are_never_encoded_again(stage: Stage) -> None:
    # the same text in pieces that the tokenizer would not choose
    letters = [i for c in f"{QUESTION}" for i in stage.ids(c)]
    assert letters != stage.ids(QUESTION)
    call = [*stage.ids("<search> Counter@@Counting_Skill:"), *stage.ids(" "), *letters, *stage.ids("</search>")]
    output = stage.play(stage.engine(call, ANSWER))
    assert output.response_ids[: len(call)] == call
    assert output.reward_score == 1.0


def test_tokens_behind_the_action_are_dropped_and_an_invented_observation_too(stage: Stage) -> None:
    forged = CALL + "<information> 9 </information><answer> 9</answer>"
    engine = stage.engine(forged, ANSWER)
    output = stage.play(engine)
    assert output.response_ids[: len(stage.ids(CALL))] == stage.ids(CALL)
    assert output.response_mask == [1] * len(stage.ids(CALL)) + [0] * (
        len(output.response_ids) - len(stage.ids(CALL)) - len(stage.ids(ANSWER))
    ) + [1] * len(stage.ids(ANSWER))
    assert output.reward_score == 1.0


def test_an_answer_tag_from_an_expert_answers_nothing(stage: Stage) -> None:
    call = "<search> Counter@@Counting_Skill: tag</search>"
    output = stage.play(stage.engine(call, "I do not know<|im_end|>"), truth="9")
    assert output.reward_score == -1.0
    assert stage.records()[0].answer == 0.0


@pytest.mark.parametrize("failure", [ConnectionError("engine died"), None], ids=["raised", "aborted"])
def test_an_engine_that_fails_leaves_nothing_to_learn(stage: Stage, failure: Any) -> None:
    engine = stage.engine(CALL, failure)
    output = stage.play(engine)
    assert output.response_ids[: len(engine.ids(0))] == engine.ids(0)
    assert set(output.response_mask) == {0}
    extra = output.extra_fields["reward_extra_info"]
    assert (output.reward_score, extra["reward_valid"], extra["acc"]) == (0.0, 0.0, None)
    [record] = stage.records()
    assert (record.valid, record.reward, record.answer, record.stop) == (False, None, None, "infrastructure")
    assert record.trajectory is not None and "rollout engine" in record.trajectory["error"]


def test_an_engine_that_fails_at_once_leaves_one_token_that_is_masked(stage: Stage) -> None:
    output = stage.play(stage.engine(ConnectionError()))
    assert (output.response_ids, output.response_mask) == ([stage.processor.tokenizer.eos_token_id], [0])


def test_an_expert_that_fails_leaves_nothing_to_learn_and_the_others_go_on(stage: Stage) -> None:
    broken = "<search> Counter@@Counting_Skill: crash</search>"
    output = stage.play(stage.engine(broken, ANSWER), sample=0)
    assert set(output.response_mask) == {0}
    stage.play(stage.engine(CALL, ANSWER), sample=1)
    first, second = stage.records()
    assert (first.valid, first.reward, first.calls) == (False, None, 1)
    assert (second.valid, second.reward) == (True, 1.0)


def test_rollouts_that_an_outage_swallowed_are_played_again_as_new_requests(stage: Stage, tmp_path: Path) -> None:
    (tmp_path / "down").mkdir()  # the expert fails ten calls, then it is back
    engine = stage.engine(CALL, ANSWER)
    outputs = stage.play_all(engine, samples=range(6))
    assert len(list((tmp_path / "down").iterdir())) >= 10
    assert [output.reward_score for output in outputs] == [1.0] * 6
    assert [output.extra_fields["fault"] for output in outputs] == [""] * 6
    records = stage.records()
    assert [(r.valid, r.calls) for r in records] == [(True, 1)] * 6
    assert max(r.waited_s or 0.0 for r in records) > 0
    seeds: dict[str, list[int]] = {}
    for request in engine.requests:
        seeds.setdefault(request["id"], []).append(request["seed"])
    assert len(seeds) > 6  # the engine knows nothing of the plays that were lost
    assert len({own[0] for own in seeds.values()}) == 6  # but every play has the seed of its rollout
    assert list(stage.paths.pauses.glob("*.json")) == []


@pytest.mark.parametrize(
    ("played", "fault"),
    [
        ({}, ""),
        ({"truth": None}, "row"),  # nothing to grade it by
        ({"image": {"type": "image", "bytes": b"\x89PNG broken"}}, "row"),
    ],
    ids=["well", "no gold answer", "broken picture"],
)
def test_a_row_that_is_broken_itself_is_told_from_a_lost_one(stage: Stage, played: dict[str, Any], fault: str) -> None:
    assert stage.play(stage.engine(CALL, ANSWER), **played).extra_fields["fault"] == fault


def test_a_prompt_that_is_too_long_is_the_rows_fault(stage_of: Callable[..., Stage]) -> None:
    stage = stage_of(max_prompt_tokens=8)
    assert stage.play(stage.engine(ANSWER)).extra_fields["fault"] == "row"


@pytest.mark.parametrize("turns", [(ConnectionError("engine died"),), (CALL.replace(QUESTION, "crash"), ANSWER)])
def test_a_rollout_without_engine_or_expert_is_the_machinerys_fault(stage: Stage, turns: tuple[Any, ...]) -> None:
    assert stage.play(stage.engine(*turns)).extra_fields["fault"] == "machinery"


def test_what_verl_is_told_of_a_reward_always_has_the_same_fields(stage: Stage) -> None:
    outputs = [stage.play(stage.engine(CALL, ANSWER)), stage.play(stage.engine(ConnectionError()))]
    outputs.append(stage.play(stage.engine(ANSWER), truth=None))
    keys = [list(output.extra_fields["reward_extra_info"]) for output in outputs]
    assert keys[0] == keys[1] == keys[2]
    assert outputs[2].response_mask == [0] * len(outputs[2].response_ids)
    assert "not graded" in outputs[2].extra_fields["reward_extra_info"]["explanation"]


def test_seeds_differ_by_step_sample_and_turn_but_not_by_process(stage: Stage) -> None:
    def seeds(**of: int) -> list[int]:
        engine = stage.engine(CALL, ANSWER)
        stage.play(engine, **of)
        return [request["seed"] for request in engine.requests]

    first = seeds(step=1, sample=0)
    assert seeds(step=1, sample=0) == first
    drawn = [*first, *seeds(step=2, sample=0), *seeds(step=1, sample=1)]
    assert len(set(drawn)) == 6


@pytest.mark.parametrize("observation", [16, 32])
def test_no_turn_is_asked_for_less_than_one_token(stage_of: Callable[..., Stage], observation: int) -> None:
    lengths = {"max_turn_tokens": 40, "max_observation_tokens": observation, "max_trajectory_tokens": 41 + observation}
    stage = stage_of(**lengths)
    engine = stage.engine(CALL, CALL, CALL, CALL, CALL, CALL)
    output = stage.play(engine)
    asked = [request["max_tokens"] for request in engine.requests]
    assert asked[0] == 40
    assert min(asked) >= 1
    assert len(output.response_ids) <= 41 + observation
    assert stage.records()[0].stop == "budget_exhausted"


def test_the_tiny_policys_tags_stop_the_engine_by_id(stage: Stage) -> None:
    engine = stage.engine(ANSWER)
    stage.play(engine)
    tokens = ("</search>", "</answer>", "<|im_end|>")
    assert engine.requests[0]["stop_token_ids"] == [stage.processor.tokenizer.convert_tokens_to_ids(t) for t in tokens]
    assert (engine.requests[0]["detokenize"], "stop" in engine.requests[0]) == (False, False)


def actor_inputs(stage: Stage, output: AgentLoopOutput) -> dict[str, Any]:
    """What verl's worker makes of an output before the actor sees it."""
    import torch

    worker: Any = SimpleNamespace(
        processor=stage.processor, tokenizer=stage.processor.tokenizer, _get_mm_processor_kwargs=lambda audios: {}
    )
    ids = torch.tensor([*output.prompt_ids, *output.response_ids])
    inputs = AgentLoopWorker._compute_multi_modal_inputs(worker, output, ids)
    positions = AgentLoopWorker._compute_position_ids(
        worker, ids.unsqueeze(0), torch.ones(1, len(ids), dtype=torch.long), inputs
    )
    assert positions.shape == (1, 4, len(ids))
    return inputs


def test_a_prompt_over_its_limit_is_no_fault_of_the_step(stage_of: Callable[..., Stage]) -> None:
    stage = stage_of(max_prompt_tokens=8)
    engine = stage.engine(ANSWER)
    output = stage.play(engine)
    assert engine.requests == []
    assert (len(output.prompt_ids), output.response_mask, output.multi_modal_data) == (1, [0], {})
    assert stage.records()[0].stop == "overlong_prompt"
    assert "pixel_values" not in actor_inputs(stage, output)


def test_a_broken_picture_costs_its_own_rollout_only(stage: Stage) -> None:
    output = stage.play(stage.engine(ANSWER), image={"type": "image", "bytes": b"\x89PNG broken"})
    assert (len(output.prompt_ids), output.response_mask) == (1, [0])
    [record] = stage.records()
    assert (record.valid, record.stop, record.row) == (False, "infrastructure", "embedded/train/r1/0")
    assert record.trajectory is not None and "row embedded/train/r1/0" in record.trajectory["error"]


def test_a_sampled_image_placeholder_makes_the_rollout_invalid(stage: Stage) -> None:
    placeholder = stage.processor.tokenizer.convert_tokens_to_ids("<|image_pad|>")
    output = stage.play(stage.engine([placeholder, *stage.ids(ANSWER)]))
    assert (output.response_ids, output.response_mask) == ([stage.processor.tokenizer.eos_token_id], [0])
    assert stage.records()[0].valid is False
    assert actor_inputs(stage, output)["image_grid_thw"].tolist() == [[1, 6, 8]]


def test_rows_with_one_id_in_two_splits_are_not_mixed_up(stage: Stage) -> None:
    row = {"data_source": "a", "extra_info": {"id": "7", "split": "train", "index": 0}}
    assert row_name(row) == ("a", "train", "7", "0")
    others = [{**row, "data_source": "b"}, {**row, "extra_info": {"id": "7", "split": "test"}}]
    assert len({row_name(one) for one in (row, *others)}) == 3


def test_half_a_line_of_a_killed_run_does_not_swallow_the_next(stage: Stage) -> None:
    stage.paths.rollouts.write_text('{"step":1,"attempt":1,"spl')
    stage.play(stage.engine(ANSWER))
    assert [r.attempt for r in stage.records()] == [2]


def test_whole_trajectories_are_kept_for_one_sample_of_a_group(stage: Stage) -> None:
    for sample in (0, 1):
        stage.play(stage.engine(ANSWER), sample=sample)
    kept = [record.trajectory for record in stage.records()]
    assert kept[1] is None and kept[0] is not None
    assert json.loads(json.dumps(kept[0]))["response_ids"] == stage.ids(ANSWER)


def test_a_single_engine_is_looked_up_once_and_asked_directly() -> None:
    async def acquire(request_id: str) -> tuple[str, Any]:
        asked.append(f"lookup for {request_id}")
        return "server-1", SimpleNamespace(generate=SimpleNamespace(remote=generate))

    async def generate(request_id: str, **_: Any) -> SimpleNamespace:
        asked.append("generate")
        requests.add(request_id)
        return SimpleNamespace(extra_fields={"global_steps": 5})

    async def two_turns() -> Any:
        for _ in range(2):
            output = await client.generate(request_id="r", prompt_ids=[1], sampling_params={}, image_data=None)
        return output

    asked: list[str] = []
    requests: set[str] = set()
    client = EngineClient(SimpleNamespace(_acquire_server=acquire), replicas=1)
    output = asyncio.run(two_turns())
    assert asked == ["lookup for r", "generate", "generate"]
    assert len(requests) == 2  # an engine refuses an id that it still holds
    assert output.extra_fields == {"global_steps": 5, "min_global_steps": 5, "max_global_steps": 5}
