"""Behaves like `vllm serve`, without a model: answers with the question's words. How it fails is chosen by options.

vllm_stand_in.py serve MODEL --port P --served-model-name NAME [other options of vLLM, passed over] [--do-... ]
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

WORDS = sys.argv[1:]


def option(name: str, default: str = "") -> str:
    return WORDS[WORDS.index(name) + 1] if name in WORDS else default


NAME = option("--do-name") or option("--served-model-name")
RECORD = option("--do-record")
STATE = {"running": 0}
LOCK = threading.Lock()


def record(**entry: Any) -> None:
    if RECORD:
        with LOCK, open(RECORD, "a", encoding="utf-8") as file:
            file.write(json.dumps({"time": time.time(), "pid": os.getpid(), **entry}) + "\n")


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path == "/health":
            if os.path.exists(option("--do-hang-while", "/nowhere")):
                time.sleep(60)
            self.reply(200, {})
        elif self.path == "/v1/models":
            self.reply(200, {"object": "list", "data": [{"id": NAME, "max_model_len": 8192}]})
        elif self.path == "/version" and "--do-version" in WORDS:
            self.reply(200, {"version": option("--do-version")})
        elif self.path == "/metrics":
            with LOCK:
                running = STATE["running"]
            label = f'{{engine="0",model_name="{NAME}"}}'
            text = f"# TYPE x gauge\nvllm:num_requests_running{label} {running}.0\n"
            self.reply(
                200,
                text + f"vllm:num_requests_waiting{label} 3.0\n"
                if "--do-queue" in WORDS
                else text + f"vllm:num_requests_waiting{label} 0.0\n",
            )
        else:
            self.reply(404, {})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        content = body["messages"][-1]["content"]
        words = " ".join(part["text"] for part in content if part["type"] == "text")
        images = sum(part["type"] == "image_url" for part in content)
        record(asked=words, images=images, key=self.headers.get("Authorization"))
        if images and "--do-refuse-pictures" in WORDS:
            self.reply(400, {"error": {"message": "this model takes\nno pictures \x1b[31m"}})
            return
        if body["model"] != NAME:
            self.reply(404, {"error": {"message": f"The model `{body['model']}` does not exist."}})
            return
        with LOCK:
            STATE["running"] += 1
        time.sleep(float(option("--do-answer-s", "0")))
        with LOCK:
            STATE["running"] -= 1
        message = {"role": "assistant", "content": f"you asked: {words}"}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        self.reply(200, {"choices": [choice], "usage": {"prompt_tokens": 5, "completion_tokens": 2}})
        record(answered=words)

    def reply(self, status: int, body: Any) -> None:
        encoded = (body if isinstance(body, str) else json.dumps(body)).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(encoded)))
        self.end_headers()
        self.wfile.write(encoded)

    def log_message(self, *_: object) -> None: ...


class Server(ThreadingHTTPServer):
    request_queue_size = 256
    daemon_threads = True


def main() -> None:
    record(started=WORDS, env={k: v for k, v in os.environ.items() if k.startswith(("VLLM", "CUDA", "OMP"))})
    if "--do-ignore-term" in WORDS:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    else:
        signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    if "--do-child" in WORDS:  # like vLLM's engine: a process of its own that does not end by itself
        program = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
        subprocess.Popen([sys.executable, "-S", "-c", program], start_new_session="--do-far-child" in WORDS)
    if "--do-die" in WORDS:
        print("loading\nValueError: the weights are broken", file=sys.stderr)
        sys.exit(3)
    time.sleep(float(option("--do-start-s", "0")))
    server = Server(("127.0.0.1", int(option("--port"))), Handler)
    record(listens=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
