"""Answering without any delegation: what the policy's own eyes are worth.

The one idea: the answer tag is opened for the underlying policy, so that it must answer. A server that takes whole
turns only is asked for the tag instead; a reply without any tag is then the answer as it stands, since such models were
never taught the protocol. Without an underlying policy the answer is empty, which is the floor of every benchmark.
"""

from __future__ import annotations

from dataclasses import replace

from orchestrator.episode import Episode
from orchestrator.neutralise import neutralise
from orchestrator.policy import AnswersDirectly, PolicyTurn


class Direct:
    """Answers in the first turn. `policy` may be any that can be made to answer; closing it closes that
    too."""

    def __init__(self, policy: AnswersDirectly | None = None) -> None:
        inner = getattr(policy, "name", None)
        self.name = f"direct:{inner}" if inner else "direct"
        self._policy = policy

    async def act(self, episode: Episode, *, seed: int) -> PolicyTurn:
        if episode.task is None:
            raise ValueError(f"episode {episode.task_id} carries no task")
        if self._policy is None:
            return PolicyTurn("<answer></answer>")
        turn = await self._policy.answer_directly(episode.task, seed=seed, max_tokens=episode.next_max_tokens)
        return _tagged(turn)

    async def aclose(self) -> None:
        if (close := getattr(self._policy, "aclose", None)) is not None:
            await close()


def _tagged(turn: PolicyTurn) -> PolicyTurn:
    """The turn with its answer in the tag; ids no longer fit a text that was changed."""
    thought, end, reply = turn.text.rpartition("</think>")
    if any(tag in reply for tag in ("<think>", "<answer>", "</answer>", "<search>")) or not reply.strip():
        return turn
    text = f"{thought}{end}<answer> {neutralise(reply).strip()} </answer>"
    return replace(turn, text=text, token_ids=None, logprobs=None)
