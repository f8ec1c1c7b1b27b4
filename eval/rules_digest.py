"""Which rules scored: a digest of the files that decide a score, so that a run that goes on says if they changed."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

import rewards

_HERE = Path(__file__).parent
_OWN = ("judge.py", "benchmarks/options.py", "benchmarks/program.py", "benchmarks/scoring.py")
_MOST = 6  # changes that are told


@lru_cache(maxsize=1)
def rules_digest() -> str:
    """12 hex digits over names and contents of the rules' files."""
    home = Path(str(rewards.__file__)).parent
    whole = hashlib.sha256()
    for root, files in ((home, sorted(home.rglob("*.py"))), (_HERE, [_HERE / name for name in _OWN])):
        for path in files:
            whole.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return whole.hexdigest()[:12]


def version_changes(then: Mapping[str, str], now: Mapping[str, str]) -> str | None:
    """One line on what the trajectories of a journal were made with, where that is not what is there now."""
    names = [name for name in sorted(then.keys() | now.keys()) if then.get(name) != now.get(name)]
    if not names:
        return None
    shown = [f"{name} {then.get(name, '(none)')} -> {now.get(name, '(none)')}" for name in names[:_MOST]]
    more = f" and {len(names) - _MOST} more" if len(names) > _MOST else ""
    return f"this run was begun with other versions (then -> now): {', '.join(shown)}{more}"
