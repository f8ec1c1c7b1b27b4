"""What stands below a table: the denominators of its numbers, and the runs that would fill its dashes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from eval.tables.cell import CACHED, INCOMPLETE
from eval.tables.choice import OwnRow
from eval.tables.measure import Measure
from eval.tables.measured import Measured
from eval.tables.paper import Paper, PaperTable
from eval.tables.table import Line

_LISTED = 4


def notes(
    paper: Paper,
    spec: PaperTable,
    rows: Sequence[OwnRow],
    lines: Sequence[Line],
    benchmarks: Sequence[str],
    extras: Mapping[str, str],
) -> list[str]:
    """How the table is to be read, then one note for each measured row."""
    places = [*benchmarks, *extras]
    titles = {one.name: one.title for one in paper.benchmarks} | dict(extras)
    found = list(_general(spec, rows, lines, benchmarks, extras))
    by_note: dict[str, list[str]] = {}
    for row in rows:
        own = {place: row.runs[place] for place in places if place in row.runs}
        if own:
            by_note.setdefault(_row_note(row, own, titles), []).append(row.label)
    return found + [f"{', '.join(labels)}: {note}" for note, labels in by_note.items()]


def missing(
    paper: Paper, spec: PaperTable, rows: Sequence[OwnRow], lines: Sequence[Line], benchmarks: Sequence[str]
) -> list[str]:
    """For each row of the paper that is ours to run: the benchmarks without a run, and what would fill them."""
    titles = {one.name: one.title for one in paper.benchmarks}
    found = []
    for key in spec.rows:
        row, own = paper.rows[key], [one for one in rows if one.role == key]
        if row.fill is None:
            continue
        lacking = [name for name in benchmarks if not any(name in one.runs for one in own)]
        if len(lacking) == len(benchmarks):
            if benchmarks or not own:
                found.append(f"{row.label}: {row.fill}.")
        elif lacking:
            found.append(f"{row.label}: {row.fill}, on {', '.join(titles[name] for name in lacking)}.")
    return found + list(_unmeasured(lines))


def _general(
    spec: PaperTable,
    rows: Sequence[OwnRow],
    lines: Sequence[Line],
    benchmarks: Sequence[str],
    extras: Mapping[str, str],
) -> Iterator[str]:
    if benchmarks and any(line.paper for line in lines):
        stated = sorted({cell.cited for line in lines if line.paper for cell in line.cells.values() if cell.cited})
        yield f"(paper): what the paper's text states, sections {'; '.join(stated)}; its other cells aren't stated."
    if any(cell.best for line in lines for cell in line.cells.values()):
        yield "Bold: best measured value of a column, without the paper's figures and rows that know the answers."
    if len(benchmarks) > 1:
        yield "Average: every benchmark counts the same, as in the paper."
    if any(cell.covered is not None for line in lines for cell in line.cells.values()):
        yield "(k/m): over only k of the m benchmarks, not compared with others."
    if benchmarks and extras:
        yield f"Not in the paper, and in no average: {', '.join(extras.values())}."
    if any(cell.incomplete for line in lines for cell in line.cells.values()):
        yield f"{INCOMPLETE}: incomplete: errors, or trajectories that have not run; they are in no accuracy."
    if any(cell.cached for line in lines for cell in line.cells.values()):
        yield f"{CACHED}: a cache answered some calls: the latency is too low and not compared."
    if any(cell.sd is not None for line in lines for cell in line.cells.values()):
        yield "±: sample standard deviation over runs."
    yield from spec.notes if any(not line.paper for line in lines) or benchmarks else ()


def _row_note(row: OwnRow, own: Mapping[str, Sequence[Measured]], titles: Mapping[str, str]) -> str:
    every = [one for found in own.values() for one in found]
    parts = ["n = " + ", ".join(f"{_size(found)} ({titles.get(name, name)})" for name, found in own.items())]
    errors = {name: sum(one.errors for one in found) for name, found in own.items()}
    shown = ", ".join(f"{count:,} ({titles.get(name, name)})" for name, count in errors.items() if count)
    parts.append(f"errors: {shown or 'none'}")
    repeated = {name: found for name, found in own.items() if len(found) > 1}
    if repeated:
        parts.append("; ".join(_seeds(titles.get(name, name), found) for name, found in repeated.items()))
    if row.reference:
        parts.append("knows the answers or the families: a bound, not a competitor")
    parts += _warnings(own, every, titles)
    return "; ".join(parts) + "."


def _warnings(
    own: Mapping[str, Sequence[Measured]], every: Sequence[Measured], titles: Mapping[str, str]
) -> Iterator[str]:
    if len({one.system for one in every}) > 1:
        yield "settings or registry differ between its runs"
    if len({one.checkpoint for found in own.values() for one in found[:1]}) > 1:
        yield "checkpoints differ between its benchmarks"
    lenient = []
    for name, found in own.items():
        rule = found[0].entry.get("lenient") if len(found) == 1 else None
        if isinstance(rule, Mapping) and rule.get("differ") and _is_number(rule.get("accuracy")):
            lenient.append(f"{100 * rule['accuracy']:.1f} ({titles.get(name, name)})")
    if lenient:
        yield f"by the lenient rule {', '.join(lenient)}"


def _size(found: Sequence[Measured]) -> str:
    sizes = sorted({one.n for one in found})
    text = f"{sizes[0]:,}" if len(sizes) == 1 else f"{sizes[0]:,} to {sizes[-1]:,}"
    whole = found[0].whole
    return f"{text} of {whole:,}" if whole is not None and sizes[0] < whole else text


def _seeds(title: str, found: Sequence[Measured]) -> str:
    seeds = [str(one.seed) for one in found if one.seed is not None]
    listed = ", ".join(seeds[:_LISTED]) + (", ..." if len(seeds) > _LISTED else "")
    checkpoints = {one.checkpoint for one in found if one.checkpoint}
    more = f" from {len(checkpoints)} checkpoints" if len(checkpoints) > 1 else ""
    return f"{len(found)} runs of {title} (seeds {listed or 'unknown'}{more})"


def _unmeasured(lines: Sequence[Line]) -> Iterator[str]:
    """Measures that the runs of some rows don't hold although they hold the benchmark."""
    lacking: dict[Measure, list[str]] = {}
    for line in lines:
        if not (line.paper or line.computed or any(cell.value is not None for cell in line.cells.values())):
            lacking.setdefault(line.measure, []).append(line.label)
    for measure, labels in lacking.items():
        rest = measure.name.partition("@")[2]
        if rest and rest != "1":
            k = rest.split(" ")[0]
            way = f"a run with samples: {k} and pass_at: [1, {k}]"
        else:
            way = "`maestro evaluate report RUN`, which makes older results anew"
        yield f"{measure.label} of {', '.join(labels)}: {way}."


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
