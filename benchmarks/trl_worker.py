"""TRL's side of `against_trl.py`: one training run with GRPOTrainer, one JSON line a step on standard output.

Runs in the environment that holds TRL; its only argument is the run as one JSON object. Rows, prompts and rewards come
from this project, so that both sides read the same ids and are paid the same.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any, TextIO

import torch
from datasets import Dataset
from transformers import AutoProcessor, PrinterCallback, Qwen3VLForConditionalGeneration, TrainerCallback
from trl import GRPOConfig, GRPOTrainer  # pyright: ignore[reportMissingImports]

from orchestrator.budget import Budget
from orchestrator.encoding import PromptEncoder
from orchestrator.episode import act, begin
from orchestrator.policy import PolicyTurn
from orchestrator.prompt import question_text
from orchestrator.task import Task
from orchestrator.trajectory import from_episode
from registry.registry import Registry
from rewards import RewardRule, reward
from train.rows import read_rows


class Judge:
    """The project's reward of a completion, which is read as the one turn of an episode without delegations."""

    __name__ = "reward"  # TRL asks for it

    def __init__(self, tasks: list[Task], encoder: PromptEncoder, registry: Registry, budget: Budget) -> None:
        self._tasks, self._encoder, self._registry, self._budget = tasks, encoder, registry, budget
        self._prompts: dict[int, tuple[int, ...]] = {}
        self.lengths: list[int] = []
        self.rewards: list[float] = []

    def __call__(self, completion_ids: list[list[int]], row: list[int], **_: Any) -> list[float]:
        self.lengths = [len(ids) for ids in completion_ids]
        self.rewards = [self._reward(number, tuple(ids)) for number, ids in zip(row, completion_ids, strict=True)]
        return self.rewards

    def _reward(self, number: int, ids: tuple[int, ...]) -> float:
        task = self._tasks[number]
        if number not in self._prompts:
            self._prompts[number] = self._encoder.prompt_ids(task)
        episode = begin(
            task.row_id,
            self._prompts[number],
            self._budget,
            task=task,
            registry=self._registry,
            tokenizer=self._encoder.tokenizer,
        )
        text = self._encoder.tokenizer.decode(ids)
        episode = act(
            episode, PolicyTurn(text, ids, finish_reason="stop" if ids[-1] in self._encoder.stop_ids else "length")
        )
        return float(reward(from_episode(episode, policy="trl", seed=0).to_json(), RewardRule(min_calls=0)).total or 0)


class Clock(TrainerCallback):
    """Writes a line when a step has ended; a step begins where the one before it ended."""

    def __init__(self, judge: Judge, out: TextIO) -> None:
        self._judge, self._out = judge, out
        self._ended = time.monotonic()
        self.generating = 0.0

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        now, lengths, rewards = time.monotonic(), self._judge.lengths, self._judge.rewards
        record = {
            "step": state.global_step,
            "seconds": now - self._ended,
            "seconds_gen": self.generating,
            "rollouts": len(lengths),
            "tokens": sum(lengths),
            "longest": max(lengths),
            "reward": sum(rewards) / len(rewards),
        }
        self._out.write(json.dumps(record) + "\n")
        self._out.flush()
        self._ended, self.generating = now, 0.0


def rows_of(tasks: list[Task]) -> Dataset:
    """Rows as TRL wants them; pictures are decoded once, not at every access."""
    pictures = [[picture.pil() for picture in task.pictures] for task in tasks]
    prompts = [[{"role": "user", "content": question_text(task)}] for task in tasks]

    def read(batch: dict[str, list[Any]]) -> dict[str, list[Any]]:
        return {
            "prompt": [prompts[number] for number in batch["row"]],
            "images": [pictures[number] for number in batch["row"]],
            "row": batch["row"],
        }

    return Dataset.from_dict({"row": list(range(len(tasks)))}).with_transform(read)


def check_prompts(processor: Any, encoder: PromptEncoder, tasks: list[Task]) -> None:
    """Ends the run where TRL's way to a prompt gives other ids than ours."""
    for task in tasks[:16]:
        pictures = [{"type": "image", "image": picture.pil()} for picture in task.pictures]
        content = [*pictures, {"type": "text", "text": question_text(task)}]
        ids = processor.apply_chat_template(
            [[{"role": "user", "content": content}]], add_generation_prompt=True, tokenize=True, return_dict=True
        )["input_ids"][0]
        if tuple(ids) != encoder.prompt_ids(task):
            raise SystemExit(f"row {task.row_id}: TRL's processor gives other prompt ids than ours")


def timed(model: Any, clock: Clock) -> None:
    """Adds the seconds of every `generate` to the clock."""
    generate = model.generate

    def wrapped(*tensors: Any, **call: Any) -> Any:
        started = time.monotonic()
        try:
            return generate(*tensors, **call)
        finally:
            clock.generating += time.monotonic() - started

    model.generate = wrapped


def main() -> None:
    run = json.loads(sys.argv[1])
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what libraries print must not get between the lines
    torch.set_num_threads(run["threads"])
    policy = Path(run["policy"])
    encoder = PromptEncoder(AutoProcessor.from_pretrained(policy))
    processor: Any = AutoProcessor.from_pretrained(policy, padding_side="left")  # as TRL wants it
    model: Any = Qwen3VLForConditionalGeneration.from_pretrained(
        policy, dtype=torch.float32, attn_implementation="sdpa"
    )
    model.generation_config.eos_token_id = list(encoder.stop_ids)  # what ends a turn with us ends a completion there
    tasks = [task for task, _ in read_rows(Path(run["rows"]))]
    check_prompts(processor, encoder, tasks)
    budget = Budget(
        horizon=0, max_turn_tokens=run["max_tokens"], max_trajectory_tokens=2 * run["max_tokens"], malformed_turns=0
    )
    judge = Judge(tasks, encoder, Registry.load(*run["registry"]), budget)
    clock = Clock(judge, out)
    timed(model, clock)
    trainer = GRPOTrainer(
        model=model,
        reward_funcs=judge,
        args=settings(run),
        train_dataset=rows_of(tasks),
        processing_class=processor,
        callbacks=[clock],
    )
    trainer.remove_callback(PrinterCallback)
    trainer.train()


def settings(run: dict[str, Any]) -> Any:
    """The update of `configs/train/embedded.yaml` in TRL's words, everything that costs time and is not needed off."""
    return GRPOConfig(
        output_dir=run["folder"],
        max_steps=run["steps"],
        per_device_train_batch_size=run["prompts"] * run["samples"],
        gradient_accumulation_steps=1,
        num_generations=run["samples"],
        num_iterations=1,
        max_completion_length=run["max_tokens"],
        temperature=1.0,
        beta=0.0,  # no reference model
        learning_rate=3e-4,
        lr_scheduler_type="cosine",
        warmup_steps=10,
        weight_decay=0.01,
        max_grad_norm=1.0,
        use_cpu=True,
        bf16=False,
        gradient_checkpointing=False,
        shuffle_dataset=False,
        remove_unused_columns=False,
        dataloader_num_workers=0,
        dataloader_pin_memory=False,
        save_strategy="no",
        report_to="none",
        logging_steps=1,
        disable_tqdm=True,
        seed=run["seed"],
    )


if __name__ == "__main__":
    main()
