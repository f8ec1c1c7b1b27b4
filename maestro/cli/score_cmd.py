"""`maestro score`: one answer against one row's gold answer.

maestro score --benchmark chartqa --gold 1234 --answer "1,234"
maestro score --benchmark vstar --gold B --answer "(B)" --choices '["red", "blue"]' --json
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated, Any

import typer

from maestro.cli.plain_text import plain
from registry.errors import UserFault

_MOST_OPTIONS = 26  # letters


def score(
    benchmark: Annotated[str, typer.Option("--benchmark", "-b", help="Name of the benchmark, or of a rule.")],
    gold: Annotated[list[str], typer.Option("--gold", "-g", help="The right answer; repeat for several.")],
    answer: Annotated[str, typer.Option("--answer", "-a", help="The answer to score.")],
    choices: Annotated[
        str | None, typer.Option("--choices", help='Options of the row, a JSON list: \'["red", "blue"]\'.')
    ] = None,
    group: Annotated[
        str | None, typer.Option("--group", help="Task group or family, where answer formats differ by it.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> None:
    """Score one answer by its benchmark's rule: value, the answer as read, and why."""
    import rewards

    options = _choices(choices)
    try:
        result = rewards.score(benchmark, gold, answer, choices=options, group=group)
    except ValueError as error:
        raise _fault(str(error), benchmark, options) from None
    if as_json:
        print(json.dumps(asdict(result), ensure_ascii=False))
        return
    print(plain(f"{result.value:g}  {result.explanation}"))


def _fault(said: str, benchmark: str, options: list[str] | None) -> UserFault:
    """The rule's refusal with the option that it is about."""
    from rewards.benchmarks import rule_name

    try:
        rule = rule_name(benchmark)
    except ValueError:
        what, _, hint = said.rpartition(": ")
        return UserFault(what, where="--benchmark", fix=hint)
    if not options:
        fix = f"write it as rows of {rule} have it (docs/rewards.md), with --choices where they have options"
        return UserFault(said, where="--gold", fix=fix)
    if len(options) > _MOST_OPTIONS:
        return UserFault(said, where="--choices", fix=f"give the row's options, {_MOST_OPTIONS} at most")
    fix = f"give a letter from A to {chr(ord('A') + len(options) - 1)} or the text of an option, or mend --choices"
    return UserFault(said, where="--gold", fix=fix)


def _choices(text: str | None) -> list[str] | None:
    """The options out of a JSON list of texts and numbers, or of an object by letter ({"A": "red", ...})."""
    if text is None:
        return None
    try:
        found: Any = json.loads(text)
    except json.JSONDecodeError as error:
        raise UserFault(
            f"--choices is not JSON: {error}",
            where="--choices",
            fix='write a list such as \'["red", "blue"]\'',
        ) from None
    if isinstance(found, dict):
        found = list(found.values())
    if found is None:
        return None
    if not isinstance(found, list) or not all(isinstance(one, str | int | float) for one in found):
        raise UserFault(
            "--choices is not a list of texts",
            where="--choices",
            fix='write a list such as \'["red", "blue"]\'',
        )
    return [str(one) for one in found]
