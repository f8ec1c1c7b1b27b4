"""verl's agent-loop worker with the work done once a row instead of once a rollout.

One idea: the rollouts of a row share their picture and the beginning of their ids. Pixels and positions are worked out
for the first of them; a finished group is handed over in one message, without the raw prompt (decoded pictures that
nobody reads again). Chosen by `rollout.agent.agent_loop_manager_class`.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import hydra
import ray
import torch
import transfer_queue as tq
from verl.experimental.agent_loop.agent_loop import DictConfigWrap, ToolListWrap, _agent_loop_registry
from verl.trainer.ppo.v1.agent_loop_tq import AgentLoopManagerTQ, AgentLoopWorkerTQ
from verl.utils.tensordict_utils import list_of_dict_to_tensordict

from train.requeue import queue_of_run, requeued

_Worker: Any = AgentLoopWorkerTQ.__ray_metadata__.modified_class  # type: ignore[attr-defined]
_KEPT = 256
# Nobody reads more of a training row behind its rollout, and every column is packed, sent and unpacked several times.
_TRAINING_COLUMNS = ("uid", "reward_model")


class RolloutWorker(_Worker):
    """Stores what the trainer reads: ids, masks, positions, pixels, reward."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._prepare()

    def _prepare(self) -> None:
        self._pixels: OrderedDict[tuple[int, ...], tuple[Any, dict[str, Any]]] = OrderedDict()
        self._positions: OrderedDict[int, tuple[Any, torch.Tensor]] = OrderedDict()
        self._groups: dict[str, list[tuple[str, dict[str, Any], dict[str, Any]]]] = {}
        self._loops: dict[str, Any] = {}

    async def _run_agent_loop(
        self,
        sampling_params: dict[str, Any],
        trajectory: dict[str, Any],
        *,
        agent_name: str,
        trace: bool = True,
        **row: Any,
    ) -> None:
        """One rollout. An agent loop keeps nothing of a rollout, so one object serves all of them."""
        row.pop("trace", None)
        if agent_name not in self._loops:
            self._loops[agent_name] = hydra.utils.instantiate(
                config=_agent_loop_registry[agent_name],
                trainer_config=DictConfigWrap(config=self.config),
                server_manager=self.llm_client,
                tokenizer=self.tokenizer,
                processor=self.processor,
                hf_model_type=self.hf_model_type,
                dataset_cls=self.dataset_cls,
                data_config=DictConfigWrap(self.config.data),
                tools=ToolListWrap(self.tools),
            )
        output = await self._loops[agent_name].run(dict(sampling_params), **row)
        await self._agent_loop_postprocess(output, trajectory["validate"], **row)

    async def _agent_loop_postprocess(self, output: Any, validate: bool, **kwargs: Any) -> None:
        """Keep a finished rollout until its group is whole, then store the group.

        A rollout that raised leaves its group incomplete: verl then marks the prompt as failed and goes on without it.
        """
        rollout = self.config.actor_rollout_ref.rollout
        uid, size = str(kwargs["uid"]), rollout.val_kwargs.n if validate else rollout.n
        group = self._groups.setdefault(uid, [])
        group.append(self._stored(output, kwargs, validate))
        if len(group) < size:
            return
        del self._groups[uid]
        keys, fields, tags = zip(*group, strict=True)
        await tq.async_kv_batch_put(
            keys=list(keys),
            fields=list_of_dict_to_tensordict(list(fields)),
            tags=list(tags),
            partition_id="val" if validate else "train",
        )

    def _stored(
        self, output: Any, row: dict[str, Any], validate: bool
    ) -> tuple[str, dict[str, Any], dict[str, Any]]:
        """(key, fields, tag) of one rollout, in verl's names."""
        ids = torch.tensor(output.prompt_ids + output.response_ids, dtype=torch.int64)
        pixels = self._compute_multi_modal_inputs(output, ids)
        positions = self._compute_position_ids(ids.unsqueeze(0), torch.ones_like(ids).unsqueeze(0), pixels)
        fault = output.extra_fields.pop("fault", "")
        fields = output.as_dict()
        columns = [name for name in row if name != "raw_prompt"] if validate else _TRAINING_COLUMNS
        fields.update({name: row[name] for name in columns if name in row})
        fields.pop("multi_modal_data", None)
        fields["loss_mask"] = fields["response_mask"]
        fields["input_ids"] = ids
        fields["position_ids"] = positions.squeeze(0)
        fields["multi_modal_inputs"] = pixels
        prompt, response = len(output.prompt_ids), len(output.response_ids)
        tag = {
            "status": "success",
            "prompt_len": prompt,
            "response_len": response,
            "seq_len": prompt + response,
            "global_steps": row["global_steps"],
            "min_global_steps": output.extra_fields.get("min_global_steps"),
            "max_global_steps": output.extra_fields.get("max_global_steps"),
            "fault": fault,  # read by train.rollout_buffer
        }
        return f"{row['uid']}_{row['session_id']}_0", fields, tag

    def _compute_multi_modal_inputs(self, output: Any, input_ids: torch.Tensor) -> dict[str, Any]:
        images = (output.multi_modal_data or {}).get("images") or []
        key = tuple(id(image) for image in images)
        if not key:
            return super()._compute_multi_modal_inputs(output, input_ids)
        if key not in self._pixels:
            # the images are kept beside the result, so that their identity cannot be given to others
            self._pixels[key] = (images, super()._compute_multi_modal_inputs(output, input_ids))
            if len(self._pixels) > _KEPT:
                self._pixels.popitem(last=False)
        return dict(self._pixels[key][1])

    def _compute_position_ids(
        self, input_ids: torch.Tensor, attention_mask: torch.Tensor, multi_modal_inputs: dict[str, Any], *args: Any
    ) -> torch.Tensor:
        """Positions [1, axes, L]. Behind the pictures they only count on, so a shorter rollout's are a longer one's."""
        pixels = multi_modal_inputs.get("pixel_values")
        length = input_ids.shape[1]
        known = self._positions.get(id(pixels)) if pixels is not None else None
        if known is None or known[1].shape[-1] < length:
            positions = super()._compute_position_ids(input_ids, attention_mask, multi_modal_inputs, *args)
            if pixels is not None:
                self._positions[id(pixels)] = known = (pixels, positions)
                if len(self._positions) > _KEPT:
                    self._positions.popitem(last=False)
            return positions
        multi_modal_inputs.pop("mm_token_type_ids", None)
        return known[1][..., :length].clone()


class RolloutManager(AgentLoopManagerTQ):
    """verl's manager with these workers; rows that machinery lost go out before fresh ones."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.agent_loop_workers_class = ray.remote(RolloutWorker)

    def generate_sequences(self, prompts: Any) -> None:
        """verl's, with the rows whose turn it is."""
        queue = queue_of_run()
        super().generate_sequences(prompts if queue is None else requeued(prompts, queue))
