"""The vLLM worker extension for CPU rollouts (`engine_kwargs.vllm.worker_extension_cls`).

vLLM's CPU linear layers hand their weight to oneDNN and replace it by an empty tensor, so that no later weight sync
reaches it. With the packing off, torch's own linear reads `layer.weight` and every sync takes effect. And norms are
one operation of torch's instead of eight behind a dispatcher.
"""

from __future__ import annotations

from typing import Any

import vllm._custom_ops as ops
from torch import float32
from torch.nn.functional import rms_norm
from verl.workers.rollout.vllm_rollout.utils import vLLMColocateWorkerExtension
from vllm.model_executor.layers.layernorm import RMSNorm

ops._supports_onednn = False


def _norm(self: Any, x: Any, residual: Any = None) -> Any:
    """vLLM's `RMSNorm.forward_native`: the norm of x, or of x + residual beside that sum."""
    if not self.has_weight or self.variance_size_override is not None or x.dtype != float32:
        return self.forward_native(x, residual)
    if residual is not None:
        x = x + residual
    normed = rms_norm(x, (x.shape[-1],), self.weight, self.variance_epsilon)
    return normed if residual is None else (normed, x)


RMSNorm.forward_cpu = _norm  # type: ignore[method-assign]


class CPUWorkerExtension(vLLMColocateWorkerExtension):
    """verl's extension, loaded after the switch above."""
