"""Carrying out a Level-2 procedure: tool and ask steps in order, then a bounded repair loop, then the answer.

The one idea: a procedure is data and this is its only interpreter. It knows nothing about servers, threads,
caches or time: `Calls` does the asking, whoever calls sets the deadline. Either a text comes out or an
`ExpertFailure`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from experts.images import Picture
from experts.outcome import ExpertFailure, ExpertReply, Outcome
from experts.templates import Saved, TemplateFault, holds, render
from experts.tools.result import ToolResult
from registry.schema import Step, Subskill

GIVEN_PICTURE = "image"


class Calls(Protocol):
    """How steps reach the chosen expert and the tools. Both raise ExpertFailure."""

    async def ask(self, prompt: str, system: str | None, pictures: Sequence[Picture]) -> ExpertReply: ...

    async def use(self, tool: str, picture: Picture | None, args: dict[str, str]) -> ToolResult: ...

    def missed(self, failure: ExpertFailure) -> None:
        """Told of an optional tool that failed; the procedure goes on without it."""
        ...


async def run_procedure(
    skill: str, subskill: Subskill, question: str, pictures: Sequence[Picture], calls: Calls
) -> str:
    """The answer's text, maybe empty. Raises ExpertFailure; its message names skill, subskill and step."""
    run = _Run(skill, subskill, question, tuple(pictures), calls)
    procedure = subskill.procedure
    await run.steps(procedure.steps, "step")
    if procedure.repair is not None:
        for number in range(1, procedure.repair.rounds + 1):
            if not run.condition(procedure.repair.when, "repair"):
                break
            await run.steps(procedure.repair.steps, f"repair round {number}, step")
    if procedure.answer is not None:
        return run.text(procedure.answer, "answer").strip()
    return run.last_text.strip()


class _Run:
    """The values and pictures of one procedure on its way."""

    def __init__(
        self,
        skill: str,
        subskill: Subskill,
        question: str,
        pictures: tuple[Picture, ...],
        calls: Calls,
    ) -> None:
        self._place = f"skill {skill!r}, subskill {subskill.name!r}"
        self._calls = calls
        self._pictures: dict[str, tuple[Picture, ...]] = {GIVEN_PICTURE: pictures}
        self._pictures |= {f"{GIVEN_PICTURE}_{number}": (view,) for number, view in enumerate(pictures, 1)}
        self.last_text = ""
        procedure = subskill.procedure
        every = procedure.steps + (procedure.repair.steps if procedure.repair else ())
        self._values: dict[str, Any] = {step.save: Saved() for step in every if step.save}
        self._values |= {"question": question, "skill": skill, "subskill": subskill.name, "views": len(pictures)}

    async def steps(self, steps: Sequence[Step], label: str) -> None:
        for number, step in enumerate(steps, 1):
            place = f"{label} {number}"
            if step.when is not None and not self.condition(step.when, place):
                continue
            await (self._use(step, place) if step.tool else self._ask(step, place))

    def condition(self, condition: str, place: str) -> bool:
        try:
            return holds(condition, self._values)
        except TemplateFault as fault:
            raise self._fault(place, "condition", fault) from fault

    def text(self, template: str, place: str) -> str:
        try:
            return render(template, self._values)
        except TemplateFault as fault:
            raise self._fault(place, "template", fault) from fault

    @contextmanager
    def _named(self, place: str) -> Iterator[None]:
        try:
            yield
        except ExpertFailure as failure:
            failure.message = f"{self._place}, {place}: {failure.message}"
            raise

    def _fault(self, place: str, kind: str, fault: TemplateFault) -> ExpertFailure:
        return ExpertFailure(Outcome.ERROR, f"{self._place}, {place}: the {kind} fails: {fault}")

    async def _ask(self, step: Step, place: str) -> None:
        prompt = self.text(step.ask or "", place)
        system = None if step.system is None else self.text(step.system, place)
        with self._named(place):
            reply = await self._calls.ask(prompt, system, self._seen(step))
        self.last_text = reply.text
        if step.save:
            self._values[step.save] = Saved(reply.text)

    async def _use(self, step: Step, place: str) -> None:
        assert step.tool is not None
        args = {name: self.text(template, place) for name, template in step.args.items()}
        seen = self._seen(step)
        try:
            with self._named(place):
                result = await self._calls.use(step.tool, seen[0] if seen else None, args)
        except ExpertFailure as failure:
            if not step.optional:
                raise
            self._calls.missed(failure)
            result = ToolResult("")
        if step.save:
            self._values[step.save] = Saved(result.text, result.data, result.json)
            self._pictures[step.save] = result.pictures[:1]

    def _seen(self, step: Step) -> tuple[Picture, ...]:
        """The step's pictures; a tool that was passed over or gave back what is there already adds none."""
        seen: list[Picture] = []
        for name in (GIVEN_PICTURE,) if step.images is None else step.images:
            known = set() if name == GIVEN_PICTURE else {picture.sha256 for picture in seen}
            seen += [picture for picture in self._pictures.get(name, ()) if picture.sha256 not in known]
        return tuple(seen)
