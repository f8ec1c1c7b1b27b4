"""The folder of a finished evaluation as a user names it: found, or told which one may have been meant."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

from registry.errors import UserFault
from registry.names import nearest

JOURNAL = "journal.jsonl"
_FILES = {JOURNAL, "results.json", "report.html", "eval.json", "identity.json", "scores.jsonl", "matrix.json"}
_MOST_LOOKED_AT, _SHOWN = 2000, 5
_FIX = "give the folder that `maestro evaluate` wrote (its --run)"


def check_run(folder: Path) -> None:
    """Raises UserFault where ``folder`` does not hold the journal of an evaluation: missing (with the nearest names
    beside it), a file, or a folder of something else (with the runs that lie in it)."""
    if (folder / JOURNAL).is_file():
        return
    if not folder.exists():
        runs = _runs_in(folder.parent)
        near = [str(folder.with_name(name)) for name in nearest(folder.name, runs)]
        there = [str(folder.with_name(name)) for name in runs[:_SHOWN]]
        hint = f"did you mean {' or '.join(near)}?" if near else f"runs there: {', '.join(there)}" if there else _FIX
        raise UserFault("there is no such run", where=str(folder), fix=hint)
    if not folder.is_dir():
        fix = f"give its folder: {folder.parent}" if folder.name in _FILES else _FIX
        raise UserFault("this is a file, not the folder of an evaluation", where=str(folder), fix=fix)
    inside = [str(folder / name) for name in _runs_in(folder)[:_SHOWN]]
    raise UserFault(
        f"this folder holds no evaluation (no {JOURNAL})",
        where=str(folder),
        fix=f"runs in it: {', '.join(inside)}" if inside else _FIX,
    )


def nothing_in(folder: Path) -> UserFault:
    """The fault of a journal without any trajectory."""
    journal = folder / JOURNAL
    if journal.stat().st_size == 0:
        return UserFault("nothing has run yet: the journal is empty", where=str(journal), fix="run `maestro evaluate`")
    return UserFault("no line of this file is a trajectory of an evaluation", where=str(journal), fix=_FIX)


def _runs_in(folder: Path) -> list[str]:
    """Names of the runs in a folder, sorted; of a very full one, those among the first entries."""
    try:
        found = list(islice(folder.iterdir(), _MOST_LOOKED_AT))
    except OSError:
        return []
    return sorted(path.name for path in found if (path / JOURNAL).is_file())
