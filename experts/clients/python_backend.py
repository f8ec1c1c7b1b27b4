"""An embedded program as a backend: made on first use, called in a worker thread, its faults as values."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

from experts.clients.load import Group, make_program
from experts.outcome import ExpertFailure, ExpertReply, Outcome, Usage
from experts.request import Request
from experts.workers import NoWorker, Workers
from registry.errors import UserFault
from registry.schema import PythonBackend


class Program:
    """An embedded expert or tool that is made when first called, so that importing what it needs costs
    nothing until then. Safe to call from several threads; a failed start is remembered."""

    def __init__(self, backend: PythonBackend, group: Group, workers: Workers) -> None:
        self._backend = backend
        self._group: Group = group
        self._workers = workers
        self._lock = threading.Lock()
        self._made: Any = None
        self._fault: UserFault | None = None

    def make(self) -> Any:
        """The program itself. Raises UserFault when it cannot be made."""
        with self._lock:
            if self._fault is not None:
                raise self._fault
            if self._made is None:
                try:
                    self._made = make_program(self._backend, self._group)
                except UserFault as fault:
                    self._fault = fault
                    raise
            return self._made

    async def call(self, use: Callable[[Any], Any], timeout_s: float) -> Any:
        """`use(program)` in a worker thread. Raises ExpertFailure."""

        def carry_out() -> Any:
            try:
                return use(self.make())
            except ExpertFailure:
                raise
            except UserFault as fault:
                raise ExpertFailure(Outcome.ERROR, str(fault)) from fault
            except Exception as error:  # foreign code
                raise ExpertFailure(Outcome.ERROR, f"{type(error).__name__}: {error}") from error

        try:
            return await self._workers.run(carry_out, timeout_s)
        except TimeoutError:
            raise ExpertFailure(
                Outcome.TIMEOUT, f"{self._backend.target} took longer than {timeout_s:g} s"
            ) from None
        except NoWorker as error:
            raise ExpertFailure(Outcome.UNAVAILABLE, f"{self._backend.target}: {error}") from None


class PythonExpertBackend:
    """Wraps a class with `answer(prompt, pictures) -> str`."""

    def __init__(self, backend: PythonBackend, workers: Workers) -> None:
        self._program = Program(backend, "maestro.experts", workers)

    async def prepare(self) -> None:
        """Make the program now. Raises UserFault."""
        await asyncio.to_thread(self._program.make)

    async def ask(self, request: Request) -> ExpertReply:
        """The program's answer; None counts as nothing to say. Raises ExpertFailure."""
        text = await self._program.call(
            lambda program: program.answer(request.prompt, request.pictures), request.timeout_s
        )
        if text is not None and not isinstance(text, str):
            raise ExpertFailure(Outcome.ERROR, f"answer() gave {type(text).__name__}, not text")
        return ExpertReply(text or "", usage=Usage(calls=1))

    async def aclose(self) -> None:
        """Nothing to free: the workers belong to the pool."""
