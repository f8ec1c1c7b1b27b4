"""Retrieval dispatch: expert and skill found apart, by words, by n-grams, by a served model's vectors."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from orchestrator.budget import Budget
from orchestrator.policies.embedding_client import EmbeddingClient
from orchestrator.policies.rank_bm25 import BM25
from orchestrator.policies.rank_vectors import NgramVectors
from orchestrator.policies.retrieval import RetrievalDispatch
from orchestrator.runner import run_episode
from orchestrator.task import Task
from orchestrator.trajectory import Trajectory
from registry.errors import UserFault
from registry.registry import Registry

READER, SPOTTER = "Chart-Reader", "Shape-Spotter"
CHART, COUNT = "Chart_Solver", "Counting_Solver"
TEXTS = ["reads bar charts", "counts filled shapes", "follows lines"]


def run(task: Task, policy: Any, pool: Any) -> Trajectory:
    async def main() -> Trajectory:
        try:
            return await run_episode(task, policy, pool, budget=Budget())
        finally:
            await policy.aclose()

    return asyncio.run(main())


@pytest.mark.parametrize("method", ["bm25", "embedding"])
def test_expert_and_skill_are_found_apart_and_the_reply_is_the_answer(
    method: Any, registry: Registry, task_of: Callable[..., Task], pool_of: Any
) -> None:
    # The words of the expert ("bar charts") and those of the skill ("numbers of things") point at no common pair.
    question = "On the bar charts with labels, which numbers of things?"
    pool = pool_of(lambda e, s, q: "three")
    made = run(task_of(question), RetrievalDispatch(registry, method), pool)
    assert pool.calls == [(READER, COUNT, question)]
    assert (made.answer, made.stop, made.policy) == ("three", "answered", f"retrieval:{method}")


@pytest.mark.parametrize("make", [BM25, NgramVectors])
@pytest.mark.parametrize(
    ("question", "place"),
    [
        ("How many shapes?", 1),
        ("Follow the line.", 2),  # "line" finds "lines"
        ("Which chart?", 0),
        ("xyzzy quux", 0),
        ("", 0),
        ('") OR * NEAR( AND "', 0),
    ],
)
def test_the_text_that_shares_most_is_best_and_the_first_where_nothing_is_shared(
    make: Any, question: str, place: int
) -> None:
    assert asyncio.run(make(TEXTS).best(question)).place == place


def test_rare_words_count_more_than_frequent_ones() -> None:
    texts = ["picture of a chart", "picture of a map", "picture of a ring"]
    for make in (BM25, NgramVectors):
        assert asyncio.run(make(texts).best("picture of the map")).place == 1


class Vectors:
    """A server with /v1/embeddings: axis 0 for texts that hold "chart", axis 1 for others. Counts its requests."""

    def __init__(self, broken: Any = None) -> None:
        self.asked: list[list[str]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                texts = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["input"]
                outer.asked.append(texts)
                data = [
                    {"index": i, "embedding": [1.0, 0.1] if "chart" in text.lower() else [0.1, 1.0]}
                    for i, text in reversed(list(enumerate(texts)))
                ]
                document = {"data": data, "usage": {"prompt_tokens": len(texts)}} if broken is None else broken
                status = document if isinstance(document, int) else 200
                body = json.dumps(document).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None: ...

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}"
        threading.Thread(target=self.http.serve_forever, args=(0.01,), daemon=True).start()


@pytest.fixture
def serve() -> Iterator[Callable[..., Vectors]]:
    servers: list[Vectors] = []

    def _serve(broken: Any = None) -> Vectors:
        servers.append(Vectors(broken))
        return servers[-1]

    yield _serve
    for server in servers:
        server.http.shutdown()
        server.http.server_close()


def test_a_served_models_vectors_choose_and_its_tokens_are_counted(
    serve: Callable[..., Vectors], registry: Registry, task_of: Callable[..., Task], pool_of: Any
) -> None:
    server, pool = serve(), pool_of(lambda e, s, q: "7")
    policy = RetrievalDispatch(registry, "embedding", EmbeddingClient(server.url, "vectors"))
    made = run(task_of("What about this one?"), policy, pool)
    assert pool.calls == [(SPOTTER, COUNT, "What about this one?")]
    assert [len(texts) for texts in server.asked] == [2, 1, 2]  # experts, the question once, skills
    assert made.turns[0]["prompt_tokens"] == 5


@pytest.mark.parametrize(
    ("broken", "why"),
    [
        (503, "status 503"),
        ({"data": []}, "0 vectors"),
        ({"data": [{"index": 0, "embedding": [1.0]}]}, "1 vectors"),
        ({"data": "no"}, "holds no vectors"),
        ([], "holds no vectors"),
    ],
)
def test_a_server_without_vectors_makes_the_episode_invalid_not_wrong(
    broken: Any,
    why: str,
    serve: Callable[..., Vectors],
    registry: Registry,
    task_of: Callable[..., Task],
    pool_of: Any,
) -> None:
    policy = RetrievalDispatch(registry, "embedding", EmbeddingClient(serve(broken).url, "vectors"))
    made = run(task_of("How many?"), policy, pool_of())
    assert (made.valid, made.stop) == (False, "infrastructure")
    assert why in str(made.error)


def test_a_missing_key_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VECTORS_KEY", raising=False)
    with pytest.raises(UserFault, match="VECTORS_KEY is not set"):
        EmbeddingClient("http://127.0.0.1:1", "m", api_key_env="VECTORS_KEY")
