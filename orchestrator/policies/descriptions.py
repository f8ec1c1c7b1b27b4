"""The texts by which rules choose: what the registry says of an expert and of a Level-1 skill."""

from __future__ import annotations

from registry.schema import Expert, Skill


def expert_text(expert: Expert) -> str:
    """Name, aliases and description."""
    return " ".join([expert.name, *expert.aliases, expert.description])


def skill_text(skill: Skill) -> str:
    """Names, aliases and descriptions of the skill and its subskills."""
    inner = [text for sub in skill.subskills for text in (sub.name, *sub.aliases, sub.description)]
    return " ".join([skill.name, *skill.aliases, skill.description, *inner])
