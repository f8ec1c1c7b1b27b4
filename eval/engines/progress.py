"""The progress of many shards as that of one evaluation.

The one idea: a shard counts the steps of its phases; what is shown of a phase is the sum over shards. A shard that
starts again has less to do, so what its earlier tries did stays in the sum and never runs backwards.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping

from eval.shard import Shard

Steps = tuple[int, int | None]
"""Steps done, and all steps; ``None``: not known beforehand."""
Show = Callable[[str, int, int | None], None]
"""Called with a phase's name, the steps done and all steps."""


class Counter:
    """Counts the steps of phases; one thread counts while another reads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._done: dict[str, int] = {}
        self._steps: dict[str, int | None] = {}

    def start_phase(self, name: str, steps: int | None) -> Callable[[], None]:
        """As `eval.phases.StartPhase`; a phase that starts again adds its steps."""
        with self._lock:
            self._done.setdefault(name, 0)
            self._steps[name] = _plus(self._steps.get(name, 0), steps)

        def advance() -> None:
            with self._lock:
                self._done[name] += 1

        return advance

    def read(self) -> dict[str, Steps]:
        with self._lock:
            return {name: (done, self._steps[name]) for name, done in self._done.items()}


class Board:
    """What every shard last said."""

    def __init__(self, shards: Iterable[Shard]) -> None:
        self._now: dict[Shard, dict[str, Steps]] = {shard: {} for shard in shards}
        self._earlier: dict[Shard, dict[str, int]] = {shard: {} for shard in self._now}

    def update(self, shard: Shard, phases: Mapping[str, Steps]) -> None:
        self._now[shard] = dict(phases)

    def restart(self, shard: Shard) -> None:
        """The shard begins a new try: what it did so far stays counted."""
        earlier = self._earlier[shard]
        for name, (done, _) in self._now[shard].items():
            earlier[name] = earlier.get(name, 0) + done
        self._now[shard] = {}

    def total(self) -> dict[str, Steps]:
        """Each phase over all shards, in the order in which they were first told."""
        found: dict[str, Steps] = {}
        for shard, phases in self._now.items():
            for name, before in self._earlier[shard].items():
                done, steps = found.get(name, (0, 0))
                found[name] = (done + before, _plus(steps, before))
            for name, (now, now_steps) in phases.items():
                done, steps = found.get(name, (0, 0))
                found[name] = (done + now, _plus(steps, now_steps))
        return found


def _plus(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else one + other
