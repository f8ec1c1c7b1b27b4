"""The table of a study: every arm of every member in one line.

The one idea: nothing is computed here; each number is one of the member's ``results.json``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from eval.results import HEADLINE
from eval.study import Study
from eval.whole_file import write_whole
from registry.errors import UserFault

JSON_FILE, MARKDOWN_FILE = "study.json", "study.md"


@dataclass(frozen=True)
class Line:
    """One arm on the test split; numbers as ``docs/evaluation.md`` defines them, ``None`` where there is none."""

    member: str
    arm: str
    accuracy: float | None
    ci95: tuple[float, float] | None
    greedy: float | None
    n: int
    errors: int
    calls: float | None
    tokens: float | None
    """Mean per trajectory of the whole system."""
    pass_at_k: dict[str, float | None]
    sc_at_k: dict[str, float | None]
    pass_at_k_ci95: dict[str, tuple[float, float] | None] = field(default_factory=dict)
    sc_at_k_ci95: dict[str, tuple[float, float] | None] = field(default_factory=dict)
    lenient: float | None = None
    """Accuracy by the lenient rule; ``None`` where there is none."""
    lenient_differ: int = 0
    """Trajectories that the two rules score otherwise."""


def lines_of(member: str, results: Mapping[str, Any]) -> list[Line]:
    """The arms of a member's results, the headline first."""
    named = {name: results[name] for name in HEADLINE if results.get(name)}
    return [_line(member, arm, entry) for arm, entry in {**named, **results["baselines"]}.items()]


def columns(lines: Iterable[Line], *, intervals: bool = False) -> tuple[list[str], list[list[str]]]:
    """Titles and cells of the printed table; pass@k and sc@k for each k above 1 that some line has, the lenient rule's
    accuracy where the two rules differ on some line. intervals: those of pass@k and sc@k too, in their cells."""
    found = list(lines)
    ks = sorted({int(k) for line in found for k in line.pass_at_k if int(k) > 1})
    differ = any(line.lenient_differ for line in found)
    titles = ["member", "arm", "accuracy", "95 %", *(["lenient"] if differ else [])]
    titles += ["greedy", "n", "errors", "calls", "tokens"]
    titles += [f"{name}@{k}" for name in ("pass", "sc") for k in ks]
    cells = []
    for line in found:
        low_high = "" if line.ci95 is None else f"{line.ci95[0]:.3f}-{line.ci95[1]:.3f}"
        row = [line.member, line.arm, _number(line.accuracy, 3), low_high]
        row += [_number(line.lenient, 3)] if differ else []
        row += [_number(line.greedy, 3), str(line.n), str(line.errors), _number(line.calls, 2), _number(line.tokens, 0)]
        for values, known in ((line.pass_at_k, line.pass_at_k_ci95), (line.sc_at_k, line.sc_at_k_ci95)):
            row += [_with_interval(values.get(str(k)), known.get(str(k)) if intervals else None) for k in ks]
        cells.append(row)
    return titles, cells


def write_summary(study: Study, lines: Sequence[Line], left_out: Mapping[str, str], failed: Mapping[str, str]) -> Path:
    """Write ``study.json`` and ``study.md`` into the study's folder; returns the latter. Members that did not run now
    keep the lines that an earlier start wrote."""
    kept = _earlier(study, {line.member for line in lines})
    every = [*kept, *lines]
    record = {
        "title": study.title,
        "lines": [asdict(line) for line in every],
        "runs": {line.member: str(study.folder / line.member) for line in every},
        "left_out": dict(left_out),
        "failed": dict(failed),
    }
    titles, cells = columns(every, intervals=True)
    table = [f"# {study.title}", "", _row(titles), _row(["---"] * 2 + ["---:"] * (len(titles) - 2)), *map(_row, cells)]
    notes = [f"- left out: {name}: {why}" for name, why in left_out.items()]
    notes += [f"- failed: {name}: {why.splitlines()[0]}" for name, why in failed.items()]
    _write(study.folder / JSON_FILE, json.dumps(record, indent=1, ensure_ascii=False) + "\n")
    _write(study.folder / MARKDOWN_FILE, "\n".join([*table, *([""] if notes else []), *notes]) + "\n")
    return study.folder / MARKDOWN_FILE


def _earlier(study: Study, now: set[str]) -> list[Line]:
    try:
        record = json.loads((study.folder / JSON_FILE).read_text(encoding="utf-8"))
        lines = [Line(**line) for line in record["lines"]]
    except (OSError, ValueError, KeyError, TypeError):
        return []
    return [line for line in lines if line.member not in now and (study.folder / line.member).is_dir()]


def _line(member: str, arm: str, entry: Mapping[str, Any]) -> Line:
    tokens = entry.get("tokens") or {}
    interval, lenient = entry.get("ci95"), entry.get("lenient") or {}
    return Line(
        member=member,
        arm=arm,
        accuracy=entry["accuracy"],
        ci95=None if interval is None else (interval[0], interval[1]),
        greedy=entry.get("greedy"),
        n=entry["n"],
        errors=entry["errors"],
        calls=entry.get("calls"),
        tokens=tokens.get("mean"),
        pass_at_k={str(k): value for k, value in (entry.get("pass_at_k") or {}).items()},
        sc_at_k={str(k): value for k, value in (entry.get("sc_at_k") or {}).items()},
        pass_at_k_ci95={str(k): value for k, value in (entry.get("pass_at_k_ci95") or {}).items()},
        sc_at_k_ci95={str(k): value for k, value in (entry.get("sc_at_k_ci95") or {}).items()},
        lenient=lenient.get("accuracy"),
        lenient_differ=lenient.get("differ") or 0,
    )


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _with_interval(value: float | None, ci95: tuple[float, float] | None) -> str:
    return _number(value, 3) + ("" if value is None or ci95 is None else f" ({ci95[0]:.2f}-{ci95[1]:.2f})")


def _number(value: float | None, places: int) -> str:
    return "" if value is None else f"{value:.{places}f}"


def _write(path: Path, text: str) -> None:
    try:
        write_whole(path, text)
    except OSError as error:
        raise UserFault(f"cannot write: {error.strerror or error}", where=str(path)) from error
