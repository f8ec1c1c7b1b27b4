"""`maestro answer`: one question about one picture, each turn printed as it happens.

    maestro answer --image chart.png --question "Which bar is the highest?"
    maestro answer --image chart.png --question "..." --policy-url http://localhost:8000 --model my-policy
    --prompt full

The policy is a checkpoint folder (the one that `make demo` leaves, unless `--policy` names another) or a
served model. Exit code 0 with an answer, 1 where the episode ended without one.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.console import Console
from rich.text import Text

from maestro.cli.plain_text import plain
from orchestrator.action import Answer, Malformed, Search
from orchestrator.budget import Budget
from orchestrator.policy import Policy
from orchestrator.runner import Event, run_episode
from orchestrator.trajectory import Trajectory
from orchestrator.turn import Turn
from registry.errors import UserFault
from registry.prompt import system_prompt
from registry.registry import Registry

DEFAULT_POLICY = Path("runs/demo/policy")

PromptStyle = Literal["none", "compact", "full"]


def answer(
    image: Annotated[
        list[Path], typer.Option("--image", "-i", metavar="FILE", help="Picture; may be repeated.")
    ],
    question: Annotated[str, typer.Option("--question", "-q", help="The question.")],
    policy: Annotated[
        Path | None,
        typer.Option("--policy", metavar="FOLDER", help=f"Checkpoint; default: {DEFAULT_POLICY}."),
    ] = None,
    policy_url: Annotated[
        str | None,
        typer.Option("--policy-url", metavar="URL", help="OpenAI-compatible server of the policy."),
    ] = None,
    model: Annotated[str | None, typer.Option("--model", help="Name of the served policy.")] = None,
    api_key_env: Annotated[
        str | None, typer.Option("--api-key-env", metavar="NAME", help="Variable with the server's API key.")
    ] = None,
    chat_turns: Annotated[
        bool,
        typer.Option("--chat-turns", help="For servers other than vLLM: observations as user messages."),
    ] = False,
    endpoints: Annotated[
        Path | None, typer.Option("--endpoints", metavar="FILE", help="Where served models are: experts serve's file.")
    ] = None,
    registry: Annotated[
        list[Path] | None,
        typer.Option("--registry", metavar="PATH", help="YAML file or folder; may be repeated."),
    ] = None,
    prompt: Annotated[
        PromptStyle | None,
        typer.Option("--prompt", help="System prompt; default: none for a checkpoint, full for a server."),
    ] = None,
    horizon: Annotated[int, typer.Option("--horizon", help="Delegations at most.")] = 4,
    temperature: Annotated[float, typer.Option("--temperature", help="0 = greedy.", min=0.0, max=5.0)] = 0.0,
    seed: Annotated[int, typer.Option("--seed", help="Of sampling above temperature 0.")] = 0,
    deadline: Annotated[
        float, typer.Option("--deadline", help="Seconds for the whole answer.", min=1.0)
    ] = 300.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the trajectory as one JSON object.")] = False,
) -> None:
    """Answer a question on an image, turn by turn."""
    loaded = Registry.load(*registry or ())
    budget = Budget(horizon=horizon)
    style = prompt or ("full" if policy_url else "none")
    system = None if style == "none" or horizon == 0 else system_prompt(loaded, style, horizon)
    task = _task(image, question)
    if policy_url is not None:
        if policy is not None:
            raise UserFault("--policy and --policy-url are both given", fix="give one of them")
        if not model:
            raise UserFault("--policy-url needs the served model's name", fix="add --model NAME")
        chosen = _server(policy_url, model, temperature, system, api_key_env, chat_turns)
    else:
        chosen = _checkpoint(policy, temperature, system, as_json)
    console = Console(soft_wrap=True)
    show = None if as_json else lambda event: _show(console, event)
    made = asyncio.run(_run(task, chosen, loaded, endpoints, budget, seed, deadline, show))
    _report(made, console, as_json)


async def _run(
    task: Any,
    policy: Policy,
    registry: Registry,
    endpoints: Path | None,
    budget: Budget,
    seed: int,
    deadline_s: float,
    show: Any,
) -> Trajectory:
    from experts.pool import ExpertPool

    try:
        async with ExpertPool(registry, endpoints=endpoints) as pool:
            return await run_episode(
                task,
                policy,
                pool,
                budget=budget,
                seed=seed,
                episode_deadline_s=deadline_s,
                turn_deadline_s=deadline_s,
                on_event=show,
            )
    finally:
        await policy.aclose()


def _task(images: list[Path], question: str) -> Any:
    from experts.images import load_picture
    from orchestrator.task import Task

    if not any(char.isprintable() and not char.isspace() for char in question):
        raise UserFault("the question is empty", where="--question", fix="ask something")
    pictures = tuple(load_picture(path, where="--image") for path in images)
    return Task("command-line", "command_line", "", question, pictures)


def _server(
    url: str, model: str, temperature: float, system: str | None, api_key_env: str | None, chat_turns: bool
) -> Policy:
    from orchestrator.policies.openai_server import OpenAIServerPolicy

    return OpenAIServerPolicy(
        url,
        model,
        temperature=temperature,
        system=system,
        api_key_env=api_key_env,
        style="chat" if chat_turns else "inline",
        extensions=not chat_turns,
    )


def _checkpoint(folder: Path | None, temperature: float, system: str | None, quiet: bool = False) -> Policy:
    path = folder or DEFAULT_POLICY
    if not (path / "config.json").is_file():
        fix = (
            "run `make demo` first; it trains one"
            if folder is None
            else "give a folder with config.json in it"
        )
        raise UserFault(
            f"no policy checkpoint in {path}", where="--policy", fix=f"{fix}, or use --policy-url"
        )
    if not quiet:
        print(plain(f"loading the policy {path}"), file=sys.stderr, flush=True)
    from orchestrator.policies.in_process import InProcessPolicy

    return InProcessPolicy(path, temperature, system=system)


def _show(console: Console, event: Event) -> None:
    """One step; foreign text is neither read as markup nor steers the terminal."""
    if event.kind == "turn":
        turn = event.episode.turns[-1]
        _line(console, f"turn {len(event.episode.turns)}", "bold cyan", _action_line(turn))
        if isinstance(turn.action, Search) and event.episode.task is not None:
            from eval.facts import same_question

            if not same_question(turn.action.query, event.episode.task.question):
                _line(console, "", "yellow", "(asks in other words than you did)")
        if turn.forged:
            _line(console, "", "yellow", "(an observation of the policy's own making was cut off)")
    elif event.kind == "observation":
        seen = event.episode.turns[-1].observation
        if seen is None:
            return
        via = f" via {seen.subskill} ({seen.reason})" if seen.subskill else ""
        _line(console, "", "dim", f"{seen.outcome.value}{via}, {seen.latency_s:.2f} s")
        _line(console, "  reads", "green" if seen.outcome == "ok" else "yellow", seen.text.strip())


def _action_line(turn: Turn) -> str:
    match turn.action:
        case Search(expert, skill, query):
            return f"asks {expert} under {skill}: {query}"
        case Answer():
            return "answers"
        case Malformed(kind, detail):
            return f"malformed ({kind}): {detail} It wrote: {turn.text.strip()[:200]!r}"


def _line(console: Console, head: str, style: str, body: str) -> None:
    console.print(Text.assemble((f"{head:<8}", style), plain(body)))


def _report(made: Trajectory, console: Console, as_json: bool) -> None:
    if as_json:
        print(made.to_line())
    elif made.answer is not None:
        console.print(Text.assemble(("answer  ", "bold green"), plain(made.answer)))
    if made.error:
        print(plain(f"warning: {made.error}"), file=sys.stderr)
    if made.answer is None:
        print(f"no answer: the episode stopped as {made.stop}", file=sys.stderr)
        raise typer.Exit(1)
