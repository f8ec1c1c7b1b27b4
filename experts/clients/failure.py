"""One try that gave no answer, and what follows from it.

The one idea: whether to try again, and what the fault says about the server, is decided where the fault is
seen and travels with it.
"""

from __future__ import annotations

import re

from experts.clients.retry import retried
from experts.outcome import Outcome

# A wrong key, model name or address says nothing about the question; a redirect is never followed.
_NO_ACCESS = frozenset({301, 302, 303, 307, 308, 401, 403, 404})
_OVERLONG = re.compile(r"context.{0,20}(length|window)|too (long|large|many tokens)|max_model_len", re.I)


class Failed(Exception):
    """alive: what the try says about the server, None for nothing. again: another try makes sense.
    retry_after_s: seconds that the server wishes to be left alone."""

    def __init__(
        self,
        outcome: Outcome,
        message: str,
        *,
        again: bool,
        alive: bool | None,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(message)
        self.outcome, self.message = outcome, message
        self.again, self.alive, self.retry_after_s = again, alive, retry_after_s


def from_status(url: str, status: int, body: str, retry_after_s: float | None = None) -> Failed:
    """The failure that an HTTP status outside 200 to 299 stands for; `body` is the head of the response."""
    message = f"{url} answered {status}: {' '.join(body.split())[:300]}"
    if status == 413 or (status in (400, 422) and _OVERLONG.search(body)):
        return Failed(Outcome.TOO_LONG, message, again=False, alive=True)
    if status == 408:
        return Failed(Outcome.TIMEOUT, message, again=True, alive=None)
    if status == 429 or status in _NO_ACCESS:
        # Busy or locked, not dead: the replica stays in rotation.
        return Failed(Outcome.UNAVAILABLE, message, again=status == 429, alive=None, retry_after_s=retry_after_s)
    if retried(status):
        outcome = Outcome.ERROR if status == 500 else Outcome.UNAVAILABLE
        return Failed(outcome, message, again=True, alive=False, retry_after_s=retry_after_s)
    return Failed(Outcome.REFUSED, message, again=False, alive=True)
