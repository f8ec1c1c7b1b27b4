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
from typing import Any, Literal

from orchestrator.episode import Episode
from orchestrator.policy import InfrastructureError, PolicyTurn
from orchestrator.prompt import openai_messages
from orchestrator.protocol import STOP_STRINGS
from orchestrator.task import Task
from orchestrator.tokens import Tokenizer
from registry.errors import UserFault

Style = Literal["inline", "chat"]
_DIRECT = "<answer>"
_DIRECT_REQUEST = "Answer directly, without any call, in the form <answer> your answer </answer>."


class OpenAIServerPolicy:
    """One model behind `url` (with or without `/v1`).

    temperature, top_p: of sampling. system: system prompt text. api_key_env: environment variable that holds
    the key.
    timeout_s: for one request. tokenizer: the served model's, for exact budgets. extensions: whether to send
    vLLM's own fields (`include_stop_str_in_output`, `return_token_ids`); needed for `inline`.
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
    ) -> None:
        if style == "inline" and not extensions:
            raise UserFault(
                "policy style 'inline' needs a server with vLLM's extensions", fix="use style 'chat'"
            )
        if api_key_env and not os.environ.get(api_key_env):
            raise UserFault(
                f"the environment variable {api_key_env} is not set", fix="put the policy's API key in it"
            )
        self.name = f"openai:{model}"
        self.tokenizer = tokenizer
        self.model, self.temperature, self.top_p, self.style = model, temperature, top_p, style
        self.system, self.timeout_s, self.extensions = system, timeout_s, extensions
        base = url.rstrip("/")
        self._url = base if base.endswith("/v1") else f"{base}/v1"
        self._key = os.environ[api_key_env] if api_key_env else "none"
        self._client: Any = None
        self._loop: asyncio.AbstractEventLoop | None = None

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
        """Closes the connections."""
        if self._client is not None and self._loop is asyncio.get_running_loop():
            await self._client.close()
        self._client = None

    async def _complete(
        self, conversation: list[dict[str, Any]], begun: str, seed: int, max_tokens: int
    ) -> PolicyTurn:
        """One request; `begun` is an assistant message to continue."""
        import openai

        extra: dict[str, Any] = {}
        if self.extensions:
            extra = {"include_stop_str_in_output": True, "return_token_ids": True}
        if begun:
            conversation = [*conversation, {"role": "assistant", "content": begun}]
            extra |= {"continue_final_message": True, "add_generation_prompt": False}
        started = time.perf_counter()
        try:
            reply = await self._connected().chat.completions.create(
                model=self.model,
                messages=conversation,
                max_tokens=max_tokens,
                temperature=self.temperature,
                top_p=self.top_p,
                seed=seed,
                stop=list(STOP_STRINGS),
                logprobs=self.extensions or openai.NOT_GIVEN,
                extra_body=extra,
            )
        except openai.APITimeoutError:
            raise InfrastructureError(f"{self._url}: no reply within {self.timeout_s:g} s") from None
        except openai.APIStatusError as error:
            raise InfrastructureError(
                f"{self._url}: status {error.status_code}: {error.message[:300]}"
            ) from None
        except openai.OpenAIError as error:
            raise InfrastructureError(f"{self._url}: {error}") from None
        except ValueError as error:  # a body that is no JSON
            raise InfrastructureError(f"{self._url}: unreadable reply: {error}") from None
        return _turn(reply, time.perf_counter() - started, self._url)

    def _connected(self) -> Any:
        """The client of the running event loop."""
        import openai

        loop = asyncio.get_running_loop()
        if self._client is None or loop is not self._loop:
            self._loop = loop
            self._client = openai.AsyncOpenAI(
                base_url=self._url, api_key=self._key, timeout=self.timeout_s, max_retries=0
            )
        return self._client


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


def _turn(reply: Any, latency_s: float, where: str) -> PolicyTurn:
    """A PolicyTurn from a chat completion, taking the server's extensions where they are there."""
    choices = getattr(reply, "choices", None)
    if not choices or getattr(choices[0], "message", None) is None:
        raise InfrastructureError(f"{where}: the reply holds no choice")
    choice = choices[0]
    text = choice.message.content or ""
    thought = getattr(choice.message, "reasoning_content", None) or getattr(choice.message, "reasoning", None)
    if isinstance(thought, str) and thought:
        text = f"<think>{thought}</think>{text}"
    ids = getattr(choice, "token_ids", None)
    ids = tuple(ids) if ids and not thought else None
    logged = getattr(choice.logprobs, "content", None) if choice.logprobs else None
    logprobs = tuple(entry.logprob for entry in logged or ())
    usage = reply.usage
    return PolicyTurn(
        text=text,
        token_ids=ids,
        logprobs=logprobs if ids is not None and len(logprobs) == len(ids) else None,
        finish_reason=_finish_reason(choice),
        latency_s=latency_s,
        prompt_tokens=usage.prompt_tokens if usage else 0,
        completion_tokens=usage.completion_tokens if usage else 0,
    )


def _finish_reason(choice: Any) -> str:
    """The stop string where the server names it; "eos" where it says that it was none; else its finish
    reason."""
    extra = choice.model_extra or {}
    if choice.finish_reason == "stop" and "stop_reason" in extra:
        stopped = extra["stop_reason"]
        return stopped if isinstance(stopped, str) else "eos"
    return choice.finish_reason or "stop"
