"""What becomes of delegations while servers fail in every way at once.

    python benchmarks/pool_faults.py                              # 10,000 calls
    python benchmarks/pool_faults.py --calls 300 --timeout-s 0.3  # in seconds

Three replicas: nobody listens at one, the other two (one local stub, its own process, see expert_stub.py) reset 5 % of
the connections, answer 5 % with 500, 2 % with broken JSON, and leave 2 % without an answer. Nine of ten calls have time
to be tried again; every tenth has a deadline that is shorter than one try may take. Counted are

- exceptions that escaped (none may), calls past their deadline and by how much (50 ms at most);
- calls that ended well where there was time for another try (99 % at least), each with the answer to its own question;
- calls whose trace does not account for them: the tries of the delegation, as the trajectory's observation tells them,
  against the outcome; and the requests in all traces against those that the stub has counted. A request that was given
  up, or whose connection was lost, may be missing there: it ended before the stub came to read it. None may be missing
  in the traces.

One JSON object on standard output; `held` says whether all of this held.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import socket
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from expert_stub import registry_for, running

from experts.outcome import Delegation, Outcome
from experts.pool import ExpertPool
from orchestrator.observation import from_delegation

FAULTS = {"reset": 0.05, "status_500": 0.05, "hang": 0.02, "garbage": 0.02}
SHORT_EVERY = 10  # of so many calls one has a short deadline
OVERRUN_MS = 50.0
UNANSWERED = (None, Outcome.TIMEOUT, Outcome.UNAVAILABLE)
SUCCESS = 0.99


@dataclass
class Findings:
    """What the calls came to."""

    outcomes: Counter[str] = field(default_factory=Counter)
    short_outcomes: Counter[str] = field(default_factory=Counter)
    attempts: Counter[int] = field(default_factory=Counter)
    escaped: list[str] = field(default_factory=list)
    overruns_ms: list[float] = field(default_factory=list)
    wrong_answers: int = 0
    unaccounted: list[str] = field(default_factory=list)
    requests: int = 0
    unanswered: Counter[str] = field(default_factory=Counter)  # of these, by server


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=10_000)
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--delay-ms", type=float, default=20.0)
    parser.add_argument("--timeout-s", type=float, default=1.0, help="for one try")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    print(json.dumps(measure(args.calls, args.concurrency, args.delay_ms, args.timeout_s, args.seed), indent=2))


def measure(calls: int, concurrency: int, delay_ms: float, timeout_s: float, seed: int) -> dict[str, Any]:
    """Carry out the calls and add up."""
    options = {"ports": 2, "delay_ms": delay_ms, "seed": seed, **FAULTS}
    with dead_url() as dead, running(**options) as stub:
        urls = (dead, *stub.urls)
        started = time.perf_counter()
        findings, status = asyncio.run(run(urls, calls, concurrency, timeout_s))
        seconds = time.perf_counter() - started
        served = stub.counts()
    long = findings.outcomes.total()
    ok = findings.outcomes["ok"] / max(1, long)
    late = max(findings.overruns_ms, default=0.0)
    sent = findings.requests - refused(status, dead)
    unseen = sent - sum(served.values())
    unanswered = findings.unanswered.total() - findings.unanswered[dead]
    return {
        "calls": calls,
        "seconds": round(seconds, 2),
        "exceptions_escaped": len(findings.escaped),
        "latest_past_deadline_ms": round(late, 2),
        "success_where_a_retry_is_allowed": round(ok, 5),
        "outcomes_where_a_retry_is_allowed": dict(findings.outcomes),
        "outcomes_with_a_short_deadline": dict(findings.short_outcomes),
        "attempts": dict(sorted(findings.attempts.items())),
        "wrong_answers": findings.wrong_answers,
        "calls_not_accounted_for": len(findings.unaccounted),
        "requests_in_traces": sent,
        "requests_at_the_servers": sum(served.values()),
        "requests_that_no_server_read": unseen,
        "requests_given_up_or_lost": unanswered,
        "fates_at_the_servers": served,
        "replicas": status["replicas"],
        "examples": (findings.escaped + findings.unaccounted)[:5],
        "held": not findings.escaped
        and late <= OVERRUN_MS
        and ok >= SUCCESS
        and findings.wrong_answers == 0
        and not findings.unaccounted
        and 0 <= unseen <= unanswered,
    }


async def run(urls: tuple[str, ...], calls: int, concurrency: int, timeout_s: float) -> tuple[Findings, dict[str, Any]]:
    """All calls, `concurrency` at once; what they came to, and the pool's own account."""
    findings = Findings()
    registry = registry_for(urls, max_concurrency=concurrency, timeout_s=timeout_s)
    async with ExpertPool(registry) as pool:
        await pool.prepare()
        numbers = iter(range(calls))

        async def worker() -> None:
            for number in numbers:
                short = number % SHORT_EVERY == SHORT_EVERY - 1
                deadline_s = timeout_s / 2 if short else 20 * timeout_s
                started = time.perf_counter()
                try:
                    done = await pool.delegate("Stub", "Counting", f"How many? #{number}#", (), deadline_s=deadline_s)
                except Exception as error:
                    findings.escaped.append(f"{type(error).__name__}: {error}")
                    continue
                findings.overruns_ms.append((time.perf_counter() - started - deadline_s) * 1000)
                (findings.short_outcomes if short else findings.outcomes)[done.outcome.value] += 1
                findings.attempts[done.attempts] += 1
                findings.requests += len(done.tries)
                findings.unanswered.update(one.server for one in done.tries if one.outcome in UNANSWERED)
                findings.wrong_answers += done.outcome is Outcome.OK and done.text != str(number)
                if fault := unaccounted(done):
                    findings.unaccounted.append(f"#{number}: {fault}")

        await asyncio.gather(*(worker() for _ in range(concurrency)))
        return findings, pool.status()["experts"]["Stub"]


def unaccounted(done: Delegation) -> str | None:
    """What the trace of a delegation, as a trajectory keeps it, fails to explain; None where nothing is missing."""
    trace = from_delegation(done, None, max_tokens=64).to_json()
    if trace["outcome"] != done.outcome.value or trace["attempts"] != len(done.tries):
        return f"{trace['attempts']} attempts, {len(done.tries)} tries, outcome {trace['outcome']}"
    failed = [one for one in done.tries if one.outcome is not Outcome.OK]
    if any(one.outcome is not None and not one.why for one in failed):
        return "a try failed without a reason"
    if any(one.server not in (trace["note"] or "") for one in failed):
        return "a try is missing in the note"
    if done.outcome is Outcome.OK:
        last = bool(done.tries) and done.tries[-1].outcome is Outcome.OK
        return None if last and len(failed) == len(done.tries) - 1 else "ended well without one good try"
    return None if trace["error"] else "no reason for a failure"


def refused(status: dict[str, Any], dead: str) -> int:
    """Requests for which nobody was there."""
    return next(server["requests"] for server in status["replicas"] if server["url"] == dead)


@contextmanager
def dead_url() -> Iterator[str]:
    """An address that refuses connections, and that nobody else takes meanwhile."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{bound.getsockname()[1]}/v1"


if __name__ == "__main__":
    main()
