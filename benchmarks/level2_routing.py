"""Level-2 routing by keywords alone, on real questions of public benchmarks kept outside the project.

    python benchmarks/level2_routing.py FOLDER [--json routing.json]

FOLDER holds `vlmsareblind`, `ocrbench` and `chartqa`, each with a `samples.jsonl` (fields id, question and, by
benchmark, task or type), as they lie in the developers' data folder. No expert is asked and no default counts: a row is
right when its keywords lead to the subskill that its type calls for. The table of types below is the benchmarks' own
taxonomy (paper, C.2 and D.2).

ChartQA's rows do not say what kind of chart they show. They are measured as what they are to the OCR skill (a question
about a chart), and under the chart skill only for how many name the kind of chart; for the others the expert, which
sees the picture, is asked. Exit code 2 where the folder or a row cannot be used.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from registry.errors import UserFault
from registry.registry import Registry
from registry.routing import route_keyword

ROOT = Path(__file__).resolve().parent.parent
REGISTRY = (ROOT / "configs/registry/paper.yaml", ROOT / "configs/registry/extended.yaml")
MOST_BYTES = 64 * 1024 * 1024
NO_HIT = "(no keyword)"

DIAGRAM, OCR, CHART = "Diagram Reasoning Skill", "OCR Problem Solver", "Chart Problem Solver"

VLMS_ARE_BLIND = {
    "touching circles": "Circle Contact and Overlap Judge",
    "line plot intersections": "Intersection and Route Counting",
    "subway connections": "Intersection and Route Counting",
    "counting grid": "Grid Structure Parsing",
    "circled letter": "Highlighted Character Recognition",
    "nested squares": "Geometric Shape Counting",
    "olympic counting": "Geometric Shape Counting",
}
OCR_BENCH = {
    "regular text recognition": "Text Recognition",
    "irregular text recognition": "Text Recognition",
    "artistic text recognition": "Text Recognition",
    "handwriting recognition": "Text Recognition",
    "digit string recognition": "Text Recognition",
    "non-semantic text recognition": "Text Recognition",
    "scene text-centric vqa": "Scene Text QA",
    "doc-oriented vqa": "Document and Chart QA",
    "key information extraction": "Key Information Extraction",
    "handwritten mathematical expression recognition": "Formula Recognition",
}


@dataclass(frozen=True)
class Row:
    """A question with its type and the subskill that fits (None: the row does not say)."""

    question: str
    type: str
    fitting: str | None


def vlmsareblind(row: dict[str, Any]) -> Row:
    """A row of VLMsAreBlind; the part of a task's name after ` - ` names a variant."""
    task = str(row["task"]).split(" - ")[0].strip().lower()
    return Row(_question(row), task, _fitting(VLMS_ARE_BLIND, task))


def ocrbench(row: dict[str, Any]) -> Row:
    """A row of OCRBench."""
    kind = str(row.get("type") or row["question_type"]).strip().lower()
    return Row(_question(row), kind, _fitting(OCR_BENCH, kind))


def chartqa(row: dict[str, Any]) -> Row:
    """A row of ChartQA as a question for the OCR skill."""
    return Row(_question(row), _chartqa_kind(row), "Document and Chart QA")


def chart_kind(row: dict[str, Any]) -> Row:
    """A row of ChartQA as a question for the chart skill; which chart it is, the row does not say."""
    return Row(_question(row), _chartqa_kind(row), None)


MEASURES: tuple[tuple[str, str, str, Callable[[dict[str, Any]], Row]], ...] = (
    ("VLMsAreBlind tasks", "vlmsareblind", DIAGRAM, vlmsareblind),
    ("OCRBench types", "ocrbench", OCR, ocrbench),
    ("ChartQA kinds, OCR skill", "chartqa", OCR, chartqa),
    ("ChartQA kinds, chart skill", "chartqa", CHART, chart_kind),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--json", type=Path, help="write the figures to this file as well")
    args = parser.parse_args()
    try:
        results = measure(args.folder)
        if args.json is not None:
            _write(args.json, results)
    except UserFault as fault:
        print(fault, file=sys.stderr)
        raise SystemExit(2) from None
    _show(results)


def measure(folder: Path) -> list[dict[str, Any]]:
    """One entry a benchmark: rows, share routed right, and per type where its rows went. Raises UserFault."""
    if not folder.is_dir():
        raise UserFault("no such folder", where=str(folder), fix="give the folder that holds the benchmarks' rows")
    registry = Registry.load(*REGISTRY)
    results = []
    for title, name, skill_name, read in MEASURES:
        skill = registry.skill(skill_name)
        types: dict[str, Counter[str]] = {}
        fitting: dict[str, str | None] = {}
        for row in rows(folder / name / "samples.jsonl", read):
            route = route_keyword(skill, row.question)
            types.setdefault(row.type, Counter())[route.subskill.name if route else NO_HIT] += 1
            fitting[row.type] = row.fitting
        results.append(_result(title, skill.name, types, fitting))
    return results


def rows(path: Path, read: Callable[[dict[str, Any]], Row]) -> Iterator[Row]:
    """The rows of a file. Raises UserFault with the line of the first that cannot be used."""
    try:
        if path.stat().st_size > MOST_BYTES:
            raise UserFault(f"larger than {MOST_BYTES} bytes", where=str(path), fix="give a folder with fewer rows")
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UserFault(f"cannot be read: {error}", where=str(path), fix="see the head of this script") from None
    for number, line in enumerate(lines, 1):
        try:
            yield read(json.loads(line))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            problem = f"unusable row: {type(error).__name__}: {error}"
            raise UserFault(problem, where=f"{path}:{number}", fix="each line is one JSON object") from None


def _result(title: str, skill: str, types: dict[str, Counter[str]], fitting: dict[str, str | None]) -> dict[str, Any]:
    total = sum(counts.total() for counts in types.values())
    judged = all(name is not None for name in fitting.values()) and total > 0
    right = sum(counts[fitting[kind] or ""] for kind, counts in types.items())
    hits = total - sum(counts[NO_HIT] for counts in types.values())
    return {
        "benchmark": title,
        "skill": skill,
        "rows": total,
        "with_keyword": round(hits / total, 4) if total else None,
        "right": round(right / total, 4) if judged else None,
        "types": {
            kind: {
                "rows": counts.total(),
                "fitting": fitting[kind],
                "right": None if fitting[kind] is None else round(counts[fitting[kind] or ""] / counts.total(), 4),
                "routed": dict(sorted(counts.items())),
            }
            for kind, counts in sorted(types.items())
        },
    }


def _question(row: dict[str, Any]) -> str:
    if not isinstance(row["question"], str):
        raise TypeError(f"the question is no text but {row['question']!r}")
    return row["question"]


def _fitting(table: dict[str, str], kind: str) -> str:
    if kind not in table:
        raise ValueError(f"unknown type {kind!r}; known: {', '.join(table)}")
    return table[kind]


def _chartqa_kind(row: dict[str, Any]) -> str:
    return f"{row.get('human_or_machine', 'any')} {row.get('question_complexity', '')}".strip()


def _write(path: Path, results: list[dict[str, Any]]) -> None:
    try:
        path.write_text(json.dumps(results, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    except OSError as error:
        raise UserFault(
            f"cannot be written: {error}", where=str(path), fix="give a file in a folder that exists"
        ) from None


def _show(results: list[dict[str, Any]]) -> None:
    table = Table("benchmark", "type", "rows", "right", "went to")
    for result in results:
        for kind, entry in result["types"].items():
            went = ", ".join(f"{name} {count}" for name, count in entry["routed"].items())
            table.add_row(result["benchmark"], kind, str(entry["rows"]), _share(entry["right"]), went)
        note = f"{_share(result['with_keyword'])} hold a keyword"
        table.add_row(result["benchmark"], "all", str(result["rows"]), _share(result["right"]), note, end_section=True)
    Console().print(table)


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


if __name__ == "__main__":
    main()
