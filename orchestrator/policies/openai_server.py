"""Any OpenAI-compatible server as a policy, vLLM first.

The one idea: the conversation is rebuilt from the episode for every turn, in one of two styles. `inline` lets
the server continue one assistant message in which observations stand where they came (the paper's form; needs
vLLM's `continue_final_message`). `chat` makes each observation a user message, for servers that know only
whole turns.

A chat server takes text, so ids that it returns are kept with each turn as a record; the episode counts its
lengths by `tokenizer` where one is given, by an estimate otherwise. Training works on ids and does not go
through here. Nothing is retried: a request that fails makes the episode invalid, never wrong.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Mapping
from typing import Any, Literal
from urllib.parse import urlsplit

from experts.per_loop import PerLoop
from orchestrator.episode import Episode
from orchestrator.policies.bounded_client import bounded_client, failure, read_body
from orchestrator.policies.chat_completion import read_completion
from orchestrator.policy import InfrastructureError, PolicyTurn
from orchestrator.prompt import openai_messages
from orchestrator.protocol import STOP_STRINGS
from orchestrator.task import Task
from orchestrator.tokens import Tokenizer
from registry.errors import UserFault

Style = Literal["inline", "chat"]
MAX_REPLY_BYTES = 4 * 1024 * 1024
_DIRECT = "<answer>"
_DIRECT_REQUEST = "Answer directly, without any call, in the form <answer> your answer </answer>."


class OpenAIServerPolicy:
    """One model behind `url` (with or without `/v1`).

    temperature, top_p: of sampling. system: system prompt text. api_key_env: environment variable that holds
    the key.
    timeout_s: for one request. tokenizer: the served model's, for exact budgets. extensions: whether to send
    vLLM's own fields (`include_stop_str_in_output`, `return_token_ids`); needed for `inline`. request: fields
    of the request that are sent as given here; those given as None are not sent, for models that refuse them.
    """

    def __init__(
        self,
        url: str,
        model: str,
        *,
        temperature: float = 1.0,
        top_p: float = 1.0,
        style: Style = "inline",
        system: str | None = None,
        api_key_env: str | None = None,
        timeout_s: float = 120.0,
        tokenizer: Tokenizer | None = None,
        extensions: bool = True,
        request: Mapping[str, Any] | None = None,
    ) -> None:
        if style == "inline" and not extensions:
            raise UserFault("policy style 'inline' needs a server with vLLM's extensions", fix="use style 'chat'")
        if api_key_env and not os.environ.get(api_key_env):
            raise UserFault(f"the environment variable {api_key_env} is not set", fix="put the policy's API key in it")
        if not _is_address(url):
            raise UserFault(f"the policy's server has no proper address: {url!r}", fix="write it as http://host:8000")
        self.name = f"openai:{model}"
        self.tokenizer = tokenizer
        self.model, self.temperature, self.top_p, self.style = model, temperature, top_p, style
        self.system, self.timeout_s, self.extensions = system, timeout_s, extensions
        base = url.rstrip("/")
        self._url = base if base.endswith("/v1") else f"{base}/v1"
        self._key = os.environ[api_key_env] if api_key_env else "none"
        self.request = dict(request or {})
        self._clients: PerLoop[list[Any]] = PerLoop(list)

    async def act(self, episode: Episode, *, seed: int) -> PolicyTurn:
        """The next turn. Raises InfrastructureError where the server gives none."""
        task = _task(episode)
        conversation = openai_messages(task, self.system)
        if self.style == "chat":
            conversation += _chat_turns(episode)
            return await self._complete(conversation, "", seed, episode.next_max_tokens)
        return await self._complete(conversation, episode.transcript, seed, episode.next_max_tokens)

    async def answer_directly(self, task: Task, *, seed: int, max_tokens: int) -> PolicyTurn:
        """A turn that is made to be an answer: by opening the tag (inline) or by asking for it (chat)."""
        conversation = openai_messages(task, self.system)
        if self.style == "chat":
            conversation[-1]["content"].append({"type": "text", "text": _DIRECT_REQUEST})
            return await self._complete(conversation, "", seed, max_tokens)
        turn = await self._complete(conversation, _DIRECT, seed, max_tokens)
        return PolicyTurn(
            text=_DIRECT + turn.text,
            finish_reason=turn.finish_reason,
            latency_s=turn.latency_s,
            prompt_tokens=turn.prompt_tokens,
            completion_tokens=turn.completion_tokens,
        )

    async def aclose(self) -> None:
        """Closes the running loop's connections."""
        for client in self._clients.pop() or []:
            await client.close()

    async def _complete(self, conversation: list[dict[str, Any]], begun: str, seed: int, max_tokens: int) -> PolicyTurn:
        """One request; `begun` is an assistant message to continue."""
        extra: dict[str, Any] = {}
        if self.extensions:
            extra = {"include_stop_str_in_output": True, "return_token_ids": True}
        if begun:
            conversation = [*conversation, {"role": "assistant", "content": begun}]
            extra |= {"continue_final_message": True, "add_generation_prompt": False}
        request: dict[str, Any] = {
            "model": self.model,
            "messages": conversation,
            "max_tokens": max_tokens,
            "temperature": self.temperature,
            "top_p": self.top_p,
            "seed": seed,
            "stop": list(STOP_STRINGS),
            "extra_body": extra,
        }
        if self.extensions:
            request["logprobs"] = True
        for field, value in self.request.items():
            request.pop(field, None)
            if value is not None:
                extra[field] = value
        create = self._client().chat.completions.with_streaming_response.create
        started = time.perf_counter()
        try:
            # Our own timer: the library's limits are for each read, and a server may trickle bytes for ever.
            async with asyncio.timeout(self.timeout_s):
                async with create(**request) as response:
                    body = await read_body(response, MAX_REPLY_BYTES, self._url)
        except TimeoutError:
            raise InfrastructureError(f"{self._url}: no reply within {self.timeout_s:g} s") from None
        except Exception as error:  # the library's own, and a connection lost while the body was read
            raise failure(error, self._url) from None
        return read_completion(body, time.perf_counter() - started, self._url)

    def _client(self) -> Any:
        """The client of the running event loop."""
        if not (kept := self._clients.get()):
            kept.append(bounded_client(self._url, self._key))
        return kept[0]


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:  # a port that is no number, a bracket that never closes
        return False


def _task(episode: Episode) -> Task:
    if episode.task is None:
        raise ValueError(f"episode {episode.task_id} carries no task")
    return episode.task


def _chat_turns(episode: Episode) -> list[dict[str, Any]]:
    """Turns and observations as assistant and user messages."""
    made: list[dict[str, Any]] = []
    for turn in episode.turns:
        made.append({"role": "assistant", "content": turn.text + turn.closing})
        if turn.observation is not None:
            made.append({"role": "user", "content": turn.observation.shown.strip()})
    return made
