"""An expert that plays written steps: to run a harness end to end without any model.

The one idea: what to say follows from the conversation alone (which scenario it is, how many turns and steps it has
had), so one instance serves any number of sessions at once and keeps nothing between calls.

    script.json: {"scenarios": [{"find": "words of the first message", "turns": [["first step", "second step"], ...]}]}
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from orchestrator.serving.brief import MESSAGES_HEAD
from registry.errors import UserFault

NOTHING_WRITTEN = "Nothing more is written for this conversation."


class ScriptedExpert:
    """`script`: path of the JSON file above. The longest `find` that stands in a conversation's first system or user
    message decides. Raises UserFault for a file that holds no such script."""

    def __init__(self, script: str) -> None:
        try:
            data = json.loads(Path(script).read_text(encoding="utf-8"))
            found = [(str(s["find"]), [[str(step) for step in turn] for turn in s["turns"]]) for s in data["scenarios"]]
        except (OSError, ValueError, KeyError, TypeError) as error:
            fix = 'write {"scenarios": [{"find": "...", "turns": [["..."]]}]}'
            raise UserFault(f"no script of an expert: {error}", where=script, fix=fix) from None
        self._scenarios = sorted(found, key=lambda scenario: -len(scenario[0]))

    def answer(self, prompt: str, pictures: Sequence[Any]) -> str:
        """The next written step; a plain sentence where none is written."""
        messages = conversation_in(prompt)
        first = "\n".join(str(m.get("content")) for m in messages if m.get("role") in ("system", "user"))
        for find, turns in self._scenarios:
            if find in first:
                users = [i for i, message in enumerate(messages) if message.get("role") == "user"]
                begun = users[-1] if users else 0
                turn = max(len(users), 1) - 1
                step = sum(message.get("role") == "assistant" for message in messages[begun:])
                if turn < len(turns) and step < len(turns[turn]):
                    return turns[turn][step]
                break
        return NOTHING_WRITTEN


def conversation_in(prompt: str) -> list[Mapping[str, Any]]:
    """The messages of an expert's brief; an empty list where it holds none."""
    lines = iter(prompt.split("\n"))
    if MESSAGES_HEAD not in lines:  # leaves the iterator just behind the head
        return []
    messages = []
    for line in lines:
        try:
            message = json.loads(line)
        except ValueError:
            break
        if not isinstance(message, dict):
            break
        messages.append(message)
    return messages
