"""`maestro train export RUN --out DIR`: a trained policy as a Hugging Face folder, with a card of how it was trained.

maestro train export runs/embedded --out policies/embedded
maestro train export runs/embedded --best --out policies/best
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from registry.errors import UserFault


def export(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a training, finished or not.")],
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder to write; must not exist, or be empty.")],
    step: Annotated[int | None, typer.Option("--step", min=1, help="The policy of this checkpoint.")] = None,
    best: Annotated[bool, typer.Option("--best", help="The best policy that the run kept.")] = False,
    results: Annotated[
        Path | None,
        typer.Option("--results", metavar="RUN", help="Evaluation to quote; without it the one in the run's folder."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> None:
    """Write weights, processor and a model card, for vLLM, transformers and `maestro answer`."""
    from train.curves import read_metrics
    from train.export.card import model_card
    from train.export.choose import choose
    from train.export.weights import parameters
    from train.export.write import refuse, write
    from train.paths import RunPaths
    from train.run_view import read_json

    if step is not None and best:
        raise UserFault("--step and --best name two policies", fix="give one of them")
    paths = RunPaths.at(run)
    config = read_json(paths.config)
    if config is None:
        raise UserFault(
            "no training run here (no config.json)", where=str(paths.root), fix="give the folder of `maestro train`"
        )
    choice = choose(paths, config, step=step, best=best)
    out = out.expanduser().resolve()
    refuse(choice, out)
    benchmark, figures = _figures(results or paths.root, choice.weights, asked=results is not None)
    record = next((one for one in read_metrics(paths.metrics) if one["step"] == choice.step), None)
    summary = read_json(paths.summary) or {}
    card = model_card(
        config,
        choice,
        versions=_versions(paths.checkpoints / f"global_step_{choice.step}", summary),
        parameters=parameters(choice.weights),
        registry=_registry(config, str(summary.get("registry") or "")),
        last=record,
        benchmark=benchmark,
        figures=figures,
    )
    write(choice, out, card)
    if as_json:
        typer.echo(json.dumps({"policy": str(out), "step": choice.step, "figures": len(figures)}))
    else:
        typer.echo(f"policy   {out}  (step {choice.step})\ncard     {out / 'README.md'}")


def _versions(checkpoint: Path, summary: dict[str, Any]) -> dict[str, str]:
    """Of the packages that trained it, as the run's files tell."""
    from train.checkpoint_hook import RECORD
    from train.run_view import read_json

    record = read_json(checkpoint / RECORD) or {}
    found = record.get("versions") or summary.get("versions") or {}
    return {str(name): str(version) for name, version in found.items()}


def _registry(config: dict[str, Any], noted: str) -> dict[str, Any] | None:
    """Digest and size of the registry that the run began with (`noted`; older runs noted none: then the one that their
    config names now). None where neither is known; a size is left out where the registry has changed since."""
    from registry.registry import Registry, default_registry_path

    try:
        registry = Registry.load(*(config.get("registry") or (default_registry_path(),)))
    except (UserFault, OSError):
        return {"digest": noted} if noted else None
    if noted and registry.digest != noted:
        return {"digest": noted}
    return {"digest": registry.digest, "experts": len(registry.experts), "skills": len(registry.skills)}


def _figures(folder: Path, weights: Path, *, asked: bool) -> tuple[str, list[Any]]:
    """(benchmark, figures) of the arms that ran exactly these weights; nothing where no such evaluation lies there.

    Raises UserFault where an evaluation was asked for and was not made with them.
    """
    from eval.identity import folder_digest
    from train.run_view import read_json

    found, made_of = read_json(folder / "results.json"), read_json(folder / "eval.json")
    names = []
    if found is not None and made_of is not None:
        digest = folder_digest(weights)[:12]
        versions, settings = made_of.get("versions") or {}, made_of.get("config") or {}
        policies = {name for name in settings.get("policies") or {} if versions.get(f"policy {name}") == digest}
        arms = settings.get("arms") or {}
        names = [name for name, arm in arms.items() if arm.get("kind") == "policy" and arm.get("policy") in policies]
    figures = [one for name in names for one in _of_arm((found or {}).get(name))]
    if asked and not figures:
        raise UserFault(
            "no evaluation of this policy", where=str(folder), fix="give the folder of an evaluation that ran it"
        )
    return str((found or {}).get("benchmark") or ""), figures


def _of_arm(arm: Any) -> list[tuple[str, float, tuple[float, float] | None, int]]:
    """The arm's headline numbers; what is no number is passed over."""
    if not isinstance(arm, dict) or not isinstance(arm.get("accuracy"), int | float):
        return []
    count, span = int(arm.get("n") or 0), arm.get("ci95")
    interval = (float(span[0]), float(span[1])) if isinstance(span, list) and len(span) == 2 else None
    rows: list[tuple[str, float, tuple[float, float] | None, int]] = [
        ("accuracy", float(arm["accuracy"]), interval, count)
    ]
    if isinstance(arm.get("malformed_rate"), int | float):
        rows.append(("malformed share", float(arm["malformed_rate"]), None, count))
    return rows
