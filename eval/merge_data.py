"""Whether the shards of an evaluation were answered over one and the same data.

The one idea: every line of a journal carries the digest of its row, and what was measured on validation rows carries
theirs, so shards are compared with each other and with the data that is there now, row by row; merging reads the rows
anyway. Lines and files of earlier versions carry none, and are taken.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from eval.merge_lines import JournalLines
from eval.merge_target import JOURNAL
from eval.plain import FILE as PLAIN_FILE
from eval.redraw import MATRIX_FILE
from eval.row_digest import KEY, row_digest
from eval.rows import Rows
from eval.shard import Shard
from registry.errors import UserFault

_SAME_DATA = "the data or the number of rows has changed since; run the shards again on the same data"


@dataclass(frozen=True, slots=True)
class _Home:
    """Where a row belongs, and its digest in the data as it is now."""

    part: int
    digest: str


def check_rows(folders: Sequence[Path], shards: Sequence[Shard], lines: JournalLines, splits: Sequence[Rows]) -> None:
    """Raises UserFault for a row that is not in the data, that is another shard's, or that was another question when
    its shard answered it."""
    homes = {
        entry.task.row_id: _Home(position % len(shards), row_digest(entry.task))
        for rows in splits
        for position, entry in enumerate(rows)
    }
    for index, shard in enumerate(shards):
        for key in lines.keys(index):
            home = homes.get(key[1])
            if home is not None and home.part == index:
                continue
            told = "which the data does not hold" if home is None else f"which belongs to shard {shards[home.part]}"
            raise UserFault(
                f"shard {shard} holds the row {key[1]!r}, {told}", where=str(folders[index] / JOURNAL), fix=_SAME_DATA
            )
    _check_digests(folders, shards, lines, homes)


def _check_digests(
    folders: Sequence[Path], shards: Sequence[Shard], lines: JournalLines, homes: dict[str, _Home]
) -> None:
    changed: dict[int, str] = {}
    for index in range(len(shards)):
        for key in lines.keys(index):
            place = lines.place(index, key)
            if place is not None and place.digest not in (None, homes[key[1]].digest):
                changed.setdefault(index, key[1])
    if not changed:
        return
    index, row_id = next(iter(changed.items()))
    others = [str(shard) for at, shard in enumerate(shards) if at not in changed]
    fits = f"; shard {', '.join(others)} was answered over the data as it is now" if others else ""
    named = ", ".join(str(shards[at]) for at in changed)
    raise UserFault(
        f"shard {named} was answered over other data than there is now: row {row_id!r} had another question, other"
        f" options or another right answer{fits}",
        where=", ".join(str(folders[at] / JOURNAL) for at in changed),
        fix="put the data back under which every shard was run, or run "
        f"shard {named} again in a new folder on the data as it is now",
    )


def check_measured_alike(folders: Sequence[Path], shards: Sequence[Shard]) -> None:
    """Raises UserFault where two shards chose their pairs on different validation rows."""
    for name in (MATRIX_FILE, PLAIN_FILE):
        known = [(shard, folder / name, _rows_of(folder / name)) for shard, folder in zip(shards, folders, strict=True)]
        told = [(shard, path, digest) for shard, path, digest in known if digest is not None]
        for shard, path, digest in told[1:]:
            if digest != told[0][2]:
                raise UserFault(
                    f"shards {told[0][0]} and {shard} chose their pairs on different validation rows: the data was"
                    " another one for each",
                    where=f"{told[0][1]}, {path}",
                    fix="run the shards again on the same data, each in a new folder",
                )


def _rows_of(path: Path) -> str | None:
    """The digest of the validation rows on which a file was measured."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))[KEY]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return found if isinstance(found, str) else None
