"""A table as LaTeX, for a document that uses the package booktabs."""

from __future__ import annotations

from eval.tables.cell import DASH, Cell
from eval.tables.escape import latex
from eval.tables.measure import Measure
from eval.tables.table import Line, Table

_END = r" \\"


def to_latex(table: Table, *, ci: bool = False) -> str:
    """A ``table*`` to be read with ``\\input``. ``ci``: 95 % intervals below the values that have one."""
    heads = ["", *(["Measure"] if table.names_measures else []), *(latex(one.title) for one in table.columns)]
    width = len(heads)
    left = 2 if table.names_measures else 1
    lines = [
        r"% \usepackage{booktabs}",
        r"\begin{table*}[t]",
        r"\centering\small\setlength{\tabcolsep}{4pt}",
        rf"\caption{{{latex(table.title)}.}}",
        rf"\label{{tab:maestro-{table.number}}}",
        rf"\begin{{tabular}}{{{'l' * left}{'r' * (width - left)}}}",
        r"\toprule",
        " & ".join(heads) + _END,
        r"\midrule",
    ]
    section = ""
    for index, line in enumerate(table.lines):
        if line.section != section:
            section = line.section
            lines += [
                *([r"\midrule"] if index else []),
                rf"\multicolumn{{{width}}}{{l}}{{\textit{{{latex(section)}}}}}{_END}",
            ]
        lines.append(" & ".join(_cells(table, line, ci)) + _END)
    lines += [r"\bottomrule", r"\end{tabular}"]
    if table.notes:
        lines += ["", r"\smallskip\footnotesize\raggedright", *(rf"{latex(note)}\par" for note in table.notes)]
    lines.append(r"\end{table*}")
    lines += [f"% missing: {latex(one)}" for one in table.missing]
    return "\n".join(lines) + "\n"


def _cells(table: Table, line: Line, ci: bool) -> list[str]:
    label = latex(line.label)
    measure = [latex(line.measure.label)] if table.names_measures else []
    return [label, *measure, *(_value(line.cell(column), line.measure, ci) for column in table.columns)]


def _value(cell: Cell, measure: Measure, ci: bool) -> str:
    text = cell.text(measure)
    text = "--" if text == DASH else latex(text.replace("-", "−"))
    text = rf"\textbf{{{text}}}" if cell.best else text
    interval = cell.interval(measure) if ci else ""
    return rf"{text} {{\scriptsize ({latex(interval)})}}" if interval else text
