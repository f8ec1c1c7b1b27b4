"""One page over several evaluations."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from eval.parts import Parts, parts_of
from eval.report.charts import Line, Mark, dots, lines, scatter
from eval.report.plots import Sized, apart, samples_plot, scaling_plot, skill_counts
from eval.report.runs import read_run, render_runs, write_runs
from registry.errors import UserFault


def entry(accuracy: float, **more: Any) -> dict[str, Any]:
    return {
        "accuracy": accuracy, "ci95": [accuracy - 0.1, accuracy + 0.1], "n": 40, "errors": 0, "macro": accuracy,
        "groups": {"plain": {"accuracy": accuracy, "ci95": None, "n": 40}}, "latency_s": {"mean": 1 + accuracy},
        "pass_at_k": {"1": accuracy, "4": 0.9}, "sc_at_k": {"1": accuracy}, **more,
    }  # fmt: skip


def run_folder(root: Path, name: str, accuracy: float, **changes: Any) -> Path:
    folder = root / name
    folder.mkdir()
    results = {
        "benchmark": name, "title": name.title(), "seed": 0, "rows": {"test": 40}, "errors": 0, "trajectories": 80,
        "expected": 80, "after": entry(accuracy), "before": entry(0.2), "baselines": {}, "shared_wordings": {},
        "scorer": {"official": "relaxed", "lenient": None}, "skipped": {}, **changes,
    }  # fmt: skip
    (folder / "results.json").write_text(json.dumps(results))
    return folder


def arms(*sizes: int) -> dict[str, Any]:
    pool = {f"skills_{n}": {"kind": "policy", "policy": "p", "pool": {"skills": ["s"] * n}} for n in sizes}
    return {"config": {"arms": {**pool, "other": {"kind": "keyword"}}}}


def test_arms_stand_in_lines_and_benchmarks_in_columns_with_the_mean_over_them(tmp_path: Path) -> None:
    folders = [run_folder(tmp_path, "chartqa", 0.5), run_folder(tmp_path, "slake", 0.75)]
    text = write_runs(folders, tmp_path / "all.html").read_text()
    table = text[text.index('id="all"') : text.index('id="run-1"')].replace("\n", "")
    assert '<th scope="col">Chartqa</th><th scope="col">Slake</th><th scope="col">macro</th>' in table
    assert '0.500 <span class="range">0.40–0.60</span></td><td>0.750' in table
    assert "<td>0.625</td></tr>" in table


def test_an_arm_that_did_not_run_everywhere_has_no_mean(tmp_path: Path) -> None:
    folders = [run_folder(tmp_path, "chartqa", 0.5), run_folder(tmp_path, "slake", 0.75, before=None)]
    text = render_runs([read_run(folder) for folder in folders], "x")
    table = text[text.index('id="all"') : text.index('id="run-1"')].replace("\n", "")
    assert "<td>–</td><td>–</td></tr>" in table


def test_several_runs_of_one_benchmark_are_told_apart_and_not_averaged(tmp_path: Path) -> None:
    folders = [run_folder(tmp_path, name, 0.5, benchmark="slake", title="SLAKE") for name in ("a", "b")]
    text = render_runs([read_run(folder) for folder in folders], "x")
    assert "SLAKE (a)" in text
    assert "SLAKE (b)" in text
    assert "so there is no mean over them" in text


def test_skill_pools_of_several_arms_become_one_line_of_the_scaling(tmp_path: Path) -> None:
    sized = {"skills_2": entry(0.4), "skills_5": entry(0.6)}
    folder = run_folder(tmp_path, "slake", 0.5, baselines=sized)
    (folder / "eval.json").write_text(json.dumps(arms(2, 5)))
    text = render_runs([read_run(folder)], "x")
    assert "N-scaling" in text
    assert "Slake, p, N = 2: 0.400 (95 %: 0.300 to 0.500)" in text
    assert '<td class="right">5</td><td class="right">0.600</td>' in text


def test_one_size_of_the_pool_is_no_scaling() -> None:
    assert scaling_plot([Sized("x", 5, entry(0.5)), Sized("y", 4, entry(0.5))]) is None


def test_an_arm_without_pool_counts_the_whole_registry_where_that_is_known() -> None:
    config = {"arms": {"after": {"kind": "policy", "policy": "p"}, "bare": {"kind": "policy", "without": "skills"}}}
    assert skill_counts(config, Parts(("Ann",), tuple("abcde"))) == {"after": ("p", 5, ("ann",))}
    assert skill_counts(config, None) == {}


def test_an_extended_registry_with_the_same_experts_goes_on_with_the_line_of_the_default_one(tmp_path: Path) -> None:
    one, two = {"kind": "policy", "policy": "p"}, ["Ann", "Bob"]
    main = run_folder(tmp_path, "main", 0.5, benchmark="x", title="X", baselines={"skills_2": entry(0.4)})
    more = {"skills_8": entry(0.6)}
    extended = run_folder(tmp_path, "extended", 0.7, benchmark="x", title="X", baselines=more)
    pool = {"config": {"arms": {"after": one, "skills_2": {**one, "pool": {"skills": ["a", "b"]}}}}}
    (main / "eval.json").write_text(json.dumps({**pool, "parts": {"experts": two, "skills": list("abcde")}}))
    wide = {"config": {"arms": {"after": one, "skills_8": {**one, "pool": {"experts": ["ann", "bob"]}}}}}
    (extended / "eval.json").write_text(
        json.dumps({**wide, "parts": {"experts": [*two, "Cy"], "skills": list("abcdefgh")}})
    )
    text = render_runs([read_run(folder) for folder in (main, extended)], "x")
    for n, accuracy in ((2, "0.400"), (5, "0.500"), (8, "0.600")):
        assert f"X, p, 2 experts, N = {n}: {accuracy}" in text
    assert '<td>X, p, 3 experts</td><td class="right">8</td><td class="right">0.700</td>' in text


def test_the_embedded_study_has_two_four_five_and_eight_skills_on_one_line() -> None:
    from eval.pools import Pools
    from eval.study import load_study
    from registry.registry import Registry

    study = load_study(Path(__file__).parents[2] / "configs/eval/study_embedded.yaml", only=["main", "extended"])
    sized = []
    for member in study.members:
        parts = parts_of(Pools(member.config, Registry.load(*member.registry)).registry)
        counts = skill_counts(member.config.model_dump(mode="json"), parts)
        sized += [Sized(policy, n, entry(n / 10), experts) for policy, n, experts in counts.values()]
    lines_of_five = {one.skills for one in apart(sized) if one.series == "after, 5 experts"}
    assert lines_of_five == {2, 4, 5, 8}


def test_labels_of_plots_are_plain_text_and_overlapping_ones_are_moved_or_left_to_the_title() -> None:
    bad = "</title><script>x</script>"
    for svg in (
        dots([Mark(bad, 0.5)], title=bad),
        scatter([Mark(bad, 0.5, 1.0), Mark("b", 0.4, 2.0)], title="t", x_name=bad),
        lines([Line(bad, (Mark(bad, 0.5, 1), Mark(bad, 0.6, 2)))], title="t", x_name="k"),
    ):
        assert "<script" not in svg
        assert "&lt;script&gt;" in svg
    crowd = scatter([Mark("the same place", 0.5, 1.0) for _ in range(30)], title="t", x_name="s")
    assert 1 <= crowd.count(">the same place</text>") < 30
    assert crowd.count("<title>the same place: 0.500") == 30


@pytest.mark.parametrize("text", ["", "[1]", '{"benchmark": "x"}'])
def test_a_folder_without_results_is_one_message(tmp_path: Path, text: str) -> None:
    (tmp_path / "results.json").write_text(text)
    with pytest.raises(UserFault, match="no evaluation that can be read"):
        read_run(tmp_path)


def test_results_of_another_shape_are_one_message(tmp_path: Path) -> None:
    folder = run_folder(tmp_path, "slake", 0.5, after={"accuracy": "high"})
    with pytest.raises(UserFault, match="not the expected shape"):
        write_runs([folder], tmp_path / "x.html")


def test_the_command_writes_the_page_and_says_where(tmp_path: Path) -> None:
    from maestro.cli.evaluate_report import report

    app = typer.Typer()
    app.command()(report)
    folders = [str(run_folder(tmp_path, name, 0.5)) for name in ("a", "b")]
    out = tmp_path / "pages" / "all.html"
    done = CliRunner().invoke(app, [*folders, "--out", str(out), "--title", "Mine", "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout) == {"report": str(out)}
    assert "<title>Mine</title>" in out.read_text()
    assert isinstance(CliRunner().invoke(app, folders).exception, UserFault)


def test_each_arm_has_its_own_mark_in_the_plot_over_samples() -> None:
    plot = samples_plot({"after": entry(0.5), "once": entry(0.5, pass_at_k={"1": 0.5}), "before": entry(0.3)})
    assert plot is not None
    assert 'class="line s1 dashed"' in plot.svg
    assert 'class="line s2 dashed"' in plot.svg
    assert "once" not in plot.svg
