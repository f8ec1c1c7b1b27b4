"""Paths that a command tells can be copied."""

from __future__ import annotations

import io

from rich.console import Console

from maestro.cli.files import tell_files


def test_a_path_longer_than_the_terminal_stays_in_one_line_as_it_is() -> None:
    out = io.StringIO()
    path = "/data/" + "long " * 30 + "[red]/report.html"
    tell_files(Console(file=out, width=80), report=path, heat_map="matrix.png")
    assert out.getvalue() == f"report      {path}\nheat map    matrix.png\n"
