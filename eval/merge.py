"""The shards of an evaluation put together into one run folder.

The one idea: nothing is run and nothing is computed anew but the numbers. The rows are drawn again to know their
order and to which shard each belongs; the merged journal holds the shards' lines in that order, copied one by one,
and results and report are made from it as from any other. The merged folder is an ordinary one: what a shard left
undone, the same command without `--shard` runs there.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eval.config import VALIDATION
from eval.identity import FILE as IDENTITY
from eval.identity import differences, hold
from eval.merge_data import check_measured_alike, check_rows
from eval.merge_lines import JournalLines
from eval.merge_target import JOURNAL, MARK, check_earlier, check_target, put
from eval.output import Outputs
from eval.phases import StartPhase, silent
from eval.redraw import MATRIX_FILE, Asked, recall, redraw, remember
from eval.rows import Rows
from eval.shard import Shard
from eval.splits import load_splits
from eval.variants import samples_of, variants
from eval.whole_file import write_whole
from registry.errors import UserFault

_SECONDS = "seconds.json"
_SHOWN = 12


@dataclass(frozen=True)
class Part:
    """One shard's folder."""

    folder: Path
    shard: Shard
    asked: Asked
    identity: Mapping[str, Any]
    """Without the shard: what must be the same in all."""


def merge(folders: Sequence[Path], out: Path, *, anew: bool = False, start_phase: StartPhase = silent) -> Outputs:
    """Merge the shards of one evaluation into the new folder ``out``.

    Args:
        anew: ``out`` may be an earlier merge of the same evaluation; it is replaced once the new one stands.

    Raises:
        UserFault: a folder is no shard or holds rows that are not its own, settings differ (each difference is told),
            a shard was answered over other data than the others or than there is now, a shard is given twice or
            missing (named), or ``out`` is not empty; with ``anew``: ``out`` was not merged, or trajectories have been
            run in it that the shards do not hold.
    """
    parts = sorted((_part(folder) for folder in folders), key=lambda part: part.shard)
    _check_settings(parts)
    _check_complete(parts)
    check_measured_alike([part.folder for part in parts], [part.shard for part in parts])
    check_target(out, anew=anew)
    first = parts[0].asked
    splits = [rows for rows in load_splits(first.config, first.limit, start_phase) if rows.split != VALIDATION]
    out.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=f".{out.name}-", dir=out.parent))
    try:
        hold(scratch, parts[0].identity)
        remember(scratch, first.config, first.limit, _versions(parts), parts=first.parts)
        with JournalLines([part.folder / JOURNAL for part in parts]) as lines:
            check_rows([part.folder for part in parts], [part.shard for part in parts], lines, splits)
            check_earlier(out, lines)
            _write_journal(parts, lines, splits, scratch / JOURNAL, start_phase)
        _write_json(scratch / _SECONDS, _seconds(parts))
        matrix = _best_matrix(parts)
        if matrix is not None:
            shutil.copyfile(matrix, scratch / MATRIX_FILE)
        drawn = redraw(scratch, start_phase=start_phase)
        _write_json(scratch / MARK, {"shards": [part.folder.name for part in parts]})
        os.chmod(scratch, 0o755)
        put(scratch, out)
    except BaseException:
        shutil.rmtree(scratch, ignore_errors=True)
        raise
    results = json.loads((out / "results.json").read_text(encoding="utf-8"))
    figures = tuple(sorted(out.glob("*.png")))
    return Outputs(results, out / "results.json", out / "report.html", figures, drawn.unread)


def _part(folder: Path) -> Part:
    asked = recall(folder)
    path = folder / IDENTITY
    try:
        identity = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserFault("the run's identity cannot be read", where=str(path)) from error
    if asked.shard is None or identity.pop("shard", None) != str(asked.shard):
        raise UserFault(
            "this run is no shard", where=str(folder), fix="merge runs that were made with --shard 1/n to --shard n/n"
        )
    return Part(folder, asked.shard, asked, identity)


def _check_settings(parts: Sequence[Part]) -> None:
    for part in parts[1:]:
        first = parts[0]
        changes = [
            *differences(first.identity, part.identity),
            *differences({"--limit": first.asked.limit}, {"--limit": part.asked.limit}),
            *differences({"parts": first.shard.count}, {"parts": part.shard.count}),
        ]
        if changes:
            shown = "\n".join(f"  {line}" for line in changes[:_SHOWN])
            more = f"\n  ... and {len(changes) - _SHOWN} more" if len(changes) > _SHOWN else ""
            raise UserFault(
                f"shards {first.shard} -> {part.shard} were made with different settings:\n{shown}{more}",
                where=f"{first.folder}, {part.folder}",
                fix="run the differing shard again with the same settings",
            )


def _check_complete(parts: Sequence[Part]) -> None:
    by_shard: dict[Shard, Path] = {}
    for part in parts:
        if part.shard in by_shard:
            raise UserFault(
                f"shard {part.shard} is given twice",
                where=f"{by_shard[part.shard]}, {part.folder}",
                fix="leave one of them out",
            )
        by_shard[part.shard] = part.folder
    count = parts[0].shard.count if parts else 0
    missing = [str(shard) for index in range(1, count + 1) if (shard := Shard(index, count)) not in by_shard]
    if missing or not parts:
        raise UserFault(
            f"{'no shard is given' if not parts else 'missing: shard ' + ', '.join(missing)}",
            fix="give the folders of all shards, from 1/n to n/n",
        )


def _write_journal(
    parts: Sequence[Part], lines: JournalLines, splits: Sequence[Rows], path: Path, start_phase: StartPhase
) -> None:
    """Copies every trajectory once, in the order of arms, rows and samples."""
    advance = start_phase("merging", lines.total)
    with path.open("wb") as merged:
        for key, index in _places(parts, splits):
            if lines.place(index, key) is not None:
                merged.write(lines.copy(index, key))
                advance()
        merged.flush()
        os.fsync(merged.fileno())


def _places(parts: Sequence[Part], splits: Sequence[Rows]) -> Iterator[tuple[tuple[str, str, int], int]]:
    """Every key that the evaluation has, and which part it belongs to."""
    config, count = parts[0].asked.config, len(parts)
    for variant in variants(config):
        for rows in splits:
            for position, row_id in enumerate(rows.ids):
                for sample in range(samples_of(config, variant)):
                    yield (variant.key, row_id, sample), position % count


def _versions(parts: Sequence[Part]) -> dict[str, str]:
    """One version where all shards agree, otherwise each that occurs."""
    names = sorted({name for part in parts for name in part.asked.versions})
    return {name: " | ".join(sorted({str(part.asked.versions.get(name, "none")) for part in parts})) for name in names}


def _seconds(parts: Sequence[Part]) -> dict[str, float]:
    """Wall seconds of each phase, summed over shards."""
    total: dict[str, float] = {}
    for part in parts:
        try:
            found = json.loads((part.folder / _SECONDS).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        for name, value in found.items():
            total[name] = round(total.get(name, 0.0) + float(value), 3)
    return total


def _best_matrix(parts: Sequence[Part]) -> Path | None:
    """The matrix with the fewest failed calls: every shard has measured it on the same validation rows."""
    found = []
    for part in parts:
        path = part.folder / MATRIX_FILE
        try:
            found.append((int(json.loads(path.read_text(encoding="utf-8"))["errors"]), part.shard, path))
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return min(found)[2] if found else None


def _write_json(path: Path, content: Mapping[str, Any]) -> None:
    write_whole(path, json.dumps(content, indent=1) + "\n")
