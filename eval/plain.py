"""An expert without a skill: the question as it stands, and how good each expert is at that.

The one idea: "no skill" is itself a skill with one step that asks the question and nothing else, so that it runs
through the same pool, cache and records. A registry (or ``spare``) that defines a skill of the same name says what
asking without a skill means for its experts.
"""

from __future__ import annotations

import json
from pathlib import Path

from eval.matrix import Matrix, Pair
from eval.row_digest import KEY, check_measured
from eval.whole_file import write_whole
from registry.errors import UnknownName
from registry.registry import Registry
from registry.schema import Procedure, Skill, Step, Subskill

PLAIN_NAME = "Plain Question"
FILE = "experts.json"
_PLAIN = Skill(
    name=PLAIN_NAME,
    description="The question as it stands.",
    subskills=(
        Subskill(
            name="Ask",
            description="Ask it and nothing else.",
            procedure=Procedure(steps=(Step(ask="{{ question }}"),)),
        ),
    ),
)


def plain_skill(*registries: Registry) -> Skill:
    """The skill that stands for none: the first registry's that defines one, else the question alone."""
    for registry in registries:
        try:
            return registry.skill(PLAIN_NAME)
        except UnknownName:
            continue
    return _PLAIN


def plain_pairs(registry: Registry, plain: Skill) -> tuple[Pair, ...]:
    """Every expert without a skill."""
    return tuple((expert.name, plain.name) for expert in registry.experts)


def save_plain(folder: Path, rows: int, matrix: Matrix, digest: str) -> None:
    """Keep what was measured on ``rows`` validation rows of this digest."""
    record = {"rows": rows, KEY: digest, **matrix.to_json()}
    write_whole(folder / FILE, json.dumps(record, indent=1, ensure_ascii=False) + "\n")


def load_plain(folder: Path, rows: int, digest: str) -> Matrix | None:
    """What the folder keeps, if it was measured on that many rows. Raises UserFault where those were others."""
    try:
        saved = json.loads((folder / FILE).read_text(encoding="utf-8"))
        matrix = Matrix.from_json(saved) if saved["rows"] == rows else None
    except (OSError, ValueError, KeyError):
        return None
    if matrix is not None:
        check_measured(saved, digest, folder / FILE)
    return matrix


def best_expert(matrix: Matrix) -> str:
    """The expert whose best skill for each family gives the highest mean over families: a skill is chosen for it
    family by family, which is the kindest measure of an expert that must do everything. Ties keep registry order."""

    def kindest(expert: str) -> float:
        own = [pair for pair in matrix.pairs if pair[0] == expert]
        return sum(max(matrix.accuracy(pair, family) or 0.0 for pair in own) for family in matrix.families)

    return max(matrix.experts, key=kindest)
