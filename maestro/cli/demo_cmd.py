"""`maestro demo`: the whole loop on one machine. Train, evaluate, answer a question on a picture it has never seen."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from maestro.cli.files import tell_files

CONFIGS = Path(__file__).resolve().parents[2] / "configs"


def demo(
    run: Annotated[Path, typer.Option("--run", metavar="DIR", help="Folder of the run.")] = Path("runs/demo"),
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of everything.")] = 0,
    overrides: Annotated[
        list[str] | None, typer.Argument(metavar="[KEY=VALUE]...", help="Changes to the training config.")
    ] = None,
) -> None:
    """Build a tiny policy, train it with GRPO on verl, evaluate it, and answer a question (about half an hour).

    Stopped at any point, the same command goes on where it was.
    """
    from maestro.cli.answer_cmd import answer
    from maestro.cli.evaluate_cmd import evaluate
    from maestro.cli.train_cmd import train

    console = Console(stderr=True)
    console.rule("1. training: cold start, then GRPO on outcome rewards")
    train(CONFIGS / "train" / "embedded.yaml", [f"run={run}", f"seed={seed}", *(overrides or [])])
    console.rule("2. evaluation: before and after RL, beside the baselines")
    evaluate(CONFIGS / "eval" / "embedded.yaml", [f"training={run}", f"cache={run / 'cache'}"], run=run, seed=seed)
    console.rule("3. one question on a new picture")
    picture, question, gold = _new_question(run, seed)
    answer(image=[picture], question=question, policy=run / "policy")
    console.print(f"(the right answer is {gold})\n")
    tell_files(console, report=run / "report.html", results=run / "results.json", checkpoint=run / "policy")


def _new_question(run: Path, seed: int) -> tuple[Path, str, str]:
    """A question whose wording serves several kinds of picture, on a picture that no phase has seen."""
    from eval.benchmarks.embedded.world import make_row

    row = next(
        row for row in (make_row("test", index, seed + 1_000_000) for index in range(1000)) if row.extra["shared"]
    )
    picture = run / "question.png"
    picture.write_bytes(row.pictures[0])
    return picture, row.question, row.answer
