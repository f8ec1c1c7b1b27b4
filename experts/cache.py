"""Calls that need not be made twice.

The one idea: a deterministic call is named by the hash of all it depends on, and identical calls share one
result: those going on join the one that started first, later ones read what it left. The memory is in front
of an optional folder, which several processes may share. The folder is a convenience: when it is broken or
the disk is full, one warning is given and calls go on without it.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import sqlite3
import threading
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import diskcache
from diskcache.core import MODE_PICKLE

_LOG = logging.getLogger("maestro.experts")
_MEMORY_BYTES = 64 * 1024 * 1024
_FOLDER_BYTES = 4 * 1024 * 1024 * 1024
_FORMAT = 1  # raise when what is kept changes its meaning


def content_key(kind: str, *content: Any) -> str:
    """Hex digest over JSON-able content."""
    text = json.dumps([_FORMAT, kind, *content], sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


class _TextDisk(diskcache.Disk):
    """Reads texts only: a folder that others can write must not be a way to run code here."""

    def fetch(self, mode: int, filename: str | None, value: Any, read: bool) -> Any:
        return None if mode == MODE_PICKLE else super().fetch(mode, filename, value, read)


class CallCache:
    """Texts by key, in memory and, when `folder` is given, on disk. Never raises for the folder's faults."""

    def __init__(self, folder: Path | None = None, *, memory_bytes: int = _MEMORY_BYTES) -> None:
        self._folder = folder
        self._memory_bytes = memory_bytes
        self._memory: OrderedDict[str, str] = OrderedDict()
        self._used = 0
        self._lock = threading.Lock()
        self._disk: Any = None
        self._flights: dict[str, Future[str | None]] = {}

    def get(self, key: str) -> str | None:
        """The kept text, or None."""
        with self._lock:
            found = self._memory.get(key)
            if found is not None:
                self._memory.move_to_end(key)
                return found
        found = self._on_disk(lambda disk: disk.get(key))
        if not isinstance(found, str):
            return None
        self._remember(key, found)
        return found

    def put(self, key: str, text: str) -> None:
        """Keep a text."""
        self._remember(key, text)
        self._on_disk(lambda disk: disk.set(key, text))

    async def once(
        self, key: str, compute: Callable[[], Awaitable[str]], keep: Callable[[str], bool]
    ) -> tuple[str, bool]:
        """(text, whether it was there already or came from a call that was going on).

        A text for which `keep` is false is given to those who wait for it now, and forgotten. When the
        computing caller is cancelled or raises, one of those who wait computes in its place.
        """
        while True:
            found = self.get(key)
            if found is not None:
                return found, True
            with self._lock:
                flight = self._flights.get(key)
                mine = flight is None
                if flight is None:
                    flight = self._flights[key] = Future()
                    flight.set_running_or_notify_cancel()  # so that nobody who waits can cancel it for all
            if mine:
                return await self._fly(key, flight, compute, keep), False
            shared = await asyncio.wrap_future(flight)
            if shared is not None:
                return shared, True

    def close(self) -> None:
        """Close the folder."""
        with self._lock:
            disk, self._disk = self._disk, None
        if disk is not None:
            disk.close()

    async def _fly(
        self,
        key: str,
        flight: Future[str | None],
        compute: Callable[[], Awaitable[str]],
        keep: Callable[[str], bool],
    ) -> str:
        text: str | None = None
        try:
            text = await compute()
            if keep(text):
                self.put(key, text)
            return text
        finally:
            with self._lock:
                del self._flights[key]
            flight.set_result(text)

    def _remember(self, key: str, text: str) -> None:
        with self._lock:
            old = self._memory.pop(key, None)
            self._used += len(text) - len(old or "")
            self._memory[key] = text
            while self._used > self._memory_bytes:
                _, dropped = self._memory.popitem(last=False)
                self._used -= len(dropped)

    def _on_disk(self, act: Callable[[Any], Any]) -> Any:
        if self._folder is None:
            return None
        try:
            with self._lock:
                if self._disk is None:
                    # Short waits: beside a busy writer a miss costs less than a stalled event loop.
                    self._disk = diskcache.Cache(
                        str(self._folder), timeout=1, disk=_TextDisk, size_limit=_FOLDER_BYTES
                    )
            return act(self._disk)
        except diskcache.Timeout:
            return None
        except (OSError, sqlite3.Error, ValueError, EOFError) as error:
            folder, self._folder = self._folder, None
            if folder is not None:
                _LOG.warning("going on without the call cache in %s: %s", folder, error)
            return None
