"""The wire format between policy and world: reading one policy turn.

The one idea: `parse_turn` is total. Any string gives an action, and the border of a turn is the first closing
`</search>` or `</answer>`, wherever a server with stop strings would have stopped; what stands behind it
never acts.

    <think> free text </think> <search> Expert@@Skill: sub-question </search>
    <think> free text </think> <answer> text </answer>

Reading rules:
- A closed `<think>` block is skipped, and so is everything before a `</think>` whose opening stands in the
  prompt (templates of thinking models). In a think block that never closes the first complete action counts.
- A call is split at the first `@@`, then at the first colon after it; full-width `＠＠`, `：` are too.
- Tags are exact: lower case, no spaces inside. Another protocol tag inside an action makes it `nested_tags`.
- `<answer></answer>` is an answer without text, not a malformed turn.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from orchestrator.action import Action, Answer, Malformed, Search
from orchestrator.neutralise import neutralise
from registry.errors import UnknownName
from registry.names import normalise

if TYPE_CHECKING:
    from registry.registry import Registry

STOP_STRINGS = ("</search>", "</answer>")
TAGS = ("think", "search", "information", "answer")

_TAG = re.compile(r"<(/?)(think|search|information|answer)>")
_ACTIONS = ("search", "answer")
_SEPARATOR = re.compile("[@＠﹫]{2}")
_COLON = re.compile("[:：﹕]")
# What prompts write where a name or a question belongs; copied by a policy it is no call.
_PLACEHOLDERS = {
    "expert": frozenset({"expert", "expert_name", "model", "model_name", "your_expert", "your_model"}),
    "skill": frozenset({"skill", "skill_name", "level1_skill", "level_1_skill", "your_skill"}),
    "query": frozenset({"input", "sub_question", "question", "query", "your_question", "task", "...", "…"}),
}
_LONGEST_NAME = 200  # characters; no registry holds longer ones
_BRACKETED = re.compile(r"[<{\[(].*[>}\])]", re.DOTALL)


@dataclass(frozen=True)
class _Reading:
    """Where the first action of a text lies. `problem` is a Malformed kind; offsets are in characters."""

    tag: str | None = None
    body: str = ""
    end: int | None = None
    problem: str | None = None


def action_end(text: str) -> int | None:
    """Character offset just behind the first closing action tag; None where there is none."""
    return _read(text).end


def missing_close(text: str, stopped: str | None) -> str:
    """The closing tag that a server removed when it stopped there, or the empty string.

    stopped: the stop string that the server names, or its finish reason `stop`; None or another reason means
    that nothing was removed.
    """
    if stopped not in (*STOP_STRINGS, "stop"):
        return ""
    reading = _read(text)
    if reading.end is not None or reading.tag is None:
        return ""
    closing = f"</{reading.tag}>"
    return closing if stopped in (closing, "stop") else ""


def parse_turn(text: str, registry: Registry | None = None, *, stopped: str | None = None) -> Action:
    """Reads one policy turn; the first complete action wins. Never raises for any text.

    registry: where given, names are checked and replaced by the canonical ones; unknown names give
    `Malformed("unknown_expert" | "unknown_skill")` with the nearest names in the detail.
    stopped: see `missing_close`; with it a turn whose stop text the server removed reads as if it stood
    there.
    """
    text += missing_close(text, stopped)
    reading = _read(text)
    if not text.strip():
        return Malformed("empty", "The turn is empty.")
    if reading.problem is not None:
        return Malformed(reading.problem, _PROBLEMS[reading.problem])
    if reading.end is None:
        kind = "unclosed_tag" if reading.tag else "no_action"
        return Malformed(kind, _PROBLEMS[kind])
    body = reading.body.strip()
    return Answer(body) if reading.tag == "answer" else _read_call(body, registry)


_PROBLEMS = {
    "no_action": "The turn holds neither a <search> nor an <answer>.",
    "unclosed_tag": "The turn opens a tag and never closes it.",
    "unopened_tag": "The turn closes a tag that it never opened.",
    "nested_tags": "An action holds another protocol tag; write one plain action per turn.",
}


def _read(text: str) -> _Reading:
    """One pass over the tags of a text."""
    tags = list(_TAG.finditer(text))
    think_ends = [i for i, tag in enumerate(tags) if tag.group() == "</think>"]
    start = _after_open_thought(tags)
    opened: re.Match[str] | None = None
    nested = False
    index = start
    upcoming = 0  # position in think_ends: those before `index` are behind us
    while index < len(tags):
        tag, closing, name = tags[index], bool(tags[index].group(1)), tags[index].group(2)
        if name == "think" and not closing and opened is None:
            while upcoming < len(think_ends) and think_ends[upcoming] <= index:
                upcoming += 1
            if upcoming < len(think_ends):
                index = think_ends[upcoming]
        elif name in _ACTIONS and closing:
            if opened is None:
                return _Reading(end=tag.end(), problem="unopened_tag")
            if nested or opened.group(2) != name:
                return _Reading(opened.group(2), end=tag.end(), problem="nested_tags")
            return _Reading(name, text[opened.end() : tag.start()], tag.end())
        elif opened is not None:
            nested = True
        elif name in _ACTIONS:
            opened = tag
        index += 1
    return _Reading(opened.group(2) if opened else None)


def _after_open_thought(tags: list[re.Match[str]]) -> int:
    """Index behind a `</think>` whose opening lies in the prompt: it comes before any `<think>` or closed
    action."""
    for i, tag in enumerate(tags):
        if tag.group() == "</think>":
            return i + 1
        if tag.group() == "<think>" or (tag.group(1) and tag.group(2) in _ACTIONS):
            return 0
    return 0


def _read_call(body: str, registry: Registry | None) -> Action:
    """`Expert@@Skill: question` to a Search."""
    separator = _SEPARATOR.search(body)
    if separator is None:
        return Malformed("missing_separator", "A call is written Expert@@Skill: question; the @@ is missing.")
    colon = _COLON.search(body, separator.end())
    if colon is None:
        return Malformed("missing_colon", "A call is written Expert@@Skill: question; the colon is missing.")
    parts = {
        "expert": body[: separator.start()].strip(),
        "skill": body[separator.end() : colon.start()].strip(),
        "query": body[colon.end() :].strip(),
    }
    for part, value in parts.items():
        if not value:
            return Malformed(f"empty_{part}", f"The {part} of the call is empty.")
    if registry is not None:
        known = _known_names(parts, registry)
        if isinstance(known, Malformed):
            return known
        parts |= known
    for part in ("query",) if registry is not None else ("expert", "skill", "query"):
        if _is_placeholder(part, parts[part]):
            return Malformed("placeholder", f"{parts[part]!r} is the pattern's own word, not a real {part}.")
    return Search(**parts)


def _known_names(parts: dict[str, str], registry: Registry) -> dict[str, str] | Malformed:
    """Canonical expert and skill names, or what is wrong with them."""
    known: dict[str, str] = {}
    for part, find in (("expert", registry.expert), ("skill", registry.skill)):
        if len(parts[part]) > _LONGEST_NAME:
            return Malformed(f"unknown_{part}", f"There is no {part} named {parts[part][:80]!r}...")
        try:
            known[part] = find(parts[part]).name
        except UnknownName as unknown:
            if _is_placeholder(part, parts[part]):
                return Malformed(
                    "placeholder", f"{parts[part]!r} is the pattern's own word, not a real {part}."
                )
            nearest = ", ".join(unknown.suggestions)
            hint = f" Nearest: {nearest}." if nearest else ""
            return Malformed(f"unknown_{part}", f"There is no {part} named {parts[part][:80]!r}.{hint}")
    return known


def _is_placeholder(part: str, value: str) -> bool:
    if part != "query" and _BRACKETED.fullmatch(value):
        return True
    if len(value) > _LONGEST_NAME:
        return False
    return value in _PLACEHOLDERS[part] or normalise(value.strip("<>{}[]()")) in _PLACEHOLDERS[part]


def render_information(text: str) -> str:
    """The block in which a policy reads foreign text: exactly one opening and one closing tag, text
    neutralised."""
    return f"\n<information> {neutralise(text).strip()} </information>\n"
