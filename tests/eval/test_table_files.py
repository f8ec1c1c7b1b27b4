"""`maestro evaluate tables` as a user meets it: what it prints and the files that it leaves."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from eval.tables.escape import latex, markdown, short, spreadsheet
from maestro.cli.evaluate_tables import tables
from registry.errors import UserFault

EVIL = "a|b_*c* $x$ {\\input} <b> 100%\n& \u202egpj"


@pytest.fixture
def app() -> typer.Typer:
    application = typer.Typer(pretty_exceptions_enable=False)
    application.command("tables")(tables)
    return application


def write_run(folder: Path, benchmark: str, arms: dict[str, float]) -> Path:
    folder.mkdir()
    entries = {
        name: {"n": 50, "trajectories": 50, "errors": 0, "accuracy": value, "ci95": [value - 0.05, value + 0.05]}
        for name, value in arms.items()
    }
    record = {"benchmark": benchmark, "seed": 1, "status": "complete", "after": entries.pop("after", None)}
    (folder / "results.json").write_text(json.dumps({**record, "baselines": entries}))
    return folder


def test_prints_the_table_and_writes_one_file_a_format(app: typer.Typer, tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", "vstar", {"after": 0.612, "random": 0.3})
    call = [str(run), "--table", "1", "--table", "10", "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(app, call, catch_exceptions=False)
    assert done.exit_code == 0
    assert "Table 1: In-domain and out-of-domain benchmarks" in done.stdout
    assert "61.2" in done.stdout and "70.1" in done.stdout
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert names == ["table-1.tex", "table-10.tex", "tables.csv", "tables.md"]


def test_no_column_is_cut_off_in_a_narrow_terminal(
    app: typer.Typer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    run = write_run(tmp_path / "run", "mathvision", {"after": 0.4321})
    done = CliRunner().invoke(app, [str(run), "--table", "7", "--out", str(tmp_path / "out")], catch_exceptions=False)
    assert "…" not in done.stdout
    for head in ("Chart", "Geo3K", "HR-8K", "MathV", "HE-V", "Avg."):
        assert head in done.stdout
    assert max(len(line) for line in done.stdout.splitlines() if not line.startswith("table ")) <= 60


def test_tables_that_no_arm_fills_are_left_out_with_a_line_that_says_what_would(
    app: typer.Typer, tmp_path: Path
) -> None:
    run = write_run(tmp_path / "run", "embedded", {"after": 0.9, "before": 0.4})
    out = tmp_path / "out"
    done = CliRunner().invoke(app, [str(run), "--out", str(out), "--json"], catch_exceptions=False)
    found = json.loads(done.stdout)
    assert [one["table"] for one in found["tables"]] == [1, 2, 6, 8, 9]
    assert [text.partition(":")[0] for text in found["left_out"]] == ["Table 7", "Table 10", "Table 11"]
    assert found["left_out"][1] == (
        "Table 10: Ablation of components: left out, no arm of these runs fills it. What would fill it: without skill"
        " pool: the trained policy without skills; without model pool: the trained policy without experts; without"
        " both: the policy without experts and skills."
    )
    assert not (out / "table-7.tex").exists() and "Table 7" not in (out / "tables.md").read_text()
    done = CliRunner().invoke(app, [str(run), "--table", "10", "--out", str(out)], catch_exceptions=False)
    assert "Table 10: Ablation of components" in done.stdout and "left out" not in done.stdout


def test_files_of_earlier_runs_go_where_their_table_is_left_out_now_and_stay_where_it_was_not_asked_for(
    app: typer.Typer, tmp_path: Path
) -> None:
    run = write_run(tmp_path / "run", "embedded", {"after": 0.9, "before": 0.4})
    out = tmp_path / "out"
    out.mkdir()
    for number in (10, 11):
        (out / f"table-{number}.tex").write_text("of earlier runs")
    call = [str(run), "--out", str(out)]
    CliRunner().invoke(app, [*call, "--table", "1"], catch_exceptions=False)
    CliRunner().invoke(app, [*call, "--format", "csv"], catch_exceptions=False)
    assert (out / "table-10.tex").read_text() == (out / "table-11.tex").read_text() == "of earlier runs"
    CliRunner().invoke(app, call, catch_exceptions=False)
    assert sorted(path.name for path in out.glob("*.tex")) == [f"table-{number}.tex" for number in (1, 2, 6, 8, 9)]


def test_json_is_one_object_with_every_cell(app: typer.Typer, tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", "vstar", {"after": 0.5})
    call = [str(run), "--table", "1", "--format", "csv", "--out", str(tmp_path / "out"), "--json"]
    found = json.loads(CliRunner().invoke(app, call, catch_exceptions=False).stdout)
    (cell,) = [one for one in found["tables"][0]["cells"] if (one["row"], one["column"]) == ("after", "vstar")]
    assert (cell["value"], cell["n"], cell["ci95_low"], cell["source"]) == (50.0, 50, 45.0, "measured")
    (empty,) = [one for one in found["tables"][0]["cells"] if (one["row"], one["column"]) == ("after", "slake")]
    assert empty["value"] is None
    assert [Path(path).name for path in found["files"]] == ["tables.csv"]


def test_markdown_holds_paper_and_measured_rows_the_best_bold_and_intervals_on_demand(
    app: typer.Typer, tmp_path: Path
) -> None:
    run = write_run(tmp_path / "run", "vstar", {"after": 0.5, "random": 0.3})
    call = [str(run), "--table", "1", "--format", "md", "--out", str(tmp_path), "--ci"]
    CliRunner().invoke(app, call, catch_exceptions=False)
    text = (tmp_path / "tables.md").read_text()
    rows = {line.split(" | ")[0].strip("| "): line.split(" | ") for line in text.splitlines() if line.startswith("|")}
    assert rows["Maestro (paper)"][9] == "88.0"
    assert rows["after"][9] == "**50.0** (45.0–55.0)"
    assert rows["after"][5] == "–"
    assert {line.count(" | ") for line in text.splitlines() if line.startswith("|")} == {11}


def test_names_that_would_be_markup_are_escaped_in_every_format(app: typer.Typer, tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", "vstar", {"after": 0.5, EVIL: 0.4, "=1+2": 0.3})
    call = [str(run), "--table", "1", "--out", str(tmp_path)]
    done = CliRunner().invoke(app, call, catch_exceptions=False)
    assert "\u202e" not in done.stdout
    text, sheet = (tmp_path / "tables.md").read_text(), (tmp_path / "table-1.tex").read_text()
    assert r"a\|b \*c\* \$x\$ {\\input} &lt;b&gt; 100% &amp; �gpj" in text
    assert r"a\textbar{}b {*}c{*} \$x\$ \{\textbackslash{}input\} \textless{}b\textgreater{} 100\% \& ?gpj" in sheet
    with (tmp_path / "tables.csv").open(newline="") as file:
        assert "'=1+2" in {row["row"] for row in csv.DictReader(file)}


def test_escapes() -> None:
    assert markdown("# no heading") == r"\# no heading"
    assert markdown("1. no list") == r"1\. no list"
    assert latex("±2 – 50%") == r"$\pm$2 -- 50\%"
    assert spreadsheet("@SUM(A1)") == "'@SUM(A1)"
    assert short("x" * 200) == "x" * 77 + "..."


def test_an_unknown_table_is_refused_with_those_there_are(app: typer.Typer, tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", "vstar", {"after": 0.5})
    with pytest.raises(UserFault, match="1, 2, 6, 7, 8, 9, 10, 11"):
        CliRunner().invoke(app, [str(run), "--table", "3"], catch_exceptions=False)


def test_intervals_of_pass_at_k_are_in_every_format_as_those_of_accuracy_are(app: typer.Typer, tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", "vstar", {"after": 0.5})
    results = json.loads((run / "results.json").read_text())
    results["after"] |= {
        "pass_at_k": {"1": 0.5, "8": 0.9}, "pass_at_k_ci95": {"1": [0.45, 0.55], "8": [0.8, 0.95]},
        "sc_at_k": {"1": 0.5, "8": 0.625}, "sc_at_k_ci95": {"1": [0.45, 0.55], "8": [0.5, 0.75]},
    }  # fmt: skip
    (run / "results.json").write_text(json.dumps(results))
    call = [str(run), "--table", "8", "--table", "9", "--out", str(tmp_path), "--ci"]
    CliRunner().invoke(app, call, catch_exceptions=False)
    text = (tmp_path / "tables.md").read_text()
    tex = "".join((tmp_path / f"table-{number}.tex").read_text() for number in (8, 9))
    for value, low, high in (("90.0", "80.0", "95.0"), ("62.5", "50.0", "75.0")):
        assert f"{value} ({low}–{high})" in text
        assert rf"{value} {{\scriptsize ({low}--{high})}}" in tex
    with (tmp_path / "tables.csv").open(newline="") as file:
        cells = {
            (one["measure"], one["value"]): (one["ci95_low"], one["ci95_high"])
            for one in csv.DictReader(file)
            if (one["row"], one["column"]) == ("after", "vstar")
        }
    assert cells["pass@8", "90.0"] == ("80.0", "95.0")
    assert cells["sc@8", "62.5"] == ("50.0", "75.0")
