"""A paper table filled: the paper's figures beside what the runs measured.

The one idea: every table is lines of cells over the same columns; tables differ only in their entry in `paper.yaml`.
Benchmarks that the paper doesn't have get columns of their own, outside its averages; where a run measured nothing
else, they are the table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from eval.tables.cell import EMPTY, Cell, average, cell_of, difference, marked
from eval.tables.choice import OwnRow
from eval.tables.measure import Measure, ks_of, measure_named
from eval.tables.notes import missing, notes
from eval.tables.paper import AVERAGE, DELTA, MICRO, Paper, PaperTable
from eval.tables.table import Column, Line, Table

PAPERS = "(paper)"
_OTHERS = "Others"


def build(paper: Paper, spec: PaperTable, rows: Sequence[OwnRow], *, micro: bool = False) -> Table:
    """Fill one table.

    Args:
        rows: all measured rows; those that this table has no place for are left out.
        micro: also a column with the average by questions.

    Raises UserFault where a run's results.json holds something else than a number.
    """
    kept = [row for row in rows if row.role in spec.rows or _may_stand(spec, row)]
    benchmarks, extras = _benchmarks(paper, spec, rows, kept)
    averaged = benchmarks or list(extras)
    columns = [*_columns(paper, benchmarks, extras, averaged, micro), *_delta_column(spec, averaged)]
    lines = [
        line
        for measure in _measures(spec, kept, benchmarks)
        for line in _lines(paper, spec, kept, measure, [*benchmarks, *extras], averaged, show_paper=bool(benchmarks))
    ]
    lines = _with_differences(spec, lines, averaged)
    if spec.by == "row":
        lines = _by_row(lines)
    else:
        lines = [replace(line, section=line.measure.label) for line in lines]
    lines = _with_best([*lines], columns)
    return Table(
        number=spec.number,
        title=spec.title,
        columns=columns,
        lines=lines,
        notes=notes(paper, spec, kept, lines, benchmarks, extras),
        missing=missing(paper, spec, kept, lines, benchmarks),
    )


def _may_stand(spec: PaperTable, row: OwnRow) -> bool:
    """Ablations and pool sizes have their tables; elsewhere they would stand as if they competed."""
    return row.role is None and (spec.open == "all" or (spec.open == "policies" and row.policy))


def _benchmarks(
    paper: Paper, spec: PaperTable, rows: Sequence[OwnRow], kept: Sequence[OwnRow]
) -> tuple[list[str], dict[str, str]]:
    """The paper's columns, and titles of other benchmarks by name."""
    known = {one.name for one in paper.benchmarks}
    extras = {name: found[0].title for row in kept for name, found in row.runs.items() if found and name not in known}
    only_others = not any(name in known for row in rows for name in row.runs)
    return ([] if only_others and extras else list(spec.benchmarks)), dict(sorted(extras.items()))


def _columns(
    paper: Paper, benchmarks: Sequence[str], extras: dict[str, str], averaged: Sequence[str], micro: bool
) -> Iterator[Column]:
    for name in benchmarks:
        one = paper.benchmark(name)
        yield Column(name, one.title, one.short)
    others = [Column(name, title, title) for name, title in extras.items()]
    if not benchmarks:
        yield from others
    if len(averaged) > 1:
        yield Column(AVERAGE, "Average", "Avg.")
        if micro:
            yield Column(MICRO, "Micro average", "Micro")
    if benchmarks:
        yield from others


def _delta_column(spec: PaperTable, averaged: Sequence[str]) -> list[Column]:
    return [] if spec.delta_to is None or not averaged else [Column(DELTA, "Δ average", "Δ")]


def _measures(spec: PaperTable, rows: Sequence[OwnRow], benchmarks: Sequence[str]) -> list[Measure]:
    """The measures of a table; ``*`` becomes every k above 1 that the paper or a row has, or the only one."""
    names: list[str] = []
    for name in spec.measures:
        if "*" not in name:
            names.append(name)
            continue
        family = name.partition("@")[0]
        ks = {k for row in rows for found in row.runs.values() for one in found for k in ks_of(one.entry, family)}
        cited = [one.measure for one in spec.figures if benchmarks and one.measure.startswith(f"{family}@")]
        ks |= {int(one.partition("@")[2].split(" ")[0]) for one in cited}
        alone = ks if " - " not in name else set()  # a gain over itself says nothing
        names += [name.replace("*", str(k)) for k in sorted(ks - {1} or alone)]
    return [measure_named(name) for name in dict.fromkeys(names)]


def _lines(
    paper: Paper,
    spec: PaperTable,
    rows: Sequence[OwnRow],
    measure: Measure,
    places: Sequence[str],
    averaged: Sequence[str],
    *,
    show_paper: bool,
) -> Iterator[Line]:
    for key in spec.rows:
        row = paper.rows[key]
        group = row.group if spec.grouped and show_paper else ""
        if show_paper and any((one.row, one.measure) == (key, measure.name) for one in spec.figures):
            yield _paper_line(spec, key, f"{row.label} {PAPERS}", group, measure, places)
        for own in rows:
            if own.role == key:
                yield _own_line(own, group, measure, places, averaged)
    for own in rows:
        if own.role not in spec.rows:
            yield _own_line(own, _OTHERS if spec.grouped and show_paper else "", measure, places, averaged)


def _paper_line(spec: PaperTable, key: str, label: str, section: str, measure: Measure, places: Sequence[str]) -> Line:
    cells = {}
    for place in (*places, AVERAGE, DELTA):
        figure = spec.figure(key, measure.name, place)
        if figure is not None:
            cells[place] = Cell(figure.value, runs=1, cited=figure.cited, signed=place == DELTA)
    return Line(section, label, key, measure, cells, paper=True)


def _own_line(own: OwnRow, section: str, measure: Measure, places: Sequence[str], averaged: Sequence[str]) -> Line:
    cells = {place: cell_of(own.runs.get(place, ()), measure) for place in places}
    cells[AVERAGE] = average(cells, averaged)
    cells[MICRO] = average(cells, averaged, micro=True)
    return Line(section, own.label, own.role, measure, cells, reference=own.reference)


def _with_differences(spec: PaperTable, lines: Sequence[Line], averaged: Sequence[str]) -> list[Line]:
    """The delta column, and the line of the gain over the best other row."""
    made = []
    for line in lines:
        base = _first(lines, spec.delta_to, line.measure)
        if spec.delta_to is not None and base is not None and not line.paper and line.row != spec.delta_to:
            line = replace(line, cells={**line.cells, DELTA: difference(line.cells, base.cells, averaged)})
        made.append(line)
        if spec.gain_of is not None and line is _first(lines, spec.gain_of, line.measure):
            made += _gain(line, [one for one in lines if one.measure == line.measure and not one.paper])
    return made


def _first(lines: Sequence[Line], key: str | None, measure: Measure) -> Line | None:
    found = (one for one in lines if one.row == key and one.measure == measure and not one.paper)
    return None if key is None else next(found, None)


def _gain(line: Line, lines: Sequence[Line]) -> list[Line]:
    others = [one for one in lines if one is not line and not one.reference and one.row != line.row]
    pick = min if line.measure.best == "lowest" else max
    cells = {}
    for place, cell in line.cells.items():
        rivals = [one.cells[place] for one in others if _comparable(one.cells.get(place, EMPTY), cell, line.measure)]
        if cell.value is not None and rivals:
            best = pick(one.value for one in rivals if one.value is not None)
            cells[place] = Cell(cell.value - best, signed=True, covered=cell.covered, incomplete=cell.incomplete)
    if not cells:
        return []
    return [Line(line.section, f"Δ {line.label} to the best other", line.row, line.measure, cells, computed=True)]


def _comparable(other: Cell, cell: Cell, measure: Measure) -> bool:
    return measure.competes(other.value) and other.covered == cell.covered


def _by_row(lines: Sequence[Line]) -> list[Line]:
    """Lines of one row together, with its measures below each other."""
    order: dict[tuple[str, str], int] = {}
    for line in lines:
        order.setdefault((line.section, line.label), len(order))
    sections = list(dict.fromkeys(line.section for line in lines))
    return sorted(lines, key=lambda one: (sections.index(one.section), order[one.section, one.label]))


def _with_best(lines: list[Line], columns: Sequence[Column]) -> list[Line]:
    """Mark the best measured value of every column and measure, where there are two to compare; equal as printed is
    equally good. Averages over fewer benchmarks than the table has don't compete."""
    for column in columns:
        for measure in {line.measure for line in lines}:
            if column.key == DELTA or measure.best is None:
                continue
            rivals = [
                index
                for index, line in enumerate(lines)
                if line.measure == measure
                and not (line.paper or line.reference or line.computed)
                and measure.competes(line.cell(column).value)
                and line.cell(column).covered is None
                and not line.cell(column).cached
            ]
            if len(rivals) < 2:
                continue
            values = {i: round(lines[i].cell(column).value or 0.0, measure.places) for i in rivals}
            best = (min if measure.best == "lowest" else max)(values.values())
            for i in rivals:
                if values[i] == best:
                    line = lines[i]
                    lines[i] = replace(line, cells={**line.cells, column.key: marked(line.cell(column))})
    return lines
