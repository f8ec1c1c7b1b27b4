"""A model that judges answers in which a benchmark's rule reads nothing.

The one idea: a verdict is right, wrong, or none. A judge that is down or says nothing clear gives none, and the answer
is then an error like an expert's failure: neither right nor wrong, counted, asked about again on demand.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from eval.judge_prompt import SYSTEM, VERSION, foreign_texts, prompt_for, read_verdict, shown
from eval.judge_settings import JudgeSettings
from experts.cache import CallCache, content_key
from experts.clients.openai_backend import OpenAIExpertBackend
from experts.clients.retry import RetryPolicy
from experts.outcome import ExpertFailure
from experts.request import Request
from orchestrator.task import Task
from registry.schema import Limits, OpenAIBackend, Replica, Sampling

RIGHT, WRONG, UNGRADED = "right", "wrong", "ungraded"
_LIMITS = Limits(context_tokens=32_768, max_output_tokens=2_048, max_images=0)

JudgeNote = Mapping[str, Any]
"""``model``, ``prompt`` (its version), ``said`` (``right``, ``wrong``, ``ungraded``) and ``why`` (the reply, or the
failure, shortened); where ungraded also ``outcome``: ``unclear``, or as an expert's call ended."""


class _Unclear(Exception):
    """A reply without a clear verdict."""


class ModelJudge:
    """One judge. Verdicts are kept by content, in memory and, with ``cache``, in that folder; failures are not."""

    def __init__(self, settings: JudgeSettings, *, cache: Path | None = None, retry: RetryPolicy | None = None) -> None:
        self._settings = settings
        backend = OpenAIBackend(
            type="openai",
            model=settings.model,
            replicas=(Replica(url=settings.server),),
            api_key_env=settings.api_key_env,
        )
        self._client = OpenAIExpertBackend(backend, _LIMITS, retry=retry)
        self._cache = CallCache(None if cache is None else cache / "judge")

    @property
    def model(self) -> str:
        return self._settings.model

    async def ask(self, task: Task, answer: str) -> JudgeNote:
        """What the judge says about an answer."""
        prompt, foreign = prompt_for(task, answer), foreign_texts(task, answer)

        async def compute() -> str:
            reply = await self._client.ask(
                Request(
                    prompt=prompt,
                    system=SYSTEM,
                    sampling=Sampling(temperature=0.0, max_tokens=_LIMITS.max_output_tokens),
                    timeout_s=self._settings.timeout_s,
                )
            )
            if reply.finish_reason == "length":
                raise _Unclear(shown(["cut off at its limit of tokens:", reply.text]))
            if read_verdict(reply.text, foreign) is None:
                raise _Unclear(shown(["no clear verdict:", reply.text or "an empty reply"]))
            return reply.text

        key = content_key("judge", VERSION, self.model, SYSTEM, prompt)
        try:
            text, _ = await self._cache.once(key, compute, lambda _: True)
        except _Unclear as unclear:
            return self._note(UNGRADED, str(unclear), outcome="unclear")
        except ExpertFailure as failure:
            server = self._settings.server
            place = [] if server in failure.message else [f"{server}:"]
            return self._note(UNGRADED, shown([*place, failure.message]), outcome=failure.outcome.value)
        said = read_verdict(text, foreign)
        if said is None:  # a folder that others can write
            return self._note(UNGRADED, shown(["no clear verdict in the cache:", text]), outcome="unclear")
        return self._note(RIGHT if said else WRONG, shown([text]))

    async def aclose(self) -> None:
        """Close connections and cache."""
        await self._client.aclose()
        self._cache.close()

    def _note(self, said: str, why: str, **more: str) -> JudgeNote:
        return {"model": self.model, "prompt": VERSION, "said": said, "why": why, **more}
