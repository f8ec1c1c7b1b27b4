"""A placement or a refusal: why models do not fit, and what would. Every way out is tried before it is named."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from experts.serving.gpus import Gpu
from experts.serving.memory import UnknownSize, memory_of
from experts.serving.model import ServedModel
from experts.serving.placement import Placement, budget_gib, place
from registry.errors import UserFault

_SHORTEST_CONTEXT = 2048
_MOST_GPUS = 64


def placed(models: Sequence[ServedModel], gpus: Sequence[Gpu], utilization: float) -> Placement:
    """The placement. Raises UserFault when sizes are not known, and one that names ways out when models do
    not fit."""
    unknown: list[ServedModel] = []
    for model in models:
        try:
            memory_of(model)
        except UnknownSize as fault:
            unknown.extend(fault.models)
    if unknown:
        raise UnknownSize(*unknown)
    placement = place(models, gpus, utilization)
    if placement is None:
        raise refusal(models, gpus, utilization)
    return placement


def refusal(models: Sequence[ServedModel], gpus: Sequence[Gpu], utilization: float) -> UserFault:
    """The fault for models that no placement holds."""
    budgets = [budget_gib(gpu, utilization) for gpu in gpus]
    needs = [memory_of(model) for model in models]
    copies = [model.serving.replicas * model.serving.tensor_parallel for model in models]
    whole = sum(need.total_gib * count for need, count in zip(needs, copies, strict=True))
    lines = [
        f"the models need {whole:.1f} GiB, and "
        + ", ".join(f"{gpu.label} gives {budget:.1f} GiB" for gpu, budget in zip(gpus, budgets, strict=True))
    ]
    for model, need, count in zip(models, needs, copies, strict=True):
        times = f" x {count}" if count > 1 else ""
        too_large = " (more than any GPU gives)" if need.total_gib > max(budgets) else ""
        lines.append(
            f"  {model.id}: {need.total_gib:.1f} GiB{times} = weights {need.weights_gib:.1f} + cache "
            f"{need.cache_gib:.1f} + rest {need.rest_gib:.1f}{too_large}"
        )
    ways = [
        way
        for way in (
            _shorter(models, gpus, utilization),
            _split(models, gpus, utilization, max(budgets)),
            _fewer(models, gpus, utilization),
            _more(models, gpus, utilization),
        )
        if way
    ]
    return UserFault("\n".join(lines), fix="; or ".join(ways) or "use larger GPUs or smaller models")


def _shorter(models: Sequence[ServedModel], gpus: Sequence[Gpu], utilization: float) -> str | None:
    context = max(model.context_tokens for model in models) // 2
    while context >= _SHORTEST_CONTEXT:
        # `context` is bound now: the function is called before the next turn of the loop.
        if place(models, gpus, utilization, lambda model, at=context: memory_of(model, context=at)):
            return f"a shorter context: `limits: {{context_tokens: {context}}}` where it is longer"
        context //= 2
    return None


def _widened(models: Sequence[ServedModel], most: float, gpus: int) -> tuple[list[ServedModel], str]:
    """The models with the tensor parallel that each needs on GPUs of that room, and what that changes."""
    changed, names = [], []
    for model in models:
        width = model.serving.tensor_parallel
        stated = model.serving.gpu_memory_gb is not None  # nobody knows what it would be split in two
        while not stated and memory_of(model, tensor_parallel=width).total_gib > most and 2 * width <= gpus:
            width *= 2
        if width > model.serving.tensor_parallel:
            names.append(f"`serving: {{tensor_parallel: {width}}}` in {model.users[0]}")
            model = replace(model, serving=model.serving.model_copy(update={"tensor_parallel": width}))
        changed.append(model)
    return changed, f"tensor parallel ({', '.join(names)})" if names else ""


def _split(models: Sequence[ServedModel], gpus: Sequence[Gpu], utilization: float, most: float) -> str | None:
    changed, words = _widened(models, most, len(gpus))
    return words if words and place(changed, gpus, utilization) else None


def _fewer(models: Sequence[ServedModel], gpus: Sequence[Gpu], utilization: float) -> str | None:
    kept = sorted(models, key=lambda model: memory_of(model).total_gib)
    while len(kept) > 1:
        kept.pop()
        if place(kept, gpus, utilization):
            names = " ".join(f"--only {model.users[0]}" for model in models if model in kept)
            return f"fewer models: {names}"
    return None


def _more(models: Sequence[ServedModel], gpus: Sequence[Gpu], utilization: float) -> str | None:
    if gpus[0].index is None:
        return None
    size = gpus[0].total_gib
    for count in range(len(gpus) + 1, _MOST_GPUS + 1):
        extra = [Gpu(-1 - number, size, size) for number in range(count - len(gpus))]
        changed, words = _widened(models, size * utilization, count)
        if place(changed, [*gpus, *extra], utilization):
            return f"more GPUs: {count} of {size:.0f} GiB" + (f" with {words}" if words else "")
    return None
