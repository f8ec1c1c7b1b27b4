"""Two arms compared benchmark by benchmark, over any number of run folders, and over all benchmarks together.

The one idea: a run folder is one benchmark, so what a researcher claims over benchmarks ("ours against the
baseline on ten of them") is read from ten folders: a paired comparison in each, and one signed-rank test over their
differences. Arms may come from the same runs, or the baseline from others (an ablation with its own config).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from eval.config import TEST
from eval.facts import Facts
from eval.journal import Journal
from eval.redraw import recall
from eval.statistics.groups import macro_average
from eval.statistics.paired import Comparison, compare, holm
from eval.statistics.wilcoxon import SignedRank, signed_rank
from registry.errors import UserFault
from registry.names import nearest


@dataclass(frozen=True)
class Across:
    """``arm`` against ``against`` on every benchmark."""

    arm: str
    against: str
    split: str
    benchmarks: Mapping[str, Comparison]
    p_holm: Mapping[str, float]
    """The comparisons' ``p``, corrected for the number of benchmarks."""
    macro: float
    """Mean over benchmarks of the arm's accuracy on the shared questions, each benchmark counting the same, as the
    paper's tables average."""
    macro_against: float
    signed_rank: SignedRank
    """Over the benchmarks' differences."""
    lenient: Across | None = None
    """The same by the lenient rules, where they score an answer otherwise."""

    def to_json(self) -> dict[str, Any]:
        lenient = {} if self.lenient is None else {"lenient": self.lenient.to_json()}
        return lenient | {
            "arm": self.arm,
            "against": self.against,
            "split": self.split,
            "benchmarks": {
                name: {**found.to_json(), "p_holm": self.p_holm[name]} for name, found in self.benchmarks.items()
            },
            "macro": self.macro,
            "macro_against": self.macro_against,
            "signed_rank": self.signed_rank.to_json(),
        }


@dataclass(frozen=True)
class _Run:
    folder: Path
    benchmark: str
    arms: Mapping[str, Sequence[Facts]]


def compare_runs(
    folders: Sequence[Path],
    arm: str,
    against: str,
    *,
    baselines: Sequence[Path] = (),
    split: str = TEST,
    seed: int = 0,
) -> Across:
    """Compare two arms on the benchmarks of ``folders``.

    Args:
        arm, against: keys of the journal, such as "after" or "after/greedy".
        baselines: folders that hold ``against``, matched by benchmark; the same folders if left out.

    Raises:
        UserFault: no folder, two of one benchmark, an unknown arm (the nearest are told), a benchmark without a
            baseline, or one on which the arms share no question.
    """
    runs = _by_benchmark(folders, split)
    others = _by_benchmark(baselines, split) if baselines else runs
    if not runs:
        raise UserFault("no run is given", fix="give the folders that `maestro evaluate` wrote")
    pairs: dict[str, tuple[Sequence[Facts], Sequence[Facts]]] = {}
    for name, run in sorted(runs.items()):
        other = others.get(name)
        if other is None:
            raise UserFault(f"no baseline for the benchmark {name!r}", where=str(run.folder), fix="give its run too")
        pairs[name] = (_arm(other, against), _arm(run, arm))
    official = {name: compare(before, after, seed=seed) for name, (before, after) in pairs.items()}
    for name, compared in official.items():
        if compared is None:
            raise UserFault(
                f"{arm!r} and {against!r} share no question of {name!r}",
                where=f"{runs[name].folder}, {others[name].folder}",
            )
    differ = {name for name, both in pairs.items() if any(one.lenient != one.value for facts in both for one in facts)}
    by_lenient = {
        name: compare(_by_lenient(before), _by_lenient(after), seed=seed) if name in differ else official[name]
        for name, (before, after) in pairs.items()
    }
    lenient = _across(arm, against, split, by_lenient) if differ else None
    return replace(_across(arm, against, split, official), lenient=lenient)


def _by_lenient(facts: Sequence[Facts]) -> list[Facts]:
    return [replace(fact, value=fact.lenient) for fact in facts]


def _across(arm: str, against: str, split: str, compared: Mapping[str, Comparison | None]) -> Across:
    found = {name: one for name, one in compared.items() if one is not None}
    return Across(
        arm=arm,
        against=against,
        split=split,
        benchmarks=found,
        p_holm=holm({name: compared.p for name, compared in found.items()}),
        macro=macro_average(compared.accuracy for compared in found.values()) or 0.0,
        macro_against=macro_average(compared.baseline for compared in found.values()) or 0.0,
        signed_rank=signed_rank([compared.difference for compared in found.values()]),
    )


def _by_benchmark(folders: Sequence[Path], split: str) -> dict[str, _Run]:
    found: dict[str, _Run] = {}
    for folder in folders:
        config = recall(folder).config
        definition = config.definition_if_any()
        name = config.benchmark if definition is None else definition.name
        if name in found:
            raise UserFault(
                f"two runs of the benchmark {name!r}",
                where=f"{found[name].folder}, {folder}",
                fix="give one for each benchmark; to compare two runs of the same one, give the baseline's folder as "
                "--baseline-run",
            )
        arms: dict[str, list[Facts]] = defaultdict(list)
        with Journal(folder / "journal.jsonl", read_only=True) as journal:
            for fact in journal.facts.values():
                if fact.split == split:
                    arms[fact.arm].append(fact)
        found[name] = _Run(folder, name, arms)
    return found


def _arm(run: _Run, name: str) -> Sequence[Facts]:
    if name not in run.arms:
        near = nearest(name, run.arms, 3)
        fix = f"did you mean {' or '.join(map(repr, near))}?" if near else f"there are {', '.join(sorted(run.arms))}"
        raise UserFault(f"the run holds no arm {name!r}", where=str(run.folder), fix=fix)
    return run.arms[name]
