"""`ServedModel`: one distinct model that a launcher starts, whichever experts and tools use it.

The one idea: experts and tools are names, models are processes. Parts that name the same model share one
server, which is made large enough for all of them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from registry.errors import UnknownName, UserFault
from registry.names import nearest, normalise
from registry.registry import Registry
from registry.schema import Expert, OpenAIBackend, Serving, Tool


@dataclass(frozen=True)
class ServedModel:
    """What a server must offer. `id` is the name that requests use, `source` a folder or hub id of weights.

    context_tokens, max_images: the largest of its users. ports: where its users expect it, maybe nowhere.
    """

    id: str
    experts: tuple[str, ...]
    tools: tuple[str, ...]
    context_tokens: int
    max_images: int
    serving: Serving = field(default_factory=Serving)
    parameters_b: float | None = None
    trust_remote_code: bool = False
    api_key_env: str | None = None
    ports: tuple[int, ...] = ()

    @property
    def source(self) -> str:
        """Where the weights are."""
        return self.serving.source or self.id

    @property
    def folder(self) -> Path | None:
        """The weights' folder when `source` is a path. Raises UserFault when there is none at that path."""
        path = Path(self.source).expanduser()
        if path.is_dir():
            return path
        if self.source.startswith(("/", ".", "~")) or self.source.count("/") > 1:
            raise UserFault(
                f"there is no model folder at {self.source!r}",
                where=f"model of {', '.join(self.users)}",
                fix="correct `serving.source` (or `backend.model`), or name a model of the hub as owner/name",
            )
        return None

    @property
    def users(self) -> tuple[str, ...]:
        """Names of the experts and tools that it answers for."""
        return (*self.experts, *self.tools)


@dataclass(frozen=True)
class Elsewhere:
    """An expert or tool whose server is not this launcher's business, and where that is."""

    name: str
    urls: tuple[str, ...]


def served_models(
    registry: Registry, only: Sequence[str] = ()
) -> tuple[tuple[ServedModel, ...], tuple[Elsewhere, ...]]:
    """The models to start, in the registry's order, and the parts that are served elsewhere.

    only: names of experts or tools; all when empty. Raises UserFault for a name that is unknown or runs in
    this process, for settings of one model that contradict each other, and when nothing is left to start.
    """
    chosen = [_named(registry, name) for name in only]
    groups: dict[str, list[Expert | Tool]] = {}
    elsewhere: list[Elsewhere] = []
    for part in (*registry.experts, *registry.tools):
        backend = part.backend
        if not isinstance(backend, OpenAIBackend):
            continue
        if _is_ours(part, backend):
            groups.setdefault(backend.model, []).append(part)
        elif not chosen or part in chosen:
            elsewhere.append(Elsewhere(part.name, tuple(r.url for r in backend.replicas)))
    models = tuple(
        _merged(model, parts) for model, parts in groups.items() if not chosen or any(part in chosen for part in parts)
    )
    if not models:
        raise UserFault(
            "nothing to start: "
            + (_list(elsewhere) if elsewhere else "no expert or tool of this registry is a served model"),
            fix="write `backend: {type: openai, model: ..., replicas: [{url: http://127.0.0.1:8101/v1}]}`, "
            "or `serving: {launch: always}` into what shall be started here",
        )
    return models, tuple(elsewhere)


def _list(elsewhere: Collection[Elsewhere]) -> str:
    return "; ".join(f"{part.name} is served elsewhere ({', '.join(part.urls)})" for part in elsewhere)


def _named(registry: Registry, name: str) -> Expert | Tool:
    wanted = normalise(name)
    parts = (*registry.experts, *registry.tools)
    for part in parts:
        if wanted in map(normalise, (part.name, *part.aliases)):
            if not isinstance(part.backend, OpenAIBackend):
                raise UserFault(f"{part.name!r} is a program in this process; there is no server to start")
            return part
    raise UnknownName("expert or tool", name, nearest(name, (part.name for part in parts)))


def _is_ours(part: Expert | Tool, backend: OpenAIBackend) -> bool:
    if part.serving.launch != "auto":
        return part.serving.launch == "always"
    return all(_is_loopback(replica.url) for replica in backend.replicas)


def _is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    return host in ("localhost", "::1") or host.startswith("127.")


def _merged(model: str, parts: Sequence[Expert | Tool]) -> ServedModel:
    backends = [part.backend for part in parts if isinstance(part.backend, OpenAIBackend)]
    urls = [replica.url for backend in backends for replica in backend.replicas]
    ports = [urlsplit(url).port for url in urls if _is_loopback(url)]
    return ServedModel(
        id=model,
        experts=tuple(part.name for part in parts if isinstance(part, Expert)),
        tools=tuple(part.name for part in parts if isinstance(part, Tool)),
        context_tokens=max(part.limits.context_tokens for part in parts),
        max_images=max(part.limits.max_images for part in parts),
        serving=Serving(**_agreed(parts, [part.serving.model_dump(exclude_unset=True) for part in parts])),
        parameters_b=_agreed(parts, [{"parameters_b": part.parameters_b} for part in parts]).get("parameters_b"),
        trust_remote_code=any(backend.trust_remote_code for backend in backends),
        api_key_env=_agreed(parts, [{"api_key_env": b.api_key_env} for b in backends]).get("api_key_env"),
        ports=tuple(dict.fromkeys(port for port in ports if port)),
    )


def _agreed(parts: Sequence[Expert | Tool], stated: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """What the users of one model say about it; silence (None) agrees with everything."""
    agreed: dict[str, Any] = {}
    owner: dict[str, str] = {}
    for part, fields in zip(parts, stated, strict=True):
        for name, value in fields.items():
            if value is None or name == "launch":
                continue
            if agreed.setdefault(name, value) != value:
                raise UserFault(
                    f"{owner[name]!r} and {part.name!r} use one model but differ in {name}: "
                    f"{agreed[name]!r} and {value!r}",
                    fix="write the same value into both, or leave it out of one",
                )
            owner.setdefault(name, part.name)
    return agreed
