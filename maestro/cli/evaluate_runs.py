"""What can be done with finished evaluations without running anything: `maestro evaluate replay`, `merge`,
`compare` and `power`.

    maestro evaluate replay runs/demo --scorer exact
    maestro evaluate merge runs/x-shard-1-of-2 runs/x-shard-2-of-2 --out runs/x
    maestro evaluate compare runs/chartqa runs/slake --arm after --against before
    maestro evaluate power --difference 0.02 --accuracy 0.7
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from maestro.cli.files import tell_files
from maestro.cli.progress import phases, progress_display
from registry.errors import UserFault

if TYPE_CHECKING:
    from eval.compare import Across
    from eval.replay import Replay

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Run = Annotated[Path, typer.Argument(metavar="RUN", help="Folder of an evaluation.")]
_SHOWN = 20


def replay(
    run: Run,
    scorer: Annotated[
        str | None, typer.Option("--scorer", metavar="NAME", help="This rule instead of each row's own.")
    ] = None,
    lenient: Annotated[bool, typer.Option("--lenient", help="The benchmark's lenient rule.")] = False,
    as_json: AsJson = False,
) -> None:
    """Score saved trajectories again and tell what changes; writes replay.json, runs no model and no expert."""
    from eval.replay import FILE
    from eval.replay import replay as score_again

    with progress_display(Console(stderr=True, quiet=as_json)) as progress:
        found = score_again(run, scorer=scorer, lenient=lenient, start_phase=phases(progress))
    if as_json:
        typer.echo(json.dumps({**found.to_json(), "file": str(run / FILE)}))
        return
    _tell_replay(found)
    typer.echo(f"replay   {run / FILE}")


def merge(
    runs: Annotated[list[Path], typer.Argument(metavar="RUNS...", help="The folders of all shards.")],
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="New folder for the whole.")],
    as_json: AsJson = False,
) -> None:
    """Put the shards of an evaluation together: journal, results.json, scores.jsonl and report.html as of one run."""
    from eval.merge import merge as put_together
    from maestro.cli.results_table import tell_results, tell_unread

    with progress_display(Console(stderr=True, quiet=as_json)) as progress:
        made = put_together(runs, out, start_phase=phases(progress))
    if as_json:
        typer.echo(json.dumps({"results": str(made.results_path), "report": str(made.report_path)}))
        return
    console = Console()
    tell_results(console, made.results)
    tell_unread(console, made.unread)
    if made.results["status"] != "complete":
        missing = made.results["expected"] - made.results["trajectories"]
        console.print(f"[yellow]{missing} trajectories have not run, {made.results['errors']} failed;")
        console.print("[yellow]`maestro evaluate` with the same settings and this folder as --run does the rest.")
    tell_files(console, results=made.results_path, report=made.report_path)


def compare(
    runs: Annotated[list[Path], typer.Argument(metavar="RUNS...", help="Folders, one for each benchmark.")],
    arm: Annotated[str, typer.Option("--arm", metavar="NAME", help="The arm in question.")] = "after",
    against: Annotated[str, typer.Option("--against", metavar="NAME", help="The baseline.")] = "before",
    baseline_run: Annotated[
        list[Path] | None,
        typer.Option("--baseline-run", metavar="RUN", help="Folder with the baseline; may be repeated."),
    ] = None,
    split: Annotated[str, typer.Option("--split", help="test or test_unseen.")] = "test",
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of the bootstrap.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Compare two arms question by question on each benchmark, and over all of them (Wilcoxon signed-rank)."""
    from eval.compare import compare_runs

    found = compare_runs(runs, arm, against, baselines=baseline_run or (), split=split, seed=seed)
    if as_json:
        typer.echo(json.dumps(found.to_json()))
        return
    _tell_comparison(found)


def power(
    difference: Annotated[float, typer.Option("--difference", help="Of two accuracies, 0.02 for 2 points.")],
    discordant: Annotated[
        float | None, typer.Option("--discordant", help="Share of questions that only one arm answers right.")
    ] = None,
    accuracy: Annotated[
        float | None, typer.Option("--accuracy", help="The baseline's, where that share is not known.")
    ] = None,
    chance: Annotated[float, typer.Option("--power", help="Chance of showing the difference.")] = 0.8,
    alpha: Annotated[float, typer.Option("--alpha", help="Two-sided level of the test.")] = 0.05,
    as_json: AsJson = False,
) -> None:
    """The smallest number of questions on which a difference of two arms can be shown."""
    from eval.statistics.power import independent_discordance, sample_size

    if (discordant is None) == (accuracy is None):
        raise UserFault("give either --discordant or --accuracy", fix="--discordant 0.3, as an earlier run showed it")
    try:
        share = independent_discordance(accuracy, accuracy + difference) if accuracy is not None else discordant
        assert share is not None
        needed = sample_size(difference, share, alpha=alpha, power=chance)
    except ValueError as error:
        given = "--accuracy" if accuracy is not None else "--discordant"
        raise UserFault(
            str(error), where=f"--difference, {given}", fix="give shares between 0 and 1, 0.02 for 2 points"
        ) from None
    if as_json:
        typer.echo(json.dumps({"questions": needed, "difference": difference, "discordant": share}))
        return
    typer.echo(f"{needed} questions show a difference of {100 * difference:g} points in {100 * chance:g} of 100 runs")
    typer.echo(f"(two-sided level {alpha:g}; only one arm right on {100 * share:.1f} % of the questions)")


def _tell_replay(found: Replay) -> None:
    console = Console()
    console.print(f"{len(found.changes)} of {found.trajectories} scores change")
    table = Table(box=None, padding=(0, 0, 0, 1))
    table.add_column("split")
    table.add_column("arm")
    for name in ("then", "now", "up", "down", "n", "err."):
        table.add_column(name, justify="right", no_wrap=True)
    for split, arms in found.arms.items():
        for arm, totals in arms.items():
            table.add_row(
                split, escape(arm), _share(totals.before), _share(totals.after),
                str(totals.up), str(totals.down), str(totals.scored), str(totals.errors),
            )  # fmt: skip
    console.print(table)
    for change in found.changes[:_SHOWN]:
        place = f"{change.arm} {change.row} #{change.sample}"
        console.print(f"{place}: {change.before:g} -> {change.after:g}  {change.why}", markup=False, highlight=False)
    if len(found.changes) > _SHOWN:
        console.print(f"... and {len(found.changes) - _SHOWN} more in replay.json")
    unscored = sum(totals.unscored for arms in found.arms.values() for totals in arms.values())
    if unscored:
        row, why = next(iter(found.unscored.items()))
        text = f"{unscored} trajectories cannot be scored by this rule; for example {row}: {why}"
        console.print(text, style="yellow", markup=False, highlight=False)


def _tell_comparison(found: Across) -> None:
    console = Console()
    table = Table(title=escape(f"{found.arm} against {found.against}"), box=None, padding=(0, 0, 0, 1))
    table.add_column("benchmark", no_wrap=True)
    for name in (found.arm, found.against, "diff.", "95 %", "p", "p Holm", "n", "needs"):
        table.add_column(escape(name), justify="right", no_wrap=True)
    lenient = found.lenient
    for name in found.benchmarks:
        table.add_row(escape(name), *_comparison_cells(found, name))
        if lenient is not None and lenient.benchmarks[name] != found.benchmarks[name]:
            table.add_row("  lenient", *_comparison_cells(lenient, name))
    table.add_row("macro average", *_macro_cells(found), style="bold")
    if lenient is not None:
        table.add_row("  lenient", *_macro_cells(lenient), style="bold")
    console.print(table)
    test = found.signed_rank
    if len(found.benchmarks) == 1:
        return  # a test over benchmarks needs several
    if test.p_two_sided is None:
        console.print("Wilcoxon signed-rank: no benchmark shows a difference")
        return
    console.print(
        f"Wilcoxon signed-rank over {test.n} benchmarks ({test.zeros} equal left out), exact: p {_p(test.p_greater)}"
        f" one-sided, {_p(test.p_two_sided)} two-sided; the smallest one-sided p that {test.n} can give is"
        f" {_p(test.smallest_p_greater)}",
        highlight=False,
    )


def _comparison_cells(found: Across, name: str) -> tuple[str, ...]:
    one = found.benchmarks[name]
    low, high = one.ci95
    return (
        _share(one.accuracy), _share(one.baseline), f"{100 * one.difference:+.1f}",
        f"{100 * low:+.1f} to {100 * high:+.1f}", f"{one.p:.4f}", f"{found.p_holm[name]:.4f}",
        str(one.n), "" if one.questions_needed is None else str(one.questions_needed),
    )  # fmt: skip


def _macro_cells(found: Across) -> tuple[str, ...]:
    return _share(found.macro), _share(found.macro_against), f"{100 * (found.macro - found.macro_against):+.1f}"


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _p(value: Any) -> str:
    return "-" if value is None else f"{value:.2g}"
