"""The paper's study, run, fills the paper's tables: no row that is ours stays a dash."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from test_tables import entry

from eval.redraw import remember
from eval.study import load_study
from eval.tables.build import build
from eval.tables.choice import OwnRow, own_rows
from eval.tables.paper import load_paper
from registry.registry import Registry

CONFIGS = Path(__file__).parents[2] / "configs" / "eval"
THEIRS = {
    "gemini_2.5_flash", "gemini_2.5_pro", "glm_4.6v", "kimi_k2.5", "qwen3_vl_32b", "deepeyes", "deepeyesv2", "thyme",
    "vtool_r1", "vts_v", "mathcoder_vl", "visual_arft", "visionreasoner", "pixelreasoner", "chain_of_focus",
}  # fmt: skip
"""Methods that this study does not run."""


def rows_of(name: str, folder: Path) -> list[OwnRow]:
    """The rows of a study whose every arm has run and was right on half of its questions."""
    for member in load_study(CONFIGS / name, [f"folder={folder}"]).members:
        definition = member.config.definition_if_any()
        ks = {str(k): 0.5 for k in member.config.pass_at}
        found = {arm: entry(0.5, pass_at_k=ks, sc_at_k=ks) for arm in member.config.arms}
        record = {
            "benchmark": member.config.benchmark if definition is None else definition.name,
            "seed": 0, "status": "complete", "rows": {"test": 100},
            "before": found.pop("before", None), "after": found.pop("after", None), "baselines": found,
        }  # fmt: skip
        member.folder.mkdir(parents=True)
        (member.folder / "results.json").write_text(json.dumps(record))
        remember(member.folder, member.config, None, {"registry": Registry.load(*member.registry).digest})
    return own_rows(load_paper(), [folder])


@pytest.fixture(scope="module")
def papers(tmp_path_factory: pytest.TempPathFactory) -> list[OwnRow]:
    return rows_of("study_paper.yaml", tmp_path_factory.mktemp("study") / "study-paper")


@pytest.mark.parametrize("number", [1, 2, 7, 8, 9, 10, 11])
def test_every_row_of_the_papers_tables_that_is_ours_has_all_its_benchmarks(papers: list[OwnRow], number: int) -> None:
    paper = load_paper()
    [table] = paper.choose([number])
    filled = {row.role: set(row.runs) for row in papers if row.role is not None}
    wanted = [role for role in table.rows if role not in THEIRS]
    assert {role: set(table.benchmarks) - filled.get(role, set()) for role in wanted} == {
        role: set() for role in wanted
    }
    ours = {row.label for row in papers if row.role in wanted}
    shown = [line for line in build(paper, table, papers).lines if line.label in ours]
    assert {line.label for line in shown} == ours
    averages = {line.cells["average"].value for line in shown if line.measure.name in ("accuracy", "pass@1")}
    assert averages == {50.0}


def test_the_registry_of_a_study_with_several_benchmarks_is_told_by_its_members_name(papers: list[OwnRow]) -> None:
    labels = {row.role: row.label for row in papers}
    assert (labels["maestro_star"], labels["maestro"]) == ("after (extended)", "after")
    assert labels["direct"] == "direct"


def test_the_embedded_study_has_all_sizes_of_the_skill_pool_in_one_column(tmp_path: Path) -> None:
    rows = rows_of("study_embedded.yaml", tmp_path / "study-embedded")
    paper = load_paper()
    found = build(paper, paper.choose([7])[0], rows)
    cells = {
        line.label: line.cells["embedded"].value
        for line in found.lines
        if line.measure.name == "accuracy" and "(paper)" not in line.label
    }
    assert cells == {"skills 2": 50.0, "skills 4": 50.0, "skills 5": 50.0, "skills 8": 50.0}
