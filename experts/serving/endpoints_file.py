"""`EndpointsFile`: where the servers are, written for the pool and locked by the one launcher that writes it.

The one idea: the file holds what answers now. Experts and tools whose servers are down are not in it, and a reader
never sees half a file. Its form is that of `experts.endpoints`.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from experts.endpoints import VERSION
from experts.serving.model import ServedModel
from registry.errors import UserFault

DEFAULT_PATH = Path("runs/serving/endpoints.json")


class EndpointsFile:
    """The file at `path`; hold it with `with` while servers run. Raises UserFault when another launcher does."""

    def __init__(self, path: Path) -> None:
        self.path = path.expanduser().absolute()
        self._lock: int | None = None

    @property
    def mark(self) -> str:
        """What all processes of the launch carry."""
        return str(self.path)

    def __enter__(self) -> EndpointsFile:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        lock = os.open(self.path.with_name(self.path.name + ".lock"), os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            owner = os.read(lock, 32).decode("ascii", "replace").strip()
            os.close(lock)
            raise UserFault(
                f"another launcher (process {owner or 'unknown'}) serves into {self.path}",
                fix="stop it with Ctrl-C, or give another file with --endpoints",
            ) from None
        os.ftruncate(lock, 0)
        os.pwrite(lock, str(os.getpid()).encode(), 0)
        self._lock = lock
        return self

    def __exit__(self, *_: object) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def write(self, models: Iterable[ServedModel], urls: Mapping[str, Iterable[str]]) -> None:
        """Put the file in place at once; `urls` holds the ready addresses (with /v1) of each model's id."""
        experts, tools = {}, {}
        for model in models:
            replicas = [{"url": url, "weight": 1.0} for url in urls.get(model.id, ())]
            if replicas:
                entry = {"model": model.id, "replicas": replicas}
                experts |= dict.fromkeys(model.experts, entry)
                tools |= dict.fromkeys(model.tools, entry)
        content = {"version": VERSION, "written": time.time(), "experts": experts, "tools": tools}
        part = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        try:
            with part.open("w", encoding="utf-8") as file:
                file.write(json.dumps(content, ensure_ascii=False, indent=1) + "\n")
                file.flush()
                os.fsync(file.fileno())
            part.replace(self.path)
        finally:
            with contextlib.suppress(OSError):
                part.unlink()
