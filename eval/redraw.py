"""What a run folder needs to be read again without running anything: its settings and its matrix.

The one idea: results and report are a function of the folder, so they can be made anew (after an interrupted run,
with a newer template) from ``eval.json``, ``matrix.json`` and the journal; only the rows are drawn again, and where
they cannot be had, nothing but their pictures is missing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from eval.benchmarks.spec import Benchmark
from eval.config import VALIDATION, EvalConfig
from eval.journal import Journal
from eval.matrix import Matrix
from eval.output import Outputs, write_outputs
from eval.parts import KEY as PARTS
from eval.parts import Parts, parts_in
from eval.phases import Clock, StartPhase, silent
from eval.row_digest import KEY, check_measured
from eval.rows import Rows
from eval.shard import Shard, parse_shard
from eval.splits import load_splits
from eval.unread_rows import Unread, unread_rows
from eval.whole_file import write_whole
from registry.errors import UserFault

FILE = "eval.json"
MATRIX_FILE = "matrix.json"


@dataclass(frozen=True)
class Asked:
    """What a folder's last start was asked to do."""

    config: EvalConfig
    limit: int | None
    shard: Shard | None
    versions: Mapping[str, str]
    parts: Parts | None = None
    """The names in its registry."""
    benchmark: Benchmark | None = None
    """As its file was then."""


def remember(
    folder: Path,
    config: EvalConfig,
    limit: int | None,
    versions: Mapping[str, str],
    shard: Shard | None = None,
    parts: Parts | None = None,
) -> None:
    """Lay down what the folder's last start was asked to do."""
    benchmark = config.definition_if_any()
    record = {"limit": limit, "versions": dict(versions), "config": config.model_dump(mode="json")}
    if benchmark is not None:  # a file of the user's own may be gone when trajectories are scored again
        record["benchmark"] = benchmark.model_dump(mode="json")
    record |= {} if parts is None else {PARTS: parts.to_json()}
    _write(folder / FILE, record | ({} if shard is None else {"shard": str(shard)}))


def recall(folder: Path) -> Asked:
    """Inverse of ``remember``. Raises UserFault where the folder holds no evaluation that can be read."""
    try:
        record = json.loads((folder / FILE).read_text(encoding="utf-8"))
        config = EvalConfig.model_validate(record["config"])
        shard = parse_shard(record["shard"]) if "shard" in record else None
        benchmark = _benchmark(record.get("benchmark"))
        return Asked(config, record["limit"], shard, record["versions"], parts_in(record), benchmark)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserFault(
            "this folder holds no evaluation that can be read",
            where=str(folder / FILE),
            fix="give the folder that `maestro evaluate` wrote (its --run)",
        ) from error


def _benchmark(saved: Any) -> Benchmark | None:
    try:
        return None if saved is None else Benchmark.model_validate(saved)
    except ValueError:  # written by another version
        return None


def save_matrix(folder: Path, rows: int, matrix: Matrix, digest: str) -> None:
    """Keep the matrix measured on ``rows`` validation rows of this digest."""
    _write(folder / MATRIX_FILE, {"rows": rows, KEY: digest, **matrix.to_json()})


def load_matrix(folder: Path, rows: int, digest: str | None = None) -> Matrix | None:
    """The matrix of the folder, if it was measured on that many rows. Raises UserFault where those were others, as
    ``digest`` tells."""
    try:
        saved = json.loads((folder / MATRIX_FILE).read_text(encoding="utf-8"))
        matrix = Matrix.from_json(saved) if saved["rows"] == rows else None
    except (OSError, ValueError, KeyError):
        return None
    if matrix is not None and digest is not None:
        check_measured(saved, digest, folder / MATRIX_FILE)
    return matrix


def redraw(folder: Path, *, data_root: Path | None = None, start_phase: StartPhase = silent) -> Outputs:
    """Make results, figures and report of a run folder anew; runs no episode. Where the rows cannot be read, from the
    folder alone: the report then lacks the pictures and says why (``Outputs.unread``).

    Args:
        data_root: where the benchmark's rows are now, if not where the run read them.

    Raises:
        UserFault: the folder holds no evaluation, one is being written at this moment, or the rows are not in
            ``data_root``.
    """
    asked = recall(folder)
    if data_root is not None:
        moved = asked.config.data.model_copy(update={"root": data_root})
        asked = replace(asked, config=asked.config.model_copy(update={"data": moved}))
    with Journal(folder / "journal.jsonl") as journal:
        read = _read(folder, asked, journal, start_phase)
        if isinstance(read, Unread) and data_root is not None:
            raise read.why
        if isinstance(read, Unread):
            splits, matrix, unread = read.splits, _saved_matrix(folder, asked.config), read
        else:
            known = [len(rows.tasks) for rows in read if rows.split == VALIDATION]
            splits, matrix, unread = read, load_matrix(folder, known[0]) if known else None, None
        return write_outputs(
            asked.config, folder, journal, splits, matrix, seconds=Clock(folder).seconds,
            versions=asked.versions, parts=asked.parts, unread=unread, saved=asked.benchmark,
        )  # fmt: skip


def _read(folder: Path, asked: Asked, journal: Journal, start_phase: StartPhase) -> list[Rows] | Unread:
    """The rows, read to their end once."""
    try:
        splits = load_splits(asked.config, asked.limit, start_phase, asked.shard)
        for rows in splits:
            len(rows.tasks)
        return splits
    except UserFault as why:
        return unread_rows(folder, journal, asked.config, asked.limit, asked.shard, asked.benchmark, why)


def _saved_matrix(folder: Path, config: EvalConfig) -> Matrix | None:
    """The folder's matrix, on however many rows it was measured."""
    try:
        rows = json.loads((folder / MATRIX_FILE).read_text(encoding="utf-8"))["rows"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return load_matrix(folder, rows) if config.needs_validation else None


def _write(path: Path, record: Mapping[str, Any]) -> None:
    try:
        write_whole(path, json.dumps(record, indent=1, ensure_ascii=False) + "\n")
    except OSError as error:
        raise UserFault(f"cannot write: {error.strerror or error}", where=str(path)) from error
