"""What runs inside verl's trainer at a checkpoint: the record beside it, and a save as soon as the launcher asks.

One idea: verl asks this object after every save and gives it its live config, so both need no change of verl. Named by
`trainer.checkpoint_callback_class`; imports nothing of verl.
"""

from __future__ import annotations

import json
import os
import threading
import time
from pathlib import Path
from typing import Any

from train.versions import versions

RECORD = "maestro.json"
SAVE_NOW = "save_now"
"""In the folder of the checkpoints: while it is there, every step is saved."""
_POLL_SECONDS = 0.5


class CheckpointHook:
    """verl's `CheckpointCallback`, by its two methods."""

    def __init__(self, config: Any = None) -> None:
        self.config = config
        folder = Path(config.trainer.default_local_dir)
        threading.Thread(target=self._watch, args=(folder / SAVE_NOW,), daemon=True, name="save-now").start()

    def _watch(self, asked: Path) -> None:
        while not asked.exists():
            time.sleep(_POLL_SECONDS)
        self.config.trainer.save_freq = 1  # verl reads it at the end of every step

    def on_save(self, trainer: Any, global_step: int, checkpoint_dir: str, async_save: bool = False, **_: Any) -> None:
        """Write the record last of all: who finds it finds the whole checkpoint."""
        if not async_save:
            write_record(Path(checkpoint_dir), global_step)


def write_record(checkpoint: Path, step: int) -> None:
    """`maestro.json`: step, versions, and the config of the run that the checkpoint lies in. Raises OSError."""
    run = checkpoint.parent.parent
    try:
        config = json.loads((run / "config.json").read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        config = None
    partial = checkpoint / f"{RECORD}.partial"
    partial.write_text(json.dumps({"step": step, "versions": versions(), "config": config}, indent=1), encoding="utf-8")
    os.replace(partial, checkpoint / RECORD)
