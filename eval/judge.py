"""One row, one answer, one verdict: the only place where evaluation calls the scorers.

The one idea: the rule follows from the row. A row of a benchmark with a YAML file is scored by that file's official
rule, with the lenient one beside it; a row under the bare name of a rule by that rule alone. A judge model, if there
is one, is asked only where the benchmark's own procedure does so and its rule reads nothing in the answer.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from eval.benchmarks.catalogue import load_all
from eval.benchmarks.program import require_sandbox
from eval.benchmarks.scoring import Verdict, verdict
from eval.benchmarks.spec import Benchmark
from orchestrator.task import Task
from registry.errors import UserFault
from registry.names import normalise
from rewards import Score, score
from rewards.read_answer import answer_in
from rewards.scorers.official_choice import refuses
from rewards.scorers.text import too_long

if TYPE_CHECKING:
    from eval.model_judge import JudgeNote, ModelJudge


@dataclass(frozen=True)
class Graded:
    """``verdict``: ``None`` where a judge model was needed and gave none. ``note``: what that model said; ``None``: it
    was not asked."""

    verdict: Verdict | None
    note: JudgeNote | None = None


class Judge:
    """Scores by ``benchmark`` where the row is one of its, by the shipped benchmark or rule of the row's name else.
    ``model``: asked where the rule cannot decide."""

    def __init__(self, benchmark: Benchmark | None = None, model: ModelJudge | None = None) -> None:
        self._benchmark = benchmark
        self._model = model
        self._is_ready = False
        names = () if benchmark is None else (benchmark.name, *benchmark.aliases)
        self._names = {normalise(name) for name in names}

    @property
    def asks_a_model(self) -> bool:
        return self._model is not None

    def benchmark_of(self, name: str) -> Benchmark | None:
        """The benchmark behind a row's name; ``None`` for the bare name of a rule."""
        return self._benchmark if normalise(name) in self._names else _shipped().get(normalise(name))

    def runs_programs(self, task: Task) -> bool:
        """Whether a verdict starts a program, which takes seconds."""
        benchmark = self.benchmark_of(task.benchmark)
        return benchmark is not None and benchmark.answer.kind == "program"

    async def ready(self) -> None:
        """Raises UserFault where no answer of the benchmark can be scored here: to be called before the first one is
        asked for."""
        if self._is_ready or self._benchmark is None or self._benchmark.answer.kind != "program":
            return
        await asyncio.to_thread(require_sandbox, self._benchmark.title)
        self._is_ready = True

    def verdict(self, task: Task, answer: str | None) -> Verdict:
        """Score an answer (``None``: there was none).

        Raises UserFault for a row without a right answer or with one that does not fit the rule, for an unknown rule,
        and where a program cannot be run."""
        if task.ground_truth is None:
            raise UserFault("no right answer to score against", where=f"row {task.row_id}")
        benchmark = self.benchmark_of(task.benchmark)
        try:
            if benchmark is not None:
                return verdict(benchmark, task.ground_truth, answer, choices=task.choices, group=task.group)
            found = score(task.benchmark, task.ground_truth, answer, choices=task.choices, group=task.group)
        except ValueError as fault:
            raise UserFault(f"it cannot be scored: {fault}", where=f"row {task.row_id}") from None
        return Verdict(found, found)

    async def grade(self, task: Task, answer: str | None) -> Graded:
        """The verdict, a judge model's where the rule alone cannot decide. Raises as ``verdict`` does."""
        if self.runs_programs(task):
            return Graded(await asyncio.to_thread(self.verdict, task, answer))
        found = self.verdict(task, answer)
        benchmark = self.benchmark_of(task.benchmark)
        said = None if answer is None else undecided(found.official, answer)
        if self._model is None or benchmark is None or not benchmark.scorer.judge or said is None:
            return Graded(found)
        note = await self._model.ask(task, said)
        if note["said"] == "ungraded":
            return Graded(None, note)
        return Graded(_judged(found, task, note), note)

    def __call__(self, task: Task, answer: str | None) -> Score:
        """The official score; raises as ``verdict`` does."""
        return self.verdict(task, answer).official


def undecided(found: Score, answer: str) -> str | None:
    """The answer's text where the rule read nothing in it; ``None`` where it did, or where there is nothing to ask
    about: no text, a refusal, more text than any rule reads."""
    if found.value > 0 or found.answer is not None or too_long(answer):
        return None
    text = answer_in(answer) if "<" in answer else answer
    return None if text is None or not text.strip() or refuses(text) else text.strip()


def _judged(found: Verdict, task: Task, note: JudgeNote) -> Verdict:
    """Right ones vote with the right answer, wrong ones do not vote."""
    gold = task.ground_truth if isinstance(task.ground_truth, str) else (task.ground_truth or ("",))[0]
    if note["said"] == "right":
        official = Score(1.0, gold, f"the rule reads nothing; the judge {note['model']} takes it as right")
        return Verdict(official, official)
    official = Score(0.0, None, f"the rule reads nothing; the judge {note['model']} does not take it as right")
    return Verdict(official, found.lenient if found.lenient.value > 0 else official)


judge = Judge()
"""For rows of shipped benchmarks and of rules."""


@lru_cache(maxsize=1)
def _shipped() -> dict[str, Benchmark]:
    return {normalise(name): one for one in load_all() for name in (one.name, *one.aliases)}
