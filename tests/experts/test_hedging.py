"""A second request to another replica when the first takes long."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler

import pytest
from server_doubles import Server, ask, backend, failure, says, sends, servers

from experts.clients.replicas import Replicas
from experts.outcome import Outcome, Try
from registry.schema import Limits, Replica

HEDGED = Limits(hedge_after_s=0.1)


@pytest.fixture
def pair() -> Iterator[tuple[Server, Server]]:
    with servers(2) as (first, second):
        yield first, second


def test_a_slow_server_is_overtaken_by_another_and_let_go(pair: tuple[Server, Server]):
    gone = threading.Event()

    def watch(handler: BaseHTTPRequestHandler) -> None:
        if handler.connection.recv(1) == b"":
            gone.set()

    first, second = pair
    first.script, second.script = [watch], [says("from the second")]
    tries: list[Try] = []
    reply = ask(backend(first.url, second.url, limits=HEDGED), tries=tries)
    assert (reply.text, reply.attempts) == ("from the second", 2)
    assert gone.wait(5)
    assert [(one.server, one.outcome, one.hedge) for one in tries] == [
        (second.url, Outcome.OK, True),
        (first.url, None, False),
    ]


def test_a_quick_answer_needs_no_second_request(pair: tuple[Server, Server]):
    first, second = pair
    asked = backend(first.url, second.url, limits=Limits(hedge_after_s=20.0))
    assert ask(asked).attempts == 1
    assert (len(first.requests), len(second.requests)) == (1, 0)


def test_no_second_request_without_the_option(pair: tuple[Server, Server]):
    first, second = pair
    first.script = [lambda handler: time.sleep(0.3) or says("slow")(handler)]
    assert (ask(backend(first.url, second.url)).text, len(second.requests)) == ("slow", 0)


def test_a_failed_second_request_leaves_the_first_its_time(pair: tuple[Server, Server]):
    first, second = pair
    first.script = [lambda handler: time.sleep(0.5) or says("slow but good")(handler)]
    second.script = [sends(200, b"garbage")]
    reply = ask(backend(first.url, second.url, limits=HEDGED))
    assert (reply.text, reply.attempts, len(second.requests)) == ("slow but good", 2, 1)


def test_when_both_fail_the_retry_policy_goes_on(pair: tuple[Server, Server]):
    first, second = pair
    first.script = [lambda handler: time.sleep(0.3) or sends(503, b"down")(handler), says("third time")]
    second.script = [sends(503, b"down"), says("third time")]
    reply = ask(backend(first.url, second.url, limits=HEDGED))
    assert (reply.text, reply.attempts) == ("third time", 3)


def test_with_one_replica_nothing_is_hedged(pair: tuple[Server, Server]):
    first, _ = pair
    first.script = [lambda handler: time.sleep(0.3) or says("alone")(handler)]
    assert ask(backend(first.url, limits=HEDGED)).attempts == 1


def test_resting_servers_get_no_second_request(pair: tuple[Server, Server]):
    first, second = pair
    replicas = Replicas((Replica(url=first.url), Replica(url=second.url)))
    for _ in range(3):
        with replicas.lease(avoid=[first.url]) as lease:
            assert lease is not None
            lease.alive = False
    first.script = [lambda handler: time.sleep(0.3) or says("alone")(handler)]
    asked = backend(first.url, second.url, limits=HEDGED, replicas=replicas)
    assert (ask(asked).attempts, len(second.requests)) == (1, 0)


def test_a_refused_request_is_not_sent_again_by_the_way_of_hedging(pair: tuple[Server, Server]):
    first, second = pair
    for one in pair:
        one.script = [lambda handler: time.sleep(0.3) or sends(400, b"no such picture")(handler)]
    failed = failure(backend(first.url, second.url, limits=HEDGED))
    assert (failed.outcome, failed.attempts) == (Outcome.REFUSED, 2)


def test_a_delay_that_no_call_would_reach_is_refused():
    with pytest.raises(ValueError, match="no second request would ever be sent"):
        Limits(hedge_after_s=60.0, timeout_s=60.0)


def test_registries_without_hedging_keep_their_content():
    assert "hedge_after_s" not in Limits().model_dump(mode="json")
    assert Limits(hedge_after_s=2).model_dump(mode="json")["hedge_after_s"] == 2
