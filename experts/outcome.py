"""What came back from an expert, as values.

The one idea: a call that fails is data. Every way in which a call can end has a name in `Outcome`; whether
the name stands for a fault of the machinery (never counted against the policy) is answered here and nowhere
else. `ExpertFailure` is how a client says so inside this room; it never leaves it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class Outcome(StrEnum):
    """How one delegation, or one call to an expert, ended."""

    OK = "ok"
    TIMEOUT = "timeout"  # the expert took longer than its own limit for one call
    UNAVAILABLE = "unavailable"  # nobody there: connection refused, all replicas resting, overloaded, no access
    EMPTY_REPLY = "empty_reply"  # an answer without text
    TOO_LONG = "too_long"  # the request does not fit the expert, or the reply is over its byte limit
    REFUSED = "refused"  # the server calls this request wrong (4xx)
    ERROR = "error"  # the expert, a tool or a template broke
    INVALID_ACTION = "invalid_action"  # the policy named something that the registry does not hold
    DEADLINE = "deadline"  # the time for the whole delegation was used up

    @property
    def infrastructure(self) -> bool:
        """True where the machinery failed: such a call says nothing about the policy."""
        return self in _INFRASTRUCTURE


_INFRASTRUCTURE = frozenset({Outcome.TIMEOUT, Outcome.UNAVAILABLE, Outcome.ERROR, Outcome.DEADLINE})


@dataclass(frozen=True)
class Usage:
    """Tokens, money (in the currency of the registry's prices) and number of calls; adds up with `+`."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float = 0.0
    calls: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.cost + other.cost,
            self.calls + other.calls,
        )


@dataclass(frozen=True)
class Try:
    """One request to one server. outcome: None where it was given up before it ended (the caller's time was
    up, or another server answered first). hedge: sent beside a request that was taking long."""

    server: str
    outcome: Outcome | None
    seconds: float
    why: str = ""
    hedge: bool = False

    def __str__(self) -> str:
        ending = "given up" if self.outcome is None else self.outcome.value
        kind = " (hedge)" if self.hedge else ""
        return f"{self.server}{kind} {ending} after {self.seconds:.2f} s" + (f": {self.why}" if self.why else "")


@dataclass(frozen=True)
class ExpertReply:
    """One reply of one expert. `text` may be empty; `reasoning` is what the expert thought aloud beside
    it."""

    text: str
    reasoning: str = ""
    finish_reason: str = "stop"
    usage: Usage = field(default_factory=Usage)
    attempts: int = 1


class ExpertFailure(Exception):
    """A call that gave no reply. Raised by backends, turned into a `Delegation` by the pool. shown: a sentence for the
    policy in place of the usual one for this outcome."""

    def __init__(
        self, outcome: Outcome, message: str, *, attempts: int = 1, usage: Usage | None = None, shown: str | None = None
    ) -> None:
        super().__init__(message)
        self.outcome = outcome
        self.message = message
        self.attempts = attempts
        self.usage = usage or Usage()
        self.shown = shown


@dataclass(frozen=True)
class Delegation:
    """What came back from one delegation `expert@@skill: question`.

    text: what the policy may be shown: the expert's answer, or one plain sentence saying what went wrong.
    subskill, reason: the Level-2 procedure that was run and why that one (None when it never came so far).
    latency_s: wall seconds for everything, routing included. attempts: tries at the expert, retries counted.
    cached: the answer was known or being computed already (usage is then zero).
    tries: the requests to servers in the order in which they ended, the good ones too (an embedded program
    has none). error: the full story for the log where the outcome is not OK. note: what was done differently
    than asked, for example pictures left out because the expert takes fewer, and tries that gave no answer.
    """

    outcome: Outcome
    text: str
    expert: str
    skill: str
    subskill: str | None = None
    reason: str | None = None
    latency_s: float = 0.0
    usage: Usage = field(default_factory=Usage)
    attempts: int = 0
    cached: bool = False
    error: str | None = None
    note: str | None = None
    tries: tuple[Try, ...] = ()
