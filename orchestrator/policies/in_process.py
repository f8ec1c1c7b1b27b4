"""A transformers vision-language model as a policy, inside this process.

The one idea: concurrent `act` calls are gathered into batches, left-padded and generated together, so that
hundreds of episodes share a few hundred forward passes; every picture is turned into pixel values once. For
models of the Qwen-VL kind (processors that give `image_grid_thw`). Imports torch and transformers when it is
made, not before.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experts.images import Picture
from orchestrator.encoding import PromptEncoder
from orchestrator.episode import Episode
from orchestrator.policies.batcher import MicroBatcher
from orchestrator.policy import PolicyTurn
from orchestrator.protocol import STOP_STRINGS
from orchestrator.task import Task
from registry.errors import UserFault

_DIRECT = "<answer>"


@dataclass(frozen=True)
class _Request:
    ids: tuple[int, ...]
    pictures: tuple[Picture, ...]
    max_tokens: int
    seed: int


@dataclass(frozen=True)
class _Generation:
    ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    finish_reason: str


class InProcessPolicy:
    """Generates with a local checkpoint. Stops at `</search>`, `</answer>` and the end-of-text id.

    path: folder with model and processor. temperature: 0 = greedy. max_batch: requests per forward pass.
    dtype: name of a torch type. system: system prompt text, None for none. Raises UserFault where the folder
    holds no such model.
    """

    def __init__(
        self,
        path: str | Path,
        temperature: float = 1.0,
        *,
        device: str = "cpu",
        max_batch: int = 64,
        dtype: str = "float32",
        system: str | None = None,
        name: str | None = None,
    ) -> None:
        self.name = name or f"in-process:{Path(path).name}"
        self.temperature, self.device, self.system = temperature, device, system
        self._model, processor = _load(Path(path), dtype, device)
        self._encoder = PromptEncoder(processor)
        self._encoding = threading.Lock()  # the encoder remembers pictures; prompts and batches share it
        self.tokenizer = self._encoder.tokenizer
        self._pad: int = processor.tokenizer.pad_token_id or 0
        config = self._model.config
        names = ("image_token_id", "video_token_id", "vision_start_token_id", "vision_end_token_id")
        ids = (getattr(config, name, None) for name in names)
        self.forbidden_ids = frozenset(i for i in ids if i is not None)
        self._stop_strings = [stop for stop in STOP_STRINGS if len(self.tokenizer.encode(stop)) > 1]
        self._batcher: MicroBatcher[_Request, _Generation] = MicroBatcher(self._generate, max_batch=max_batch)

    async def prompt_ids(self, task: Task) -> tuple[int, ...]:
        """The rendered chat prompt, image placeholders expanded to the number of image features."""
        return await asyncio.to_thread(self._prompt_ids, task)

    async def act(self, episode: Episode, *, seed: int) -> PolicyTurn:
        """The next turn of an episode that was begun with this policy's prompt ids."""
        response = episode.response_ids
        if episode.prompt_ids is None or response is None or episode.task is None:
            raise ValueError(f"task {episode.task_id}: {self.name} needs an episode with token ids and a task")
        ids = (*episode.prompt_ids, *response)
        started = time.perf_counter()
        made = await self._batcher.submit(_Request(ids, episode.task.pictures, episode.next_max_tokens, seed))
        return PolicyTurn(
            text=self.tokenizer.decode(made.ids),
            token_ids=made.ids,
            logprobs=made.logprobs,
            finish_reason=made.finish_reason,
            latency_s=time.perf_counter() - started,
            prompt_tokens=len(ids),
            completion_tokens=len(made.ids),
        )

    async def answer_directly(self, task: Task, *, seed: int, max_tokens: int) -> PolicyTurn:
        """A turn that is forced to open with `<answer>`; without ids, since that opening was not sampled."""
        ids = (*await self.prompt_ids(task), *self.tokenizer.encode(_DIRECT))
        started = time.perf_counter()
        made = await self._batcher.submit(_Request(ids, task.pictures, max_tokens, seed))
        return PolicyTurn(
            text=_DIRECT + self.tokenizer.decode(made.ids),
            finish_reason=made.finish_reason,
            latency_s=time.perf_counter() - started,
            prompt_tokens=len(ids),
            completion_tokens=len(made.ids),
        )

    async def aclose(self) -> None:
        """Ends the worker thread."""
        self._batcher.close()

    def _prompt_ids(self, task: Task) -> tuple[int, ...]:
        with self._encoding:
            return self._encoder.encode_task(task, self.system).ids

    def _features(self, requests: Sequence[_Request]) -> list[Mapping[str, Any]]:
        """Pixel values and grid of every picture of a batch, in the order of their placeholders."""
        with self._encoding:
            return [self._encoder.vision(picture) for request in requests for picture in request.pictures]

    def _generate(self, requests: Sequence[_Request]) -> list[_Generation]:
        """One left-padded batch through the model (worker thread)."""
        import torch
        from transformers import GenerationConfig, LogitsProcessorList, StoppingCriteriaList

        from orchestrator.policies.sampling import SeededSampler, StopRows

        width, steps = max(len(r.ids) for r in requests), max(r.max_tokens for r in requests)
        ids = torch.full((len(requests), width), self._pad, dtype=torch.long)
        mask = torch.zeros_like(ids)
        for row, request in enumerate(requests):
            ids[row, width - len(request.ids) :] = torch.tensor(request.ids)
            mask[row, width - len(request.ids) :] = 1
        inputs: dict[str, Any] = {"input_ids": ids, "attention_mask": mask}
        if features := self._features(requests):
            inputs["pixel_values"] = torch.cat([f["pixel_values"] for f in features]).to(self._model.dtype)
            inputs["image_grid_thw"] = torch.cat([f["image_grid_thw"] for f in features])
            inputs["mm_token_type_ids"] = (ids == self._encoder.image_token_id).long()
        sampler = SeededSampler(
            [r.seed for r in requests],
            temperature=self.temperature,
            max_steps=steps,
            forbidden=self.forbidden_ids,
        )
        stops = StopRows(
            width,
            [r.max_tokens for r in requests],
            stop_ids=self._encoder.stop_ids,
            stop_strings=self._stop_strings,
            tokenizer=self.tokenizer,
        )
        with torch.inference_mode():
            out = self._model.generate(
                **{name: value.to(self.device) for name, value in inputs.items()},
                generation_config=GenerationConfig(do_sample=False, max_new_tokens=steps, pad_token_id=self._pad),
                logits_processor=LogitsProcessorList([sampler]),
                stopping_criteria=StoppingCriteriaList([stops]),
            )
        logprobs = torch.stack(sampler.logprobs, dim=1).tolist()
        rows = out[:, width:].tolist()
        return [
            _Generation(tuple(rows[i][:n]), tuple(logprobs[i][:n]), stops.stopped[i] or "length")
            for i, n in enumerate(stops.lengths)
        ]


def _load(path: Path, dtype: str, device: str) -> tuple[Any, Any]:
    """Model (in evaluation mode) and processor of a checkpoint folder."""
    if not (path / "config.json").is_file():
        raise UserFault(f"no policy checkpoint in {path}", fix="give a folder that holds config.json and the weights")
    import torch
    from transformers import AutoModelForImageTextToText, AutoProcessor, GenerationConfig
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()  # its bars break into the display of whoever loads the policy
    try:
        processor = AutoProcessor.from_pretrained(path)
        loaded: Any = AutoModelForImageTextToText.from_pretrained(path, dtype=getattr(torch, dtype))
    except (OSError, ValueError) as error:
        raise UserFault(f"the policy checkpoint in {path} cannot be loaded: {error}") from error
    if not hasattr(getattr(processor, "image_processor", None), "merge_size"):
        raise UserFault(f"the checkpoint in {path} has no image processor of the Qwen-VL kind")
    loaded.generation_config = GenerationConfig()  # sampling is ours; the checkpoint's own defaults must not mix in
    return loaded.eval().to(device), processor
