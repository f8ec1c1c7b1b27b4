"""What a crew of workers tells about the shards that it runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from eval.engines.progress import Steps
from eval.shard import Shard
from registry.errors import UserFault


@dataclass(frozen=True)
class Began:
    """A node has taken the shard."""

    shard: Shard
    node: str


@dataclass(frozen=True)
class Progressed:
    """``warnings``: all that the shard's run warned of so far."""

    shard: Shard
    phases: Mapping[str, Steps]
    warnings: Sequence[str] = ()


@dataclass(frozen=True)
class Finished:
    """The shard is done: ``ran`` trajectories now; ``repaired_bytes`` were cut from its journal's broken end."""

    shard: Shard
    ran: int
    repaired_bytes: int


@dataclass(frozen=True)
class Died:
    """The worker is gone, or broke off for a reason that another try may not meet."""

    shard: Shard
    reason: str


@dataclass(frozen=True)
class Refused:
    """The evaluation told its user what to mend; another try would tell the same."""

    shard: Shard
    fault: UserFault


Event = Began | Progressed | Finished | Died | Refused


class Crew(Protocol):
    """Runs shards somewhere, one worker each."""

    def start(self, shard: Shard) -> None:
        """Run the shard; after its death once more, with a new worker."""
        ...

    def poll(self, seconds: float) -> list[Event]:
        """What happened; waits at most ``seconds`` for something to happen."""
        ...

    def stop(self) -> None:
        """End all workers, politely first; none is left afterwards."""
        ...
