"""Some of a run's rollouts to read, and the pictures they were about.

One idea: the file of rollouts may hold gigabytes, so its lines are looked at one by one and only the wanted steps are
read; pictures come out of the rows' own parquet file, from the row groups that hold them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any

from experts.images import ImageFault, Picture, load_pictures
from train.rollout_log import RolloutRecord, record_of

_STEP = re.compile(rb'^\{"step":(\d+),"attempt":(\d+),"split":"(\w+)"')
_NO_TRAJECTORY = b'"trajectory":null'
Place = tuple[str, int]
"""split, step"""


def spread(steps: Sequence[int], most: int) -> list[int]:
    """At most `most` of the steps, evenly spread; the first and the last are among them."""
    if len(steps) <= most:
        return list(steps)
    if most == 1:
        return [steps[-1]]
    return [steps[round(place * (len(steps) - 1) / (most - 1))] for place in range(most)]


def sampled(path: Path, wanted: Collection[Place], most: int) -> dict[Place, list[RolloutRecord]]:
    """Rollouts of the wanted splits and steps that hold their trajectory, at most `most` of each, in the order in which
    they finished; of a repeated step those of the highest attempt."""
    found: dict[Place, list[RolloutRecord]] = {}
    if not path.exists():
        return found
    places = {(split.encode(), b"%d" % step): (split, step) for split, step in wanted}
    with path.open("rb") as file:
        for line in file:
            start = _STEP.match(line)
            place = places.get((start[3], start[1])) if start else None
            if start is None or place is None:
                continue
            kept = found.setdefault(place, [])
            attempt, known = int(start[2]), kept[0].attempt if kept else 0
            if attempt < known or (attempt == known and len(kept) >= most) or _NO_TRAJECTORY in line[:20_000]:
                continue
            try:
                record = record_of(json.loads(line))
            except ValueError:
                continue  # the line that a killed writer left half done
            if attempt > known:
                kept.clear()
            kept.append(record)
    return {place: found[place] for place in wanted if found.get(place)}


def steps_in(path: Path, split: str) -> list[int]:
    """The steps of a split, in order."""
    if not path.exists():
        return []
    with path.open("rb") as file:
        found = {int(m[1]) for line in file if (m := _STEP.match(line)) and m[3] == split.encode()}
    return sorted(found)


def pictures_of(files: Iterable[Path], records: Iterable[RolloutRecord], known: Collection[str]) -> dict[str, Picture]:
    """The records' pictures by their SHA-256, out of the parquet files of their rows, but for those that are `known`.

    Only the records' own rows are read. What is not there, or cannot be read, is left out.
    """
    asked = [r for r in records if {p["sha256"] for p in (r.trajectory or {}).get("pictures") or ()} - set(known)]
    sha256s = {p["sha256"] for r in asked for p in (r.trajectory or {})["pictures"]} - set(known)
    names, indices = {r.row for r in asked}, {r.index for r in asked}
    import pyarrow as pa
    import pyarrow.parquet as pq

    found: dict[str, Picture] = {}
    for path in files:
        try:
            with pq.ParquetFile(path) as file:
                for group in range(file.num_row_groups):
                    if len(found) == len(sha256s):
                        return found
                    extras = file.read_row_group(group, columns=["extra_info"])["extra_info"].to_pylist()
                    rows = [at for at, extra in enumerate(extras) if _is_asked(extra or {}, names, indices)]
                    if not rows:
                        continue
                    images = file.read_row_group(group, columns=["images"])["images"].take(pa.array(rows))
                    for row in images:
                        for picture in _load(row.as_py(), path):
                            if picture.sha256 in sha256s:
                                found[picture.sha256] = picture
        except (OSError, KeyError, pa.ArrowException):
            continue
    return found


def _is_asked(extra: dict[str, Any], names: set[str], indices: set[int]) -> bool:
    return str(extra["id"]) in names if extra.get("id") is not None else extra.get("index") in indices


def _load(images: object, path: Path) -> Sequence[Picture]:
    try:
        return load_pictures(images, roots=[path.resolve().parent], where=str(path))
    except ImageFault:
        return ()
