"""The shortest way to verl's rollout engine.

One idea: verl asks a load balancer before and after every generation, two more messages for each turn.
With a single replica there is nothing to balance: the server is looked up once and called directly.
"""

from __future__ import annotations

from typing import Any
from uuid import uuid4


class EngineClient:
    """`generate` with verl's own signature. `replicas`: how many engines serve the rollout."""

    def __init__(self, manager: Any, replicas: int) -> None:
        self._manager = manager
        self._direct = replicas == 1
        self._server: Any = None

    async def generate(
        self, *, request_id: str, prompt_ids: list[int], sampling_params: dict[str, Any], image_data: list[Any] | None
    ) -> Any:
        """verl's TokenOutput. Raises whatever the engine raises."""
        if not self._direct:
            return await self._manager.generate(
                request_id=request_id, prompt_ids=prompt_ids, sampling_params=sampling_params, image_data=image_data
            )
        if self._server is None:
            _, self._server = await self._manager._acquire_server(request_id)
        output = await self._server.generate.remote(
            request_id=uuid4().hex, prompt_ids=prompt_ids, sampling_params=sampling_params, image_data=image_data
        )
        version = output.extra_fields.get("global_steps")
        output.extra_fields.setdefault("min_global_steps", version)
        output.extra_fields.setdefault("max_global_steps", version)
        return output
