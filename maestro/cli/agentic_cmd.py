"""`maestro serve`: the orchestrator as a chat model with tools, for harnesses and one's own programs.

    maestro serve --registry paper --registry agentic --policy-url http://127.0.0.1:8000 --model my-policy
    maestro serve --registry paper --registry agentic --rule keyword
    maestro serve --registry mine.yaml --registry agentic --pair "My-Expert@@Function_Calling"

A top-level command, because any OpenAI client can use the server, not evaluations alone.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from registry.errors import UserFault

if TYPE_CHECKING:
    from aiohttp import web

    from orchestrator.policy import Policy
    from orchestrator.serving.app import ChatServer
    from orchestrator.trajectory import Trajectory
    from registry.registry import Registry

_LOOPBACK = ("127.0.0.1", "::1", "localhost")


def serve(
    registry: Annotated[
        list[Path] | None, typer.Option("--registry", metavar="PATH", help="YAML file, folder or name; repeatable.")
    ] = None,
    endpoints: Annotated[
        Path | None, typer.Option("--endpoints", metavar="FILE", help="Where served experts are: experts serve's file.")
    ] = None,
    policy: Annotated[Path | None, typer.Option("--policy", metavar="FOLDER", help="Policy: a checkpoint.")] = None,
    policy_url: Annotated[
        str | None, typer.Option("--policy-url", metavar="URL", help="Policy: an OpenAI-compatible server.")
    ] = None,
    model: Annotated[str | None, typer.Option("--model", help="With --policy-url: the model's name there.")] = None,
    policy_key_env: Annotated[
        str | None, typer.Option("--policy-key-env", metavar="NAME", help="Variable with that server's key.")
    ] = None,
    chat_turns: Annotated[
        bool, typer.Option("--chat-turns", help="With --policy-url: for servers other than vLLM.")
    ] = False,
    pair: Annotated[
        str | None, typer.Option("--pair", metavar="EXPERT@@SKILL", help="Policy: always this pair.")
    ] = None,
    rule: Annotated[
        Literal["keyword", "random_pair"] | None, typer.Option("--rule", help="Policy: a rule without a model.")
    ] = None,
    prompt: Annotated[
        Literal["none", "compact", "full"] | None,
        typer.Option("--prompt", help="System prompt; default: none for a checkpoint, full for a server."),
    ] = None,
    temperature: Annotated[float, typer.Option("--temperature", min=0.0, help="Of the policy; 0 = greedy.")] = 0.0,
    horizon: Annotated[int, typer.Option("--horizon", min=0, help="Delegations a step at most.")] = 4,
    max_turn_tokens: Annotated[int, typer.Option("--max-turn-tokens", min=1, help="Of one policy turn.")] = 2048,
    max_observation_tokens: Annotated[
        int, typer.Option("--max-observation-tokens", min=32, help="Of a reply as the policy sees it.")
    ] = 1024,
    source: Annotated[
        Literal["expert", "answer"],
        typer.Option("--source", help="A step is the last expert's reply, or the policy's answer."),
    ] = "expert",
    seed: Annotated[int, typer.Option("--seed", help="For requests that bring none.")] = 0,
    host: Annotated[str, typer.Option("--host", help="Another than loopback needs --api-key-env.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="0 = any free one.")] = 8765,
    name: Annotated[str, typer.Option("--name", help="The model's name in requests.")] = "maestro",
    api_key_env: Annotated[
        str | None, typer.Option("--api-key-env", metavar="NAME", help="Variable with the key that clients must show.")
    ] = None,
    concurrency: Annotated[int, typer.Option("--concurrency", min=1, help="Steps at once.")] = 16,
    waiting: Annotated[int, typer.Option("--waiting", min=0, help="Steps that may wait; more get 429.")] = 64,
    deadline: Annotated[float, typer.Option("--deadline", min=0.1, metavar="S", help="Seconds for one step.")] = 300.0,
    max_body_mb: Annotated[float, typer.Option("--max-body-mb", min=0.01, help="Of one request.")] = 8.0,
    view_chars: Annotated[int, typer.Option("--view-chars", min=500, help="Of the policy's view of a step.")] = 4000,
    record: Annotated[
        Path | None, typer.Option("--record", metavar="FILE", help="Append each step's trajectory (JSON lines).")
    ] = None,
) -> None:
    """Serve the orchestrator as an OpenAI-compatible chat model: messages and tools in, the next step out."""
    from orchestrator.budget import Budget
    from orchestrator.serving.app import ChatServer
    from orchestrator.serving.limits import ServingLimits
    from registry.registry import Registry

    given = {"--policy": policy, "--policy-url": policy_url, "--pair": pair, "--rule": rule}
    chosen = [option for option, value in given.items() if value is not None]
    if len(chosen) != 1:
        what = f"{' and '.join(chosen)} are both given" if chosen else "no policy is given"
        raise UserFault(what, where="maestro serve", fix=f"give one of {', '.join(given)}")
    if host not in _LOOPBACK and api_key_env is None:
        raise UserFault(
            f"--host {host} lets other machines in, without a key", fix="add --api-key-env NAME, or leave --host out"
        )
    key = os.environ.get(api_key_env) if api_key_env else None
    if api_key_env and not key:
        raise UserFault(f"the environment variable {api_key_env} is not set", where="--api-key-env", fix="put a key in")
    loaded = Registry.load(*registry or ())
    budget = Budget(
        horizon=horizon,
        max_prompt_tokens=16384,
        max_turn_tokens=max_turn_tokens,
        max_observation_tokens=max_observation_tokens,
        max_trajectory_tokens=(horizon + 1) * (max_turn_tokens + max_observation_tokens) + 1,
    )
    limits = ServingLimits(
        concurrency=concurrency,
        waiting=waiting,
        step_s=deadline,
        body_bytes=int(max_body_mb * 1024 * 1024),
        view_chars=view_chars,
    )
    style = prompt or ("full" if policy_url else "none")
    built: Policy
    if pair is not None:
        built = _pair(pair, loaded)
    elif rule is not None:
        built = _rule(rule, loaded, seed)
    else:
        system = _system(loaded, style, horizon)
        if policy_url is not None:
            if not model:
                raise UserFault("--policy-url needs the served model's name", fix="add --model NAME")
            from maestro.cli.answer_cmd import _server

            built = _server(policy_url, model, temperature, system, policy_key_env, chat_turns)
        else:
            from maestro.cli.answer_cmd import _checkpoint

            built = _checkpoint(policy, temperature, system)

    def make(pool: Any, write: Callable[[Trajectory], None] | None) -> ChatServer:
        return ChatServer(built, pool, name, budget, limits, source, seed, key, write)

    asyncio.run(_run(make, built, loaded, endpoints, record, host, port, name))


async def _run(
    make: Callable[..., ChatServer],
    policy: Policy,
    registry: Registry,
    endpoints: Path | None,
    record: Path | None,
    host: str,
    port: int,
    name: str,
) -> None:
    """Serve until SIGINT or SIGTERM; steps under way are then given up."""
    from aiohttp import web

    from experts.pool import ExpertPool

    end = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, end.set)
    file = None if record is None else _open(record)
    try:
        async with ExpertPool(registry, endpoints=endpoints) as pool:
            await pool.prepare()
            server = make(pool, None if file is None else lambda made: print(made.to_line(), file=file, flush=True))
            runner = web.AppRunner(
                server.application(), access_log=None, handler_cancellation=True, shutdown_timeout=2.0
            )
            await runner.setup()
            try:
                site = await _listen(runner, host, port)
                print(json.dumps({"url": f"{site}/v1", "model": name}), flush=True)
                await end.wait()
                print("ending: steps under way are given up", file=sys.stderr)
            finally:
                await runner.cleanup()
    finally:
        await policy.aclose()
        if file is not None:
            file.close()


async def _listen(runner: web.AppRunner, host: str, port: int) -> str:
    """Listen; the server's address. Raises UserFault where that cannot be."""
    from aiohttp import web

    try:
        await web.TCPSite(runner, host, port).start()
    except OSError as error:
        raise UserFault(
            f"cannot listen on {host}:{port}: {error.strerror or error}", where="--port", fix="give another --port"
        ) from None
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{runner.addresses[0][1]}"


def _open(record: Path) -> Any:
    record.parent.mkdir(parents=True, exist_ok=True)
    return record.open("a", encoding="utf-8")


def _system(registry: Registry, style: Literal["none", "compact", "full"], horizon: int) -> str | None:
    from orchestrator.serving.brief import AGENT_NOTE
    from registry.prompt import system_prompt

    if style == "none" or horizon == 0:
        return None
    return f"{system_prompt(registry, style, horizon)}\n\n{AGENT_NOTE}"


def _pair(pair: str, registry: Registry) -> Policy:
    from orchestrator.policies.fixed_pair import FixedPair
    from registry.errors import UnknownName

    expert, separator, skill = pair.partition("@@")
    if not separator:
        raise UserFault(f"{pair!r} is no pair", where="--pair", fix="write EXPERT@@SKILL")
    try:
        return FixedPair(registry.expert(expert.strip()).name, registry.skill(skill.strip()).name)
    except UnknownName as unknown:
        raise UserFault(str(unknown), where="--pair", fix="see `maestro registry show`") from None


def _rule(rule: str, registry: Registry, seed: int) -> Policy:
    from orchestrator.policies.keyword_router import KeywordRouter
    from orchestrator.policies.random_pair import RandomPair

    return KeywordRouter(registry) if rule == "keyword" else RandomPair(registry, seed=seed)
