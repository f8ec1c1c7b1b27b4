"""One row, one answer, one verdict: the only place where evaluation calls the scorers.

The one idea: the rule follows from the row. A row of a benchmark with a YAML file is scored by that file's official
rule, with the lenient one beside it; a row under the bare name of a rule by that rule alone.
"""

from __future__ import annotations

from functools import lru_cache

from eval.benchmarks.catalogue import load_all
from eval.benchmarks.scoring import Verdict, verdict
from eval.benchmarks.spec import Benchmark
from orchestrator.task import Task
from registry.errors import UserFault
from registry.names import normalise
from rewards import Score, score


class Judge:
    """Scores by ``benchmark`` where the row is one of its, by the shipped benchmark or rule of the row's name else."""

    def __init__(self, benchmark: Benchmark | None = None) -> None:
        self._benchmark = benchmark
        names = () if benchmark is None else (benchmark.name, *benchmark.aliases)
        self._names = {normalise(name) for name in names}

    def benchmark_of(self, name: str) -> Benchmark | None:
        """The benchmark behind a row's name; ``None`` for the bare name of a rule."""
        return self._benchmark if normalise(name) in self._names else _shipped().get(normalise(name))

    def runs_programs(self, task: Task) -> bool:
        """Whether a verdict starts a program, which takes seconds."""
        benchmark = self.benchmark_of(task.benchmark)
        return benchmark is not None and benchmark.answer.kind == "program"

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

    def __call__(self, task: Task, answer: str | None) -> Score:
        """The official score; raises as ``verdict`` does."""
        return self.verdict(task, answer).official


judge = Judge()
"""For rows of shipped benchmarks and of rules."""


@lru_cache(maxsize=1)
def _shipped() -> dict[str, Benchmark]:
    return {normalise(name): one for one in load_all() for name in (one.name, *one.aliases)}
