"""The embedded pairs on real pictures of VLMsAreBlind, where those lie beside the checkout."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from experts.images import load_picture
from experts.pool import ExpertPool
from registry.registry import Registry, default_registry_path

PAIRS = {
    "touching circles": ("Shape-Spotter", "Diagram_Reasoning_Skill"),
    "line plot intersections": ("Line-Tracer", "Diagram_Reasoning_Skill"),
    "nested squares": ("Contour-Analyst", "Diagram_Reasoning_Skill"),
    "olympic counting - circles": ("Contour-Analyst", "Counting_Problem_Solver"),
    "olympic counting - pentagons": ("Contour-Analyst", "Counting_Problem_Solver"),
    "counting grid - blank grids": ("Line-Tracer", "Counting_Problem_Solver"),
    "counting grid - word grids": ("Line-Tracer", "Counting_Problem_Solver"),
    "subway connections": ("Line-Tracer", "Diagram_Reasoning_Skill"),
}


async def replies(rows: list[dict[str, str]], folder: Path) -> list[str]:
    async with ExpertPool(Registry.load(Path(default_registry_path()))) as pool:
        return [
            (
                await pool.delegate(
                    *PAIRS[row["task"]], row["question"], [load_picture(row["image"], roots=[folder])]
                )
            ).text
            for row in rows
        ]


def test_the_right_pairs_answer_real_pictures(shared_dir: Path) -> None:
    folder = shared_dir / "data" / "benchmarks" / "vlmsareblind"
    rows = [json.loads(line) for line in (folder / "samples.jsonl").read_text().splitlines()]
    rows = [row for row in rows if row["task"] in PAIRS]
    given = asyncio.run(replies(rows, folder))
    right = sum(reply == row["answer"] for reply, row in zip(given, rows, strict=True))
    assert right >= 0.9 * len(rows) > 0
