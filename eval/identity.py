"""What a run folder was made with, so that rows measured under two settings never end up in one table.

The one idea: everything that can change a result (seed, arms, budgets, contents of registry and
checkpoints) is written to ``identity.json`` at the first start; a later start with anything different is
refused and the difference is shown.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from eval.whole_file import write_whole
from registry.errors import UserFault

FILE = "identity.json"
_EDGE = 1 << 20
_SHOWN = 12


def hold(folder: Path, identity: Mapping[str, Any]) -> None:
    """Write the identity of a new run, or compare it with the one that is there.

    Raises:
        UserFault: the folder holds a run made with other settings (the message lists each difference), or
            its file is broken.
    """
    path = folder / FILE
    wanted = json.loads(json.dumps(identity))
    if not path.exists():
        write_whole(path, json.dumps(wanted, indent=2, ensure_ascii=False) + "\n")
        return
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise UserFault(
            "the run's identity cannot be read", where=str(path), fix="use another folder with --run"
        ) from error
    changes = list(differences(found, wanted))
    if changes:
        shown = "\n".join(f"  {line}" for line in changes[:_SHOWN])
        more = f"\n  ... and {len(changes) - _SHOWN} more" if len(changes) > _SHOWN else ""
        raise UserFault(
            f"this run was started with other settings (then -> now):\n{shown}{more}",
            where=str(path),
            fix="undo the change to go on, or start afresh in another folder with --run",
        )


def differences(old: Any, new: Any, prefix: str = "") -> Iterator[str]:
    """One line for each value that differs, named by its dotted path."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted(old.keys() | new.keys()):
            name = f"{prefix}.{key}" if prefix else str(key)
            if key not in old:
                yield f"{name}: (absent) -> {_brief(new[key])}"
            elif key not in new:
                yield f"{name}: {_brief(old[key])} -> (absent)"
            else:
                yield from differences(old[key], new[key], name)
    elif old != new:
        yield f"{prefix}: {_brief(old)} -> {_brief(new)}"


def folder_digest(folder: Path) -> str:
    """SHA-256 over names, sizes and contents of a checkpoint's files.

    Of a file above 64 MiB only the first and the last MiB are read: enough to tell two checkpoints apart,
    and a model of many gigabytes does not delay the start.
    """
    digest = hashlib.sha256()
    for path in sorted(item for item in folder.rglob("*") if item.is_file()):
        size = path.stat().st_size
        digest.update(f"{path.relative_to(folder).as_posix()}\0{size}\0".encode())
        with path.open("rb") as file:
            if size <= 64 * _EDGE:
                digest.update(file.read())
            else:
                digest.update(file.read(_EDGE))
                file.seek(-_EDGE, os.SEEK_END)
                digest.update(file.read(_EDGE))
    return digest.hexdigest()


def _brief(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else text[:77] + "..."
