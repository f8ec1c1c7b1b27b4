"""Which replica gets a request, when one rests, and how long is waited before the next try."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from server_doubles import Clock, Server, ask, backend, dead_url, failure, says, sends, servers

from experts.clients.replicas import Replicas
from experts.clients.retry import RetryPolicy
from experts.outcome import Outcome, Try
from registry.schema import Replica


@pytest.fixture
def server() -> Iterator[Server]:
    with servers() as (one,):
        yield one


def once(replicas: Replicas, alive: bool | None, outcome: Outcome | None = None) -> str | None:
    with replicas.lease() as lease:
        if lease is None:
            return None
        lease.alive, lease.outcome = alive, outcome
        return lease.url


def test_only_one_call_probes_a_resting_replica():
    clock = Clock()
    replicas = Replicas((Replica(url="http://a/v1"),), clock=clock)
    for _ in range(3):
        once(replicas, False)
    clock.now = 5.0
    with replicas.lease() as probe:
        assert probe is not None
        with replicas.lease() as second:
            assert second is None
    with replicas.lease() as again:  # the probe learnt nothing (cancelled): the next call may
        assert again is not None


def test_requests_go_to_the_least_loaded_replica_for_its_weight():
    replicas = Replicas((Replica(url="http://a/v1", weight=2), Replica(url="http://b/v1", weight=1)))
    taken: list[str] = []

    def take(depth: int) -> None:
        with replicas.lease() as lease:
            assert lease is not None
            taken.append(lease.url)
            if depth:
                take(depth - 1)

    take(5)
    assert (taken.count("http://a/v1"), taken.count("http://b/v1")) == (4, 2)


def test_single_requests_go_to_equal_replicas_in_turn():
    replicas = Replicas([Replica(url=f"http://{name}/v1") for name in "abc"])
    assert [once(replicas, True) for _ in range(6)] == ["http://a/v1", "http://b/v1", "http://c/v1"] * 2


def test_unrelated_faults_that_come_in_a_row_do_not_take_a_good_server_away():
    replicas = Replicas((Replica(url="http://a/v1"),))
    for alive in [True] * 20 + [False] * 9:
        assert once(replicas, alive) is not None
    once(replicas, False)  # now half of the last twenty have failed, and the last ten in a row
    assert once(replicas, True) is None


def test_results_of_requests_sent_before_the_rest_do_not_make_it_longer():
    clock = Clock()
    replicas = Replicas((Replica(url="http://a/v1"),), clock=clock)
    with replicas.lease() as slow:
        assert slow is not None
        for _ in range(3):
            once(replicas, False)
        clock.now = 4.9
        slow.alive = False
    clock.now = 5.0
    assert once(replicas, True) == "http://a/v1"


def test_a_dead_replica_rests_and_comes_back_after_a_good_probe(server: Server):
    clock = Clock()
    replicas = Replicas((Replica(url=server.url),), clock=clock)
    asked = backend(server.url, replicas=replicas)
    server.script = [sends(503, b"down")]
    assert failure(asked).attempts == 3
    assert len(server.requests) == 3

    at_once = failure(asked)  # all replicas rest: no request, no waiting
    assert (at_once.outcome, at_once.attempts, len(server.requests)) == (Outcome.UNAVAILABLE, 0, 3)

    clock.now = 6.0  # the probe fails, so it rests twice as long
    assert failure(asked).attempts == 1
    clock.now = 12.0
    assert failure(asked).attempts == 0

    clock.now = 17.0
    server.script = [says("back")]
    assert ask(asked).text == "back"
    assert ask(asked).attempts == 1


def test_one_of_two_replicas_refuses_then_both_then_one_recovers(server: Server):
    clock, dead = Clock(), dead_url()
    replicas = Replicas((Replica(url=dead), Replica(url=server.url)), clock=clock)
    asked = backend(dead, server.url, replicas=replicas)
    states = lambda: [one["state"] for one in replicas.status()]  # noqa: E731

    attempts = [ask(asked).attempts for _ in range(6)]
    assert sorted(attempts) == [1, 1, 1, 2, 2, 2]  # three found the dead one, and went on to the other
    assert states() == ["open", "closed"]
    assert [ask(asked).attempts for _ in range(4)] == [1, 1, 1, 1]

    server.script = [sends(503, b"down")]
    while states() == ["open", "closed"]:
        assert failure(asked).outcome is Outcome.UNAVAILABLE
    asked_before = len(server.requests)
    at_once = failure(asked)
    assert (at_once.outcome, at_once.attempts, len(server.requests)) == (Outcome.UNAVAILABLE, 0, asked_before)
    assert states() == ["open", "open"]

    clock.now = 5.0
    server.script = [says("back")]
    assert states() == ["half-open", "half-open"]
    assert (ask(asked).text, states()) == ("back", ["open", "closed"])


def test_every_try_is_told_with_its_server_its_end_and_why(server: Server):
    dead, tries = dead_url(), list[Try]()
    server.script = [sends(500, b"boom"), says("42")]
    policy = RetryPolicy(tries=4, first_s=0.01)
    assert ask(backend(dead, server.url, retry=policy), tries=tries).attempts == 4
    assert [(one.server, one.outcome) for one in tries] == [
        (dead, Outcome.UNAVAILABLE),
        (server.url, Outcome.ERROR),
        (dead, Outcome.UNAVAILABLE),
        (server.url, Outcome.OK),
    ]
    assert "Connect" in tries[0].why
    assert tries[1].why == f"{server.url}/chat/completions answered 500: boom"
    assert str(tries[1]).startswith(f"{server.url} error after 0.")


def test_a_servers_wish_to_wait_is_kept_within_bounds():
    policy = RetryPolicy(first_s=0.2, longest_s=1.0)
    assert 0.1 <= policy.pause(1) <= 0.2
    assert 0.5 <= policy.pause(9) <= 1.0
    assert policy.pause(1, retry_after_s=0.7) == 0.7
    assert policy.pause(1, retry_after_s=3600) == 1.0
