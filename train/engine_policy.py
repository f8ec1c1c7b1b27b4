"""The policy as verl's rollout engine serves it: ids in, ids out.

One idea: prompts are encoded by the same `PromptEncoder` that evaluation uses, so that training and use see the same
ids and pixels; what a row's prompt looks like is worked out once a process, not once a rollout.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from typing import Any

from orchestrator.encoding import EncodedPrompt, PromptEncoder
from orchestrator.episode import Episode
from orchestrator.policy import InfrastructureError, PolicyTurn
from orchestrator.protocol import STOP_STRINGS
from orchestrator.task import Task
from orchestrator.tokens import Tokenizer
from orchestrator.turn_frame import TurnFrame

# Ids that stand for pictures: one that is sampled would have no pixels behind it.
_PICTURE_TOKENS = ("<|image_pad|>", "<|video_pad|>", "<|vision_start|>", "<|vision_end|>")


class PromptCache:
    """Encoded prompts by what they are made of (ids of rows may repeat across files), least recently used dropped."""

    def __init__(self, size: int = 1024) -> None:
        self._size = size
        self._prompts: OrderedDict[tuple[Any, ...], EncodedPrompt] = OrderedDict()

    def get(self, task: Task, encoder: PromptEncoder, system: str | None) -> EncodedPrompt:
        key = (task.question, task.choices, tuple(picture.sha256 for picture in task.pictures), system)
        if key in self._prompts:
            self._prompts.move_to_end(key)
            return self._prompts[key]
        prompt = self._prompts[key] = encoder.encode_task(task, system)
        if len(self._prompts) > self._size:
            self._prompts.popitem(last=False)
        return prompt


class EnginePolicy:
    """One rollout's view of verl's server manager (a `TokenPolicy`)."""

    name = "policy"

    def __init__(
        self,
        server: Any,
        encoder: PromptEncoder,
        prompts: PromptCache,
        system: str | None,
        sampling: dict[str, Any],
        request: str,
        frame: TurnFrame | None = None,
    ) -> None:
        self.frame = frame  # of observations; None = inline
        self._server = server
        self._encoder = encoder
        self._prompts = prompts
        self._system = system
        self._sampling = sampling
        self._request = request
        convert, unknown = encoder.processor.tokenizer.convert_tokens_to_ids, encoder.processor.tokenizer.unk_token_id
        ids = {encoder.image_token_id, *(convert(token) for token in _PICTURE_TOKENS)}
        self.forbidden_ids = frozenset(int(i) for i in ids if i is not None and i != unknown)
        # Tags of several tokens can only be found in the text; the tiny policy's are single tokens.
        self._stop_strings = [stop for stop in STOP_STRINGS if len(encoder.tokenizer.encode(stop)) > 1]
        self.engine_fields: dict[str, Any] = {}  # verl's bookkeeping of weight versions, passed back with the rollout

    @property
    def tokenizer(self) -> Tokenizer:
        return self._encoder.tokenizer

    async def prompt_ids(self, task: Task) -> tuple[int, ...]:
        return self._prompts.get(task, self._encoder, self._system).ids

    async def act(self, episode: Episode, *, seed: int) -> PolicyTurn:
        if episode.task is None:
            raise ValueError(f"episode {episode.task_id} carries no task")
        prompt = self._prompts.get(episode.task, self._encoder, self._system)
        ids = [*prompt.ids, *(episode.response_ids or ())]
        # one message a generation instead of one a token
        from vllm.sampling_params import RequestOutputKind

        started = time.monotonic()
        sampling = self._sampling | {
            "max_tokens": episode.next_max_tokens,
            "stop_token_ids": list(self._encoder.stop_ids),
            "seed": seed,
            "detokenize": bool(self._stop_strings),
            "output_kind": RequestOutputKind.FINAL_ONLY,
        }
        if self._stop_strings:
            sampling |= {"stop": list(self._stop_strings), "include_stop_str_in_output": True}
        try:
            output = await self._server.generate(
                request_id=self._request,
                prompt_ids=ids,
                sampling_params=sampling,
                image_data=list(prompt.images) or None,
            )
        except Exception as error:
            raise InfrastructureError(f"rollout engine: {type(error).__name__}: {error}") from error
        if output.stop_reason == "aborted":
            raise InfrastructureError("rollout engine: the request was aborted")
        for key, value in output.extra_fields.items():
            self.engine_fields[key] = value
        sampled = tuple(output.token_ids)
        text = self._encoder.tokenizer.decode(sampled)
        stopped = bool(sampled) and sampled[-1] in self._encoder.stop_ids
        stopped = stopped or any(stop in text for stop in self._stop_strings)
        return PolicyTurn(
            text=text,
            token_ids=sampled,
            logprobs=tuple(output.log_probs) if output.log_probs else None,
            finish_reason="stop" if stopped else "length",
            latency_s=time.monotonic() - started,
            prompt_tokens=len(ids),
            completion_tokens=len(sampled),
        )

    async def aclose(self) -> None:
        """The server is verl's; nothing to close."""
