"""From the Level-1 skill that the policy names to one of its Level-2 subskills (paper, C.3), with the reason.

- One subskill: it is taken (`only`).
- `keyword`: each keyword that stands in the question as whole words counts once. Most hits win; then the
  longest keyword; then the order in the file. Without a hit: the default.
- `classify`: the expert is shown the subskills and replies with a label, which must be exactly one of the
  names (or aliases) after normalisation. Anything else, or no reply: the default.
- `auto`: keywords; without a hit classify; in doubt the default.

Reasons: `only`, `keyword:<the longest keyword found>`, `classifier`, `default`, `default:no reply`,
`default:unmapped reply`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from registry.schema import Skill, Subskill
from registry.words import fold, holds

_WRAPPING = " \t\r\n\"'`*.,;!。，“”‘’「」《》()[]"

Ask = Callable[[str], Awaitable[str | None]]


@dataclass(frozen=True)
class Route:
    """The chosen subskill and why."""

    subskill: Subskill
    reason: str


def route_keyword(skill: Skill, question: str) -> Route | None:
    """The subskill whose keywords the question holds, or None without a hit. Pure."""
    text = fold(question)
    best: tuple[int, int] = (0, 0)
    route: Route | None = None
    for subskill in skill.subskills:
        hits = {folded: keyword for keyword in subskill.keywords if holds(text, folded := fold(keyword))}
        longest = max(hits, key=len, default="")
        if (len(hits), len(longest)) > best:
            best = (len(hits), len(longest))
            route = Route(subskill, f"keyword:{hits[longest]}")
    return route


def classify_prompt(skill: Skill, question: str) -> str:
    """The text that asks an expert for a label. One line each for task and question, as in all briefs."""
    lines = ["Task: classify", f"Question: {' '.join(question.split())}", "Which method fits this question?"]
    lines += [f"- {subskill.name}: {subskill.description}" for subskill in skill.subskills]
    labels = " | ".join(subskill.name for subskill in skill.subskills)
    return "\n".join([*lines, f"Reply with one of these labels and nothing else: {labels}"])


def map_label(skill: Skill, reply: str) -> Subskill | None:
    """The subskill that the reply names, or None. Quotes and a full stop around the label are allowed."""
    return skill.find(reply) or skill.find(reply.strip(_WRAPPING))


async def route(skill: Skill, question: str, ask: Ask | None) -> Route:
    """Choose a subskill. `ask` puts a text to the expert and returns its reply or None; it may be left out.

    Without `ask` a skill of any routing goes by keywords, then the default.
    """
    if len(skill.subskills) == 1:
        return Route(skill.subskills[0], "only")
    if skill.routing != "classify" or ask is None:
        found = route_keyword(skill, question)
        if found is not None:
            return found
    if skill.routing == "keyword" or ask is None:
        return Route(skill.default_subskill(), "default")
    reply = await ask(classify_prompt(skill, question))
    if reply is None or not reply.strip():
        return Route(skill.default_subskill(), "default:no reply")
    chosen = map_label(skill, reply)
    if chosen is None:
        return Route(skill.default_subskill(), "default:unmapped reply")
    return Route(chosen, "classifier")
