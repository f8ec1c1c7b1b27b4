"""The vLLM worker extension for CPU rollouts (`engine_kwargs.vllm.worker_extension_cls`).

vLLM's CPU linear layers hand their weight to oneDNN and replace it by an empty tensor, so that no later weight sync
reaches it. With the packing off, torch's own linear reads `layer.weight` and every sync takes effect.
"""

from __future__ import annotations

import vllm._custom_ops as ops
from verl.workers.rollout.vllm_rollout.utils import vLLMColocateWorkerExtension

ops._supports_onednn = False


class CPUWorkerExtension(vLLMColocateWorkerExtension):
    """verl's extension, loaded after the switch above."""
