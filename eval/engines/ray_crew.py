"""A crew of Ray actors: one for each shard, on any node with a free CPU.

The one idea: Ray says where a worker runs and when it is gone; all else is the worker's and the supervisor's. Ray
itself restarts nothing, and workers end with the program that started them, whatever ends it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from eval.engines.events import Began, Died, Event, Finished, Progressed, Refused
from eval.engines.plan import Plan
from eval.engines.worker import Job, Look, Outcome, Worker
from eval.shard import Shard
from registry.errors import UserFault

STOP_S = 20.0
"""Seconds in which a worker may end its episodes before it is killed."""
_THREADS = 4  # the run, and questions about it meanwhile
_LONGEST_REASON = 300


@dataclass
class _Member:
    actor: Any
    run: Any
    node: Any
    progress: Any = None
    placed: bool = False


class RayCrew:
    """Runs the shards of ``plan`` on the cluster to which this process is connected."""

    def __init__(self, plan: Plan, job: Job) -> None:
        self._plan, self._job = plan, job
        self._members: dict[Shard, _Member] = {}

    def start(self, shard: Shard) -> None:
        import ray

        kind: Any = ray.remote(Worker)
        options = {"num_cpus": 1, "max_restarts": 0, "max_concurrency": _THREADS, "scheduling_strategy": "SPREAD"}
        actor = kind.options(**options).remote(self._job, shard, self._plan.folder(shard))
        self._members[shard] = _Member(actor, actor.run.remote(), actor.node.remote())

    def poll(self, seconds: float) -> list[Event]:
        import ray

        members = list(self._members.items())
        waiting = [member.run for _, member in members] + [member.node for _, member in members if not member.placed]
        if waiting:
            ray.wait(waiting, num_returns=1, timeout=seconds)
        events: list[Event] = []
        for shard, member in members:
            events += self._of(shard, member)
        return events

    def stop(self) -> None:
        import ray

        placed = [member for member in self._members.values() if member.placed]
        try:
            for member in placed:
                member.actor.stop.remote()
            if placed:
                ray.wait([member.run for member in placed], num_returns=len(placed), timeout=STOP_S)
        finally:
            for shard in list(self._members):
                self._end(shard)

    def _of(self, shard: Shard, member: _Member) -> list[Event]:
        import ray
        from ray.exceptions import RayError

        events: list[Event] = []
        try:
            if not member.placed and _ready(member.node):
                member.placed = True
                events.append(Began(shard, str(ray.get(member.node))))
            if member.placed:
                events += self._progress(shard, member)
            if _ready(member.run):
                outcome: Any = ray.get(member.run)
                events += [*self._last_look(shard, member), _ending(shard, outcome)]
                self._end(shard)
        except RayError as error:
            self._end(shard)
            events.append(Died(shard, _reason(error)))
        return events

    def _last_look(self, shard: Shard, member: _Member) -> list[Event]:
        """The progress at the end, so that what is shown is what was done."""
        import ray
        from ray.exceptions import RayError

        try:
            return [_progressed(shard, ray.get(member.actor.look.remote(), timeout=STOP_S))]
        except RayError:
            return []

    def _progress(self, shard: Shard, member: _Member) -> list[Event]:
        import ray

        events: list[Event] = []
        if member.progress is not None and _ready(member.progress):
            events.append(_progressed(shard, ray.get(member.progress)))
            member.progress = None
        if member.progress is None:
            member.progress = member.actor.look.remote()
        return events

    def _end(self, shard: Shard) -> None:
        import ray

        member = self._members.pop(shard, None)
        if member is not None:
            ray.kill(member.actor, no_restart=True)


def _ready(reference: Any) -> bool:
    import ray

    return bool(ray.wait([reference], num_returns=1, timeout=0)[0])


def _progressed(shard: Shard, look: Look) -> Event:
    return Progressed(shard, look.phases, look.warnings)


def _ending(shard: Shard, outcome: Outcome) -> Event:
    if outcome.fault is None:
        return Finished(shard, outcome.ran, outcome.repaired_bytes)
    what, where, fix = outcome.fault
    return Died(shard, what) if outcome.again else Refused(shard, UserFault(what, where=where, fix=fix))


def _reason(error: BaseException) -> str:
    """The telling line of Ray's long message: the cause of an exception, the first line of a loss."""
    cause = getattr(error, "cause", None)
    text = f"{type(cause).__name__}: {cause}" if isinstance(cause, BaseException) else str(error)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return (lines[0] if lines else type(error).__name__)[:_LONGEST_REASON]
