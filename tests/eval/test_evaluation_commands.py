"""`maestro evaluate` and `maestro experts matrix` as a user meets them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from maestro.cli import evaluate_cmd, experts_cmd
from registry.errors import UserFault

CONFIG = """
benchmark: embedded
run: {run}
rows: {{test: 12, validation: 12}}
arms:
  random: {{kind: random_pair}}
  oracle: {{kind: oracle}}
"""


@pytest.fixture
def app() -> typer.Typer:
    application = typer.Typer(pretty_exceptions_enable=False)
    application.command("evaluate")(evaluate_cmd.evaluate)
    application.add_typer(experts_cmd.app)
    return application


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write_two_experts: Callable[[Path], Path]) -> Path:
    write_two_experts(tmp_path)
    (tmp_path / "eval.yaml").write_text(CONFIG.format(run=tmp_path / "run"))
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def test_matrix_prints_one_json_object_and_leaves_heat_map_and_numbers(app: typer.Typer, folder: Path) -> None:
    call = ["experts", "matrix", "--registry", str(folder / "registry.yaml"), "--rows", "12"]
    done = CliRunner().invoke(app, [*call, "--out", str(folder / "out"), "--json"], catch_exceptions=False)
    found = json.loads(done.stdout)
    assert done.exit_code == 0
    assert set(found["cells"]) == {"Shape-Spotter@@Looking", "Line-Tracer@@Looking"}
    assert len(found["families"]) == 12
    assert found["errors"] == 0
    assert json.loads((folder / "out" / "matrix.json").read_text())["cells"] == found["cells"]
    assert (folder / "out" / "matrix.png").stat().st_size > 10_000


def test_matrix_fits_a_narrow_terminal(app: typer.Typer, folder: Path) -> None:
    call = ["experts", "matrix", "--registry", str(folder / "registry.yaml"), "--rows", "12"]
    done = CliRunner().invoke(app, [*call, "--out", str(folder / "out")], env={"COLUMNS": "80"}, catch_exceptions=False)
    printed = [line for line in done.stdout.splitlines() if str(folder) not in line]
    assert max(map(len, printed)) <= 80
    assert "…" not in done.stdout
    assert "touching_circles" in done.stdout


def test_evaluate_prints_one_json_object_with_the_paths_of_what_it_wrote(app: typer.Typer, folder: Path) -> None:
    call = ["evaluate", str(folder / "eval.yaml"), "--registry", str(folder / "registry.yaml"), "--json"]
    done = CliRunner().invoke(app, call, catch_exceptions=False)
    found = json.loads(done.stdout)
    assert found["rows"] == {"test": 12, "validation": 12}
    assert found["baselines"]["oracle"]["n"] == 12
    assert Path(found["files"]["report"]).is_file()
    assert json.loads(Path(found["files"]["results"]).read_text())["baselines"] == found["baselines"]


def test_evaluate_prints_a_table_and_where_the_report_is(app: typer.Typer, folder: Path) -> None:
    call = [
        "evaluate",
        str(folder / "eval.yaml"),
        "--registry",
        str(folder / "registry.yaml"),
        "--limit",
        "6",
    ]
    done = CliRunner().invoke(app, [*call, "--run", str(folder / "other")], catch_exceptions=False)
    assert "oracle" in done.stdout
    assert "report.html" in done.stdout
    assert (folder / "other" / "results.json").is_file()


def test_the_seed_of_the_command_line_wins(app: typer.Typer, folder: Path) -> None:
    call = ["evaluate", str(folder / "eval.yaml"), "--registry", str(folder / "registry.yaml"), "--json"]
    done = CliRunner().invoke(app, [*call, "--limit", "2", "--seed", "9"], catch_exceptions=False)
    assert json.loads(done.stdout)["seed"] == 9


def test_a_fault_of_the_user_is_raised_for_the_application_to_print(app: typer.Typer, folder: Path) -> None:
    with pytest.raises(UserFault, match=r"unknown key 'rows\.tset'"):
        CliRunner().invoke(app, ["evaluate", str(folder / "eval.yaml"), "rows.tset=2"], catch_exceptions=False)
