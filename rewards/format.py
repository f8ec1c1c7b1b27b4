"""The format reward: 0 for an episode in the protocol's form, -1 for any other.

In form is an episode that holds exactly one answer, at least one well-formed call that names a known expert
and a known skill with a real input, and balanced tags. Only policy-written text is looked at.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from rewards.read_answer import answers, without_thoughts
from rewards.turns import Turn

_TAG = re.compile(r"<(/?)(think|search|information|answer)>")
_WORD = re.compile(r"\w")


def format_reward(turns: Sequence[Turn], min_calls: int = 1) -> tuple[float, str]:
    """(0.0 or -1.0, why). Faults are looked for in the order answer, calls, tags; the first is told.

    min_calls: well-formed calls that an episode must hold.
    """
    given = answers(turn.text for turn in turns)
    if len(given) != 1:
        return -1.0, f"{len(given) or 'no'} answer{'' if len(given) == 1 else 's'} instead of exactly one"
    if not turns or turns[-1].action != "answer":
        return -1.0, "the episode does not end with its answer"
    calls = sum(well_formed_call(turn) for turn in turns)
    if calls < min_calls:
        found = f"{calls} of {min_calls} well-formed calls" if calls else "no well-formed call"
        return -1.0, f"{found} of a known expert and skill with a real input"
    for number, turn in enumerate(turns, 1):
        fault = tag_fault(turn.text)
        if fault:
            return -1.0, f"turn {number}: {fault}"
    return 0.0, f"one answer, {'a well-formed call, ' if calls else ''}balanced tags"


def well_formed_call(turn: Turn) -> bool:
    """Whether the turn is a call with a real input.

    Names were checked when the turn was read: a call of an unknown expert or skill is recorded as malformed.
    """
    known = turn.action == "search" and bool(turn.expert.strip()) and bool(turn.skill.strip())
    return known and _WORD.search(turn.query) is not None and turn.outcome != "invalid_action"


def tag_fault(text: str) -> str | None:
    """What is wrong with the tags of one turn's text, or None when each is closed, in order.

    Thoughts are free text, and what stands behind the first complete call is not the policy's turn any more.
    """
    stack: list[str] = []
    for match in _TAG.finditer(without_thoughts(text)):
        closing, tag = match.groups()
        if tag == "information":
            return "the policy wrote an observation tag"
        if not closing:
            stack.append(tag)
        elif not stack or stack.pop() != tag:
            return f"</{tag}> closes nothing"
        elif tag == "search" and not stack:
            return None
    return f"<{stack[-1]}> is not closed" if stack else None
