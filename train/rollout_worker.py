"""verl's agent-loop worker without the luggage (`rollout.agent.agent_loop_manager_class`).

verl stores the raw prompt beside every rollout, decoded pictures included: hundreds of kilobytes that nobody reads
again, serialised once a rollout. Here it stays with the worker.
"""

from __future__ import annotations

from typing import Any

import ray
from verl.trainer.ppo.v1.agent_loop_tq import AgentLoopManagerTQ, AgentLoopWorkerTQ

_Worker: Any = AgentLoopWorkerTQ.__ray_metadata__.modified_class  # type: ignore[attr-defined]


class RolloutWorker(_Worker):
    """Stores what the trainer reads: ids, masks, pixels, reward."""

    async def _agent_loop_postprocess(self, output: Any, validate: bool, **kwargs: Any) -> None:
        kwargs.pop("raw_prompt", None)
        await super()._agent_loop_postprocess(output, validate, **kwargs)


class RolloutManager(AgentLoopManagerTQ):
    """verl's manager with these workers."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.agent_loop_workers_class = ray.remote(RolloutWorker)
