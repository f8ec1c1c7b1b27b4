"""The model card: how a policy was trained, in Markdown, for people who never saw the run.

One idea: everything comes from the run's own files; what is a place on this machine (paths, addresses) becomes a last
name or is left out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from train.export.choose import Choice

_NO_SETTING = frozenset(("run", "resume", "endpoints", "watch", "ray", "name"))
_PLACE = re.compile(r"^(~|[A-Za-z]:\\|/|\.{1,2}/|\w[\w+.-]*://)")
_MORE_PLACES = re.compile(r"(?:\w+://|(?<![\w.])[~.]{0,2}/)[^\s'\",\]}]+")
Figure = tuple[str, float, tuple[float, float] | None, int]
"""One measured number: its name, value, 95 % interval, number of questions."""


def model_card(
    config: Mapping[str, Any],
    choice: Choice,
    *,
    versions: Mapping[str, str],
    parameters: int,
    registry: Mapping[str, Any] | None,
    last: Mapping[str, Any] | None,
    benchmark: str = "",
    figures: list[Figure] | None = None,
) -> str:
    """The card's text. config: the run's. registry: {"digest"} and, where known, its size ("experts", "skills").

    last: the record of the step. figures: what was measured on `benchmark` with exactly this policy.
    """
    start = config.get("policy")
    base = bare(str(start)) if start else "a tiny Qwen3-VL, built and cold-started by this project"
    parts = [
        "---\nlibrary_name: transformers\npipeline_tag: image-text-to-text\ntags:\n- maestro\n- grpo\n---",
        f"# {_line(bare(str(config.get('name') or 'policy')))}",
        "An orchestrator: it answers questions about images by delegating to expert-skill pairs over several turns. It "
        "was trained with GRPO on outcome rewards; the experts it calls are not in this folder.",
        _table(
            ("", ""),
            [
                ("started from", base),
                ("update steps", str(choice.step)),
                ("parameters", f"{parameters:,}"),
                *_chosen(choice),
                *_registry(registry),
            ],
        ),
        '## Use\n```\nvllm serve FOLDER\nmaestro answer --image PICTURE --policy FOLDER "a question"\n```\n'
        "The registry it was trained with must be given to `maestro` where it is not the default one.",
        _measured(benchmark, figures, last),
        "## Settings\n" + _table(("key", "value"), settings(config)),
        "## Versions\n" + _table(("package", "version"), sorted(versions.items())),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def settings(config: Mapping[str, Any]) -> list[tuple[str, str]]:
    """(dotted key, value) of everything that made the policy; places are reduced to a last name."""
    rows: list[tuple[str, str]] = []

    def walk(section: Mapping[str, Any], prefix: str) -> None:
        for key, value in section.items():
            if not prefix and key in _NO_SETTING:
                continue
            if isinstance(value, Mapping):
                walk(value, f"{prefix}{key}.")
            else:
                rows.append((prefix + str(key), _shown(value)))

    walk(config, "")
    return rows


def bare(text: str) -> str:
    """A text without places: a path becomes its last name, an address `(address)`."""
    if _PLACE.match(text) and " " not in text:
        return "(address)" if "://" in text else PurePath(text.replace("\\", "/")).name
    return _MORE_PLACES.sub(lambda m: bare(m[0]) if _PLACE.match(m[0]) else m[0], text)


def _shown(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(_shown(item) for item in value) or "-"
    if value is None:
        return "-"
    if isinstance(value, bool):
        return str(value).lower()
    return bare(str(value))


def _chosen(choice: Choice) -> list[tuple[str, str]]:
    if choice.best is None:
        return []
    return [("chosen as the best by", f"{choice.best['by']}, {choice.best['figure']:.3f}")]


def _registry(registry: Mapping[str, Any] | None) -> list[tuple[str, str]]:
    if registry is None:
        return []
    counts = f"{registry['experts']} experts, {registry['skills']} skills, " if "experts" in registry else ""
    return [("registry", f"{counts}SHA-256 {registry['digest']}")]


def _measured(benchmark: str, figures: list[Figure] | None, last: Mapping[str, Any] | None) -> str:
    text = ""
    if figures:
        rows = [
            (name, f"{value:.3f}", f"{span[0]:.3f} to {span[1]:.3f}" if span else "-", str(count))
            for name, value, span, count in figures
        ]
        text = f"On {_line(benchmark)}:\n\n" + _table(("", "value", "95 % interval", "questions"), rows)
    trained = []
    for name, key in (("reward", "reward"), ("accuracy", "accuracy"), ("malformed share", "malformed")):
        if last is not None and isinstance(last.get(key), int | float):
            trained.append((f"{name} of the training rollouts", f"{last[key]:.3f}"))
    validation = (last or {}).get("validation") or {}
    if isinstance(validation.get("accuracy"), int | float):
        trained.append(("validation accuracy", f"{validation['accuracy']:.3f} ({validation.get('rollouts')} rollouts)"))
    if trained:
        text += ("\n\n" if text else "") + f"In step {(last or {})['step']}:\n\n" + _table(("", "value"), trained)
    return "## Measured\n" + (text or "Nothing was measured with this policy.")


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    lines += ["| " + " | ".join(_line(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines)


def _line(text: str) -> str:
    """One cell: names come from files, and must not break the table or speak HTML."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")[:500]
