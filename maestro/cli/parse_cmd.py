"""`maestro parse`: what one policy turn asks for.

    echo "<search> Chart-Reader@@Chart_Problem_Solver: How high is the bar? </search>" | maestro parse --json

Reads one turn on standard input; any text gives an action, names are checked against the registry. With
`--json`: {"action": "search", "expert", "skill", "query"} | {"action": "answer", "text"} |
{"action": "malformed", "kind", "detail"}.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from maestro.cli.plain_text import plain
from orchestrator.action import action_to_json
from orchestrator.protocol import parse_turn
from registry.errors import UserFault
from registry.registry import Registry

MAX_BYTES = 1 << 24  # no policy writes a longer turn


def parse(
    registry: Annotated[
        list[Path] | None,
        typer.Option(
            "--registry",
            metavar="PATH",
            help="A YAML file or a folder of them; may be repeated, later ones extend earlier ones.",
        ),
    ] = None,
    stopped: Annotated[
        str | None,
        typer.Option(
            "--stopped",
            metavar="TEXT",
            help="The stop string that the server removed from the end, or its finish reason (stop).",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> None:
    """Read one policy turn on standard input and print its action."""
    content = sys.stdin.buffer.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise UserFault(f"a turn of more than {MAX_BYTES} bytes is not read", where="standard input")
    text = content.decode("utf-8", "replace")
    fields = action_to_json(parse_turn(text, Registry.load(*registry or ()), stopped=stopped))
    fields = {"action": fields.pop("type"), **fields}
    if as_json:
        print(json.dumps(fields, ensure_ascii=False))
        return
    for name, value in fields.items():
        print(plain(f"{name:<7} {value}"))
