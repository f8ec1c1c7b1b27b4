"""What a pool has to say of its experts and tools when it is closed.

The one idea: an expert that fails now and then costs a few observations and nobody looks; one that fails often spoils
a run, and whoever reads its figures has to be told, once and in words.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from experts.outcome import Outcome

_MANY = 0.05  # of the calls without an answer, for a warning
_FEW_CALLS = 20  # below so many calls nothing is worth one
_UNANSWERED = {outcome.value for outcome in Outcome if outcome.infrastructure} | {"given_up"}


def report_lines(status: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> list[tuple[int, str]]:
    """A `logging` level and a line for each expert and tool of `ExpertPool.status` that was called:
    `logging.WARNING` where more than one call in twenty failed for reasons of the machinery, or its time was up."""
    parts = [("expert", *part) for part in status["experts"].items()]
    parts += [("tool", *part) for part in status["tools"].items()]
    return [(_level(one), f"{kind} {name}: {_line(one)}") for kind, name, one in parts if one["calls"]]


def _level(one: Mapping[str, Any]) -> int:
    lost = sum(count for outcome, count in one["outcomes"].items() if outcome in _UNANSWERED)
    many = one["calls"] >= _FEW_CALLS and lost > _MANY * one["calls"]
    return logging.WARNING if many else logging.INFO


def _line(one: Mapping[str, Any]) -> str:
    outcomes = sorted(one["outcomes"].items(), key=lambda pair: (-pair[1], pair[0]))
    parts = [f"{one['calls']} calls: " + ", ".join(f"{count} {outcome}" for outcome, count in outcomes)]
    latency = one["latency_s"]
    if latency["p50"] is not None:
        parts.append(f"an answer after {latency['p50']:.2f} s (p50), {latency['p95']:.2f} s (p95)")
    for server in one["replicas"]:
        if server["failures"] or server["state"] != "closed":
            failures = ", ".join(f"{count} {outcome}" for outcome, count in sorted(server["failures"].items()))
            resting = ", resting" if server["state"] == "open" else ""
            parts.append(f"{server['url']} failed {failures or 'never'} of {server['requests']}{resting}")
    return "; ".join(parts)
