"""The folder that shards are merged into: when it may be used, and how it gets there.

The one idea: nothing that was run is ever lost. An earlier merge may be replaced by a newer one of the same shards, and
only where they hold every finished trajectory that it holds.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from eval.journal import Journal
from eval.merge_lines import JournalLines
from registry.errors import UserFault

MARK = "merged.json"
"""Names the shards that a folder was merged from; a folder with it can be merged anew."""
JOURNAL = "journal.jsonl"


def check_target(out: Path, *, anew: bool) -> None:
    """Raises UserFault where ``out`` cannot be merged into: it holds something; with ``anew``, something that was not
    merged from shards."""
    if not out.exists() or (out.is_dir() and not any(out.iterdir())):
        return
    if not anew:
        raise UserFault("the folder to merge into is not empty", where=str(out), fix="give a new one with --out")
    if not (out / MARK).is_file():
        raise UserFault(
            "this folder holds something that was not merged from shards",
            where=str(out),
            fix="go on there without --engine, or give another folder with --run",
        )


def check_earlier(out: Path, lines: JournalLines) -> None:
    """Raises UserFault where the earlier merge holds finished trajectories that the shards do not."""
    if not (out / JOURNAL).is_file():
        return
    with Journal(out / JOURNAL) as journal:  # refused while somebody writes it
        held = lines.finished()
        alone = sum(facts.valid and key not in held for key, facts in journal.facts.items())
    if alone:
        raise UserFault(
            f"{alone} finished trajectories of the merged folder are in none of its shards",
            where=str(out),
            fix="they were run there: go on there without --engine, or give another folder with --run",
        )


def put(scratch: Path, out: Path) -> None:
    """Set the finished folder in its place; an earlier one goes only then."""
    old = scratch.with_name(scratch.name + "-old")
    replaces = out.exists()
    if replaces:
        os.replace(out, old)
    try:
        os.replace(scratch, out)
    except BaseException:
        if replaces:
            os.replace(old, out)
        raise
    shutil.rmtree(old, ignore_errors=True)
