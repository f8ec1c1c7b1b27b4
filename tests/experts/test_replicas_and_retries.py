"""Which replica gets a request, and how long is waited before the next try."""

from __future__ import annotations

from experts.clients.replicas import Replicas
from experts.clients.retry import RetryPolicy
from registry.schema import Replica


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_only_one_call_probes_a_resting_replica():
    clock = Clock()
    replicas = Replicas((Replica(url="http://a/v1"),), clock=clock)
    for _ in range(3):
        with replicas.lease() as lease:
            assert lease is not None
            lease.alive = False
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


def test_a_servers_wish_to_wait_is_kept_within_bounds():
    policy = RetryPolicy(first_s=0.2, longest_s=1.0)
    assert 0.1 <= policy.pause(1) <= 0.2
    assert 0.5 <= policy.pause(9) <= 1.0
    assert policy.pause(1, retry_after_s=0.7) == 0.7
    assert policy.pause(1, retry_after_s=3600) == 1.0
