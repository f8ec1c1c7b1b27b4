"""A headless Chromium driven over its DevTools protocol, for tests of the report."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
START_S, REPLY_S = 240.0, 120.0  # starved machines start a browser slowly


def find_chromium() -> str:
    """Path of the program; skips the test where there is none."""
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip(f"no headless browser on this machine (looked for {', '.join(NAMES)})")
    pytest.importorskip("websockets", reason="the browser is driven over a websocket")
    return found


class Chromium:
    """One page. ``errors`` are what its console and its scripts complained of, ``requests`` the addresses it asked
    for."""

    def __init__(self, program: str) -> None:
        self._home = tempfile.TemporaryDirectory(prefix="report-browser-", ignore_cleanup_errors=True)
        flags = [
            "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-extensions",
            "--disable-background-networking", "--no-first-run", "--mute-audio", "--window-size=1280,900",
            "--remote-debugging-port=0", f"--user-data-dir={self._home.name}", "about:blank",
        ]  # fmt: skip
        quiet = subprocess.DEVNULL
        self._process = subprocess.Popen([program, *flags], stdin=quiet, stdout=quiet, stderr=quiet)
        self.errors: list[str] = []
        self.requests: list[str] = []
        self._next = 0
        self._open = ExitStack()
        try:
            self._socket = self._connect()
            for domain in ("Page", "Runtime", "Log", "Network"):
                self.call(f"{domain}.enable")
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Chromium:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def open(self, path: Path) -> None:
        """Load a file and wait for it to be complete."""
        self.errors.clear()
        self.requests.clear()
        self.call("Page.navigate", url=path.resolve().as_uri())
        self.wait("document.readyState === 'complete' && location.protocol === 'file:'")

    def run(self, script: str) -> Any:
        """The value of a JavaScript expression; raises AssertionError where it throws."""
        found = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def wait(self, script: str) -> None:
        """Until a JavaScript expression holds."""
        deadline = time.monotonic() + REPLY_S
        while not self.run(script):
            assert time.monotonic() < deadline, f"never held: {script}"
            time.sleep(0.05)

    def press(self, key: str, text: str = "") -> None:
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, **({"text": text} if text else {}))

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        self._next += 1
        self._socket.send(json.dumps({"id": self._next, "method": method, "params": params}))
        deadline = time.monotonic() + REPLY_S
        while True:
            message = json.loads(self._socket.recv(timeout=max(0.01, deadline - time.monotonic())))
            if message.get("id") == self._next:
                assert "error" not in message, message
                return message["result"]
            self._note(message)

    def close(self) -> None:
        self._open.close()
        self._process.terminate()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._home.cleanup()

    def _note(self, message: dict[str, Any]) -> None:
        params = message.get("params") or {}
        if message.get("method") == "Runtime.exceptionThrown":
            self.errors.append(str(params["exceptionDetails"]))
        if message.get("method") == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.errors.append(params["entry"]["text"])
        if message.get("method") == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])

    def _connect(self) -> Any:
        from urllib.request import urlopen

        from websockets.sync.client import connect

        ready = Path(self._home.name) / "DevToolsActivePort"
        deadline = time.monotonic() + START_S
        while not (ready.exists() and ready.read_text().count("\n")):
            assert self._process.poll() is None, "the browser ended at once"
            assert time.monotonic() < deadline, "the browser did not start"
            time.sleep(0.1)
        port = int(ready.read_text().split()[0])
        with urlopen(f"http://127.0.0.1:{port}/json", timeout=REPLY_S) as reply:
            page = next(one for one in json.load(reply) if one["type"] == "page")
        address = page["webSocketDebuggerUrl"]
        return self._open.enter_context(connect(address, max_size=1 << 28, open_timeout=REPLY_S))
