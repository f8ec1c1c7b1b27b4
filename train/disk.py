"""Whether a job died because the disk was full: its log says so in one of several ways."""

from __future__ import annotations

import shutil
from pathlib import Path

_SAID = (b"No space left on device", b"Disk quota exceeded")
_TORCH = b"PytorchStreamWriter failed writing file"  # torch.save names no cause
_LITTLE_BYTES = 256 * 2**20
_TAIL_BYTES = 512 * 2**10


def ran_full(log: Path, run: Path) -> bool:
    """log: the job's output; its end is read. run: the folder that it wrote to.

    A checkpoint that torch could not write counts only where less than 256 MiB are free.
    """
    try:
        with log.open("rb") as file:
            file.seek(0, 2)
            file.seek(max(0, file.tell() - _TAIL_BYTES))
            tail = file.read()
    except OSError:
        return False
    if any(text in tail for text in _SAID):
        return True
    return _TORCH in tail and shutil.disk_usage(run).free < _LITTLE_BYTES
