"""A read-only mapping of plain values, so that a loaded registry can't change under its readers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn


class FrozenMap(dict[str, Any]):
    """A dict that refuses to change. Values are plain data; lists become tuples and dicts become `FrozenMap`.

    It stays a dict so that `json`, `pickle` and `Program(**options)` work on it as they are.
    """

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("a registry is read-only; load another one instead")

    __setitem__ = __delitem__ = __ior__ = _refuse  # type: ignore[assignment]
    clear = pop = popitem = setdefault = update = _refuse  # type: ignore[assignment]

    def __reduce__(self) -> tuple[object, ...]:
        return (FrozenMap, (dict(self),))

    def __copy__(self) -> FrozenMap:
        return self

    def __deepcopy__(self, _: dict[int, object]) -> FrozenMap:
        return self


def freeze(value: Any) -> Any:
    """A deeply read-only copy of plain data (mappings, lists, scalars)."""
    if isinstance(value, Mapping):
        return FrozenMap({str(key): freeze(item) for key, item in value.items()})
    if isinstance(value, list | tuple):
        return tuple(freeze(item) for item in value)
    return value
