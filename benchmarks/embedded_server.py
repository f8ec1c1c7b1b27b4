"""The embedded experts behind an OpenAI-compatible server, so that they can be killed like any served model.

    python benchmarks/embedded_server.py --port 8101

Every expert of the embedded registry answers under its own name as `model`. The first line on standard output is JSON,
{"port": ...}, once it listens on the loopback address. It ends when its standard input does.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from experts.images import ImageFault, load_picture
from registry.registry import Registry, default_registry_path
from registry.schema import PythonBackend

_LARGEST = 16 * 1024 * 1024


def programs(registry: Registry) -> dict[str, Any]:
    """The registry's embedded experts, made."""
    found = {}
    for expert in registry.experts:
        if isinstance(expert.backend, PythonBackend):
            module, _, name = expert.backend.target.partition(":")
            found[expert.name] = getattr(importlib.import_module(module), name)()
    return found


class Handler(BaseHTTPRequestHandler):
    """POST .../chat/completions; everything else is unknown."""

    protocol_version = "HTTP/1.1"
    experts: dict[str, Any]

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length", "0"))
        if not 0 < length <= _LARGEST:
            self.close_connection = True
            return self._send(413, {"error": {"message": "no body, or one that is too long"}})
        try:
            asked = json.loads(self.rfile.read(length))
            expert = self.experts[asked["model"]]
            parts = asked["messages"][-1]["content"]
            text = "".join(part["text"] for part in parts if part["type"] == "text")
            pictures = [load_picture(part["image_url"]["url"]) for part in parts if part["type"] == "image_url"]
        except (ValueError, KeyError, TypeError, ImageFault) as error:
            return self._send(400, {"error": {"message": f"{type(error).__name__}: {error}"}})
        message = {"role": "assistant", "content": expert.answer(text, pictures)}
        usage = {"prompt_tokens": len(text) // 4, "completion_tokens": 4, "total_tokens": len(text) // 4 + 4}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        self._send(200, {"id": "1", "object": "chat.completion", "model": asked["model"], "choices": [choice],
                         "usage": usage})  # fmt: skip

    def _send(self, status: int, content: dict[str, Any]) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Silent: its output is one line."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=0, help="0 = any free one")
    args = parser.parse_args()
    Handler.experts = programs(Registry.load(default_registry_path()))
    ThreadingHTTPServer.request_queue_size = 256
    server = ThreadingHTTPServer(("127.0.0.1", args.port), Handler)
    print(json.dumps({"port": server.server_address[1]}), flush=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    while sys.stdin.buffer.read(1):
        pass


if __name__ == "__main__":
    main()
