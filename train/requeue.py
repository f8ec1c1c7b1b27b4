"""Rows that machinery lost come back in a later step: the next one, then after 2, 4, ... steps.

One idea: a line of rows in front of verl's loader. A step plays the first rows of lost + held back + fresh, and what
finds no room is held back for the next step, so that no row is lost and none is played twice. After every step the line
is written down under the step's number: a run that goes on from a checkpoint stands in the line of that step.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

_MOST, _FILE, _BEFORE = "MAESTRO_REQUEUE", "MAESTRO_REQUEUE_FILE", "MAESTRO_REQUEUE_BEFORE"
ROW, MACHINERY = "row", "machinery"
"""Whose fault it is that a rollout is not valid: the tag `fault` of a stored rollout, empty where it is valid."""
COUNTS = ("requeued", "again", "given_up", "broken")
"""Rows of a step that were queued again; that came back; that came back too often; that are broken themselves."""

RowName = tuple[str, ...]


def row_name(row: Mapping[str, Any]) -> RowName:
    """What tells a row from all others: ids and indices start anew in every benchmark and split."""
    extra = row["extra_info"] or {}
    return (str(row.get("data_source")), *(str(extra.get(key)) for key in ("split", "id", "index")))


@dataclass(frozen=True)
class Waiting:
    """A row in the line. tries: how often it has come back. due: the first step in which it may be played."""

    name: RowName
    tries: int = 0
    due: int = 0


def verdict(faults: Sequence[str]) -> str:
    """What is to blame for a group that taught nothing, by the tags `fault` of its rollouts; empty where it may teach.

    A single valid rollout has nothing to be compared with. A rollout that raised left no tag.
    """
    if sum(fault == "" for fault in faults) >= 2:
        return ""
    return ROW if ROW in faults else MACHINERY


class RunRows:
    """The rows of a run by their names. `dataset` gives verl's data set, which is there later than the line."""

    dataset: Callable[[], Any]

    @cached_property
    def places(self) -> dict[RowName, int]:
        """Where in the data set each row stands."""
        rows = self.dataset().dataframe.select_columns(["data_source", "extra_info"])
        return {row_name(row): place for place, row in enumerate(rows)}

    def load(self, names: Sequence[RowName]) -> list[dict[str, Any]]:
        """The rows as verl's loader would give them."""
        dataset = self.dataset()
        return [dataset[self.places[name]] for name in names]


class RowQueue:
    """The line of one run.

    file: where it is written down. most: how often a row comes back before it is given up. before: the file that the
    line is read from at first, where it is not `file`.
    """

    def __init__(self, file: Path, most: int, before: Path | None = None) -> None:
        self.rows = RunRows()
        self._file, self._most, self._before = file, most, before or file
        self._line: list[Waiting] = []
        self._playing: dict[str, Waiting] = {}  # by the group's uid, in the order of the batch
        self._blame: dict[str, str] = {}
        self._step: int | None = None

    def take(self, step: int, uids: Sequence[str], fresh: Sequence[RowName]) -> list[RowName]:
        """The rows to play as the groups `uids` instead of the `fresh` ones that the loader gave.

        May be called several times a step.
        """
        if self._step is None:  # the run goes on; rows that it no longer has are left out
            self._line = [one for one in read_line(self._before, step - 1) if one.name in self.rows.places]
        self._step = step
        line = [*(one for one in self._line if one.due <= step), *map(Waiting, fresh)]
        later = [one for one in self._line if one.due > step]
        played, self._line = line[: len(uids)], later + line[len(uids) :]
        self._playing.update(zip(uids, played, strict=True))
        return [one.name for one in played]

    def judge(self, uid: str, faults: Sequence[str]) -> None:
        """A group is through."""
        self._blame[uid] = verdict(faults)

    def end_step(self, step: int) -> dict[str, int]:
        """The step's groups are together: its lost rows go to the head of the line. Returns COUNTS. Raises OSError."""
        counts, lost = Counter[str](), list[Waiting]()
        for uid, one in self._playing.items():
            blame = self._blame.get(uid, "")
            counts["again"] += one.tries > 0
            counts["broken"] += blame == ROW
            if blame == MACHINERY and one.tries < self._most:
                lost.append(Waiting(one.name, one.tries + 1, step + 2**one.tries))
            counts["given_up"] += blame == MACHINERY and one.tries >= self._most
        counts["requeued"] = len(lost)
        self._line = lost + self._line
        self._playing.clear()
        self._blame.clear()
        told = {name: counts[name] for name in COUNTS}
        line = [{"row": one.name, "tries": one.tries, "due": one.due} for one in self._line]
        append(self._file, {"step": step, **told, "line": line})
        return told


def append(file: Path, record: Mapping[str, Any]) -> None:
    """One JSON line, not joined to half a line that a killed run left. Raises OSError."""
    with file.open("a+b") as out:
        size = out.seek(0, os.SEEK_END)
        out.seek(max(0, size - 1))
        torn = out.read(1) not in (b"", b"\n")
        out.write(b"\n" * torn + json.dumps(record, ensure_ascii=False).encode() + b"\n")


def read_line(file: Path, step: int) -> list[Waiting]:
    """The line as it was after `step`; of a step that was repeated, after the last time."""
    found: list[Waiting] = []
    for record in _records(file):
        if record.get("step") == step:
            found = [Waiting(tuple(one["row"]), one["tries"], one["due"]) for one in record["line"]]
    return found


def _records(file: Path) -> Iterator[dict[str, Any]]:
    if not file.exists():
        return
    with file.open("rb") as lines:
        for line in lines:
            try:
                yield json.loads(line)
            except ValueError:
                continue  # half a line of a killed run


def requeued(prompts: Any, queue: RowQueue) -> Any:
    """The batch that is played instead of `prompts`, verl's TensorDict of a step; validation stays as it is."""
    if "validate" in prompts and prompts["validate"]:  # noqa: RUF019  (a TensorDict)
        return prompts
    uids = [str(uid) for uid in prompts["uid"]]
    sources, extras = list(prompts["data_source"]), list(prompts["extra_info"])
    fresh = [row_name({"data_source": s, "extra_info": e}) for s, e in zip(sources, extras, strict=True)]
    played = queue.take(int(prompts["global_steps"]), uids, fresh)
    if played == fresh:
        return prompts
    import numpy as np
    from verl.utils import tensordict_utils as tu
    from verl.utils.dataset.rl_dataset import collate_fn

    batch: dict[str, Any] = {**collate_fn(queue.rows.load(played)), "uid": np.array(uids, dtype=object)}
    made = tu.get_tensordict(batch)
    for key in set(prompts.keys()) - set(made.keys()):  # what is said of the whole batch, such as the step
        made[key] = prompts.get(key)
    return made


def environment(most: int, file: Path, checkpoint: Path | None) -> dict[str, str]:
    """What the trainer's process finds in its environment. checkpoint: of another run, from which this one begins."""
    if most == 0:
        return {}
    before = {} if checkpoint is None else {_BEFORE: str(checkpoint.parent.parent / file.name)}
    return {_MOST: str(most), _FILE: str(file), **before}


@lru_cache(maxsize=1)
def queue_of_run() -> RowQueue | None:
    """The line of the run that this process trains; None where rows do not come back (`grpo.requeue: 0`)."""
    most, file, before = int(os.environ.get(_MOST, "0")), os.environ.get(_FILE), os.environ.get(_BEFORE)
    return RowQueue(Path(file), most, Path(before) if before else None) if most > 0 and file else None
