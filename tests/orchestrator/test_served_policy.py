"""A policy behind an OpenAI-compatible server, against a small server on the loopback address."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from orchestrator.budget import Budget
from orchestrator.policies.chat_completion import read_completion
from orchestrator.policies.openai_server import OpenAIServerPolicy
from orchestrator.policy import InfrastructureError, PolicyTurn
from orchestrator.runner import run_episode
from orchestrator.task import Task
from orchestrator.trajectory import Trajectory
from registry.errors import UserFault

CALL = "<search>Chart-Reader@@Chart_Solver: how high?</search>"


class Server:
    """Sends its replies in order, the last one again and again. A reply is a choice, a status, bytes or a wait."""

    def __init__(self, *replies: dict[str, Any] | int | bytes | float) -> None:
        self.requests: list[dict[str, Any]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                outer.requests.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                reply = replies[min(len(outer.requests), len(replies)) - 1]
                if isinstance(reply, float):
                    time.sleep(reply)
                status = reply if isinstance(reply, int) else 200
                usage = {"prompt_tokens": 11, "completion_tokens": 5}
                body = reply if isinstance(reply, bytes) else json.dumps({"choices": [reply], "usage": usage}).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                try:
                    self.wfile.write(body)
                except OSError:
                    pass  # the client left

            def log_message(self, *_: object) -> None: ...

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}"
        threading.Thread(target=self.http.serve_forever, args=(0.01,), daemon=True).start()


@pytest.fixture
def serve() -> Iterator[Callable[..., Server]]:
    servers: list[Server] = []

    def _serve(*replies: dict[str, Any] | int | bytes | float) -> Server:
        servers.append(Server(*replies))
        return servers[-1]

    yield _serve
    for server in servers:
        server.http.shutdown()
        server.http.server_close()


def says(text: str | None, **extra: Any) -> dict[str, Any]:
    return {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop", **extra}


def run(task: Task, policy: OpenAIServerPolicy, pool: Any, **options: Any) -> Trajectory:
    async def main() -> Trajectory:
        made = await run_episode(task, policy, pool, budget=Budget(), **options)
        await policy.aclose()
        return made

    return asyncio.run(main())


def test_inline_the_last_message_is_continued(
    serve: Callable[..., Server], task_of: Callable[..., Task], pool_of: Any
) -> None:
    server = serve(says(CALL, stop_reason="</search>", token_ids=[4, 5, 6]), says("<answer> 42 </answer>"))
    made = run(task_of(), OpenAIServerPolicy(server.url, "tiny", temperature=0.5, system="Be brief."), pool_of())
    assert (made.answer, made.valid, made.policy) == ("42", True, "openai:tiny")
    assert made.usage["policy"] == {"prompt_tokens": 22, "completion_tokens": 10}
    assert made.turns[0]["token_ids"] == [4, 5, 6]
    first, second = server.requests
    assert [m["role"] for m in first["messages"]] == ["system", "user"]
    picture, question = first["messages"][1]["content"]
    assert picture["image_url"]["url"].startswith("data:image/png;base64,")
    assert question == {"type": "text", "text": "How many circles are there?"}
    assert first["stop"] == ["</search>", "</answer>"]
    assert (first["max_tokens"], first["temperature"], first["include_stop_str_in_output"]) == (512, 0.5, True)
    assert first["return_token_ids"] is True
    assert "continue_final_message" not in first
    assert second["messages"][2] == {
        "role": "assistant",
        "content": CALL + "\n<information> 42 </information>\n",
    }
    assert (second["continue_final_message"], second["add_generation_prompt"]) == (True, False)
    assert first["seed"] != second["seed"]


def test_in_chat_style_observations_are_user_messages(
    serve: Callable[..., Server], task_of: Callable[..., Task], pool_of: Any
) -> None:
    server = serve(says(CALL.removesuffix("</search>")), says("<answer> 42 "))
    policy = OpenAIServerPolicy(server.url + "/v1/", "tiny", style="chat", extensions=False)
    made = run(task_of(), policy, pool_of())
    assert made.answer == "42"
    assert made.turns[0]["text"] == CALL
    assert server.requests[1]["messages"][1:] == [
        {"role": "assistant", "content": CALL},
        {"role": "user", "content": "<information> 42 </information>"},
    ]
    assert not {"include_stop_str_in_output", "return_token_ids", "logprobs"} & server.requests[0].keys()


def test_answering_directly_opens_the_tag_or_asks_for_it(
    serve: Callable[..., Server], task_of: Callable[..., Task]
) -> None:
    server = serve(says(" 42 </answer>"), says("<answer>7</answer>"))
    inline = OpenAIServerPolicy(server.url, "tiny")
    chat = OpenAIServerPolicy(server.url, "tiny", style="chat")
    turns = asyncio.run(_both(inline, chat, task_of()))
    assert [turn.text for turn in turns] == ["<answer> 42 </answer>", "<answer>7</answer>"]
    assert server.requests[0]["messages"][-1] == {"role": "assistant", "content": "<answer>"}
    assert server.requests[1]["messages"][-1]["content"][-1]["text"].startswith("Answer directly")


async def _both(inline: OpenAIServerPolicy, chat: OpenAIServerPolicy, task: Task) -> list[PolicyTurn]:
    turns = [await policy.answer_directly(task, seed=1, max_tokens=9) for policy in (inline, chat)]
    await inline.aclose()
    await chat.aclose()
    return turns


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (500, "127.0.0.1: status 500"),
        (404, "127.0.0.1: status 404"),
        (b"<html>busy</html>", "the reply is no chat completion (JSONDecodeError): '<html>busy</html>'"),
        (b'{"choices": []}', "the reply is no chat completion (IndexError)"),
        (b"x" * (5 * 1024 * 1024), "the reply is larger than 4194304 bytes"),
        (3.0, "no reply within 1 s"),
    ],
)
def test_what_a_server_does_wrong_is_infrastructure_and_asked_once(
    serve: Callable[..., Server], task_of: Callable[..., Task], pool_of: Any, reply: Any, message: str
) -> None:
    server = serve(reply)
    made = run(task_of(), OpenAIServerPolicy(server.url, "tiny", timeout_s=1.0 if reply == 3.0 else 20), pool_of())
    assert (made.stop, made.valid) == ("infrastructure", False)
    assert made.error is not None and message in made.error
    assert len(server.requests) == 1


def test_a_server_that_is_not_there_is_infrastructure(task_of: Callable[..., Task], pool_of: Any) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    made = run(task_of(), OpenAIServerPolicy(url, "tiny"), pool_of())
    assert (made.stop, made.valid) == ("infrastructure", False)


@pytest.mark.parametrize(
    ("choice", "turn"),
    [
        (says("x", stop_reason=None), PolicyTurn("x", finish_reason="eos")),
        (says("x", stop_reason="</answer>"), PolicyTurn("x", finish_reason="</answer>")),
        (says("x"), PolicyTurn("x")),
        (says(None), PolicyTurn("")),
        (says("x", finish_reason="length", stop_reason=None), PolicyTurn("x", finish_reason="length")),
        (
            says("x", token_ids=[1, 2], logprobs={"content": [{"logprob": -1}, {"logprob": -2}]}),
            PolicyTurn("x", (1, 2), (-1.0, -2.0)),
        ),
        (says("x", token_ids=[1, 2], logprobs={"content": [{"logprob": -1}]}), PolicyTurn("x", (1, 2))),
        (
            {"message": {"content": "x", "reasoning_content": "hm"}, "finish_reason": "stop", "token_ids": [1]},
            PolicyTurn("<think>hm</think>x"),
        ),
    ],
)
def test_what_only_some_servers_send_is_taken_where_it_is_there(choice: dict[str, Any], turn: PolicyTurn) -> None:
    assert read_completion(json.dumps({"choices": [choice]}).encode(), 0.0, "here") == turn


@pytest.mark.parametrize("body", [b"", b"null", b"[]", b'{"choices": [{"message": 3}]}', b"[" * 100_000])
def test_a_body_that_is_no_completion_is_infrastructure(body: bytes) -> None:
    with pytest.raises(InfrastructureError, match="here: the reply is no chat completion"):
        read_completion(body, 0.0, "here")


def test_settings_that_cannot_work_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("POLICY_KEY", raising=False)
    with pytest.raises(UserFault, match="the environment variable POLICY_KEY is not set"):
        OpenAIServerPolicy("http://localhost:1", "tiny", api_key_env="POLICY_KEY")
    with pytest.raises(UserFault, match="needs a server with vLLM's extensions"):
        OpenAIServerPolicy("http://localhost:1", "tiny", extensions=False)
