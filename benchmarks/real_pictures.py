"""How the embedded tier does on pictures that it did not draw: rows of a public benchmark kept outside the project.

    python benchmarks/real_pictures.py FOLDER --policy runs/demo/policy

FOLDER holds `samples.jsonl` (fields id, question, answer, task, image) and the images, as VLMsAreBlind's rows lie in
the developers' data folder. Scored by the benchmark's own rule, over tasks that the embedded world covers:
oracle (any of the registry's pairs right), keyword routing, and the trained policy (greedy).
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Sequence
from pathlib import Path

from experts.images import load_picture
from experts.pool import ExpertPool
from orchestrator.budget import Budget
from orchestrator.policies.fixed_pair import FixedPair
from orchestrator.policies.in_process import InProcessPolicy
from orchestrator.policies.keyword_router import KeywordRouter
from orchestrator.policy import Policy
from orchestrator.runner import run_episodes
from orchestrator.task import Task
from orchestrator.trajectory import Trajectory
from registry.registry import Registry
from rewards import score

UNCOVERED = ("circled letter",)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--policy", type=Path, default=Path("runs/demo/policy"))
    parser.add_argument("--cache", type=Path, default=None)
    args = parser.parse_args()
    tasks = load(args.folder)
    print(json.dumps(asyncio.run(measure(tasks, args.policy, args.cache)), indent=2))


def load(folder: Path) -> list[Task]:
    tasks = []
    for line in (folder / "samples.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if row["task"] not in UNCOVERED:
            picture = load_picture(folder / row["image"])
            tasks.append(Task(row["id"], "vlmsareblind", row["task"], row["question"], (picture,), row["answer"]))
    return tasks


async def measure(tasks: Sequence[Task], policy: Path, cache: Path | None) -> dict[str, object]:
    registry = Registry.load()
    async with ExpertPool(registry, cache_dir=cache) as pool:
        by_pair = {
            (expert.name, skill.name): await run(tasks, FixedPair(expert.name, skill.name), pool)
            for expert in registry.experts
            for skill in registry.skills
        }
        keyword = await run(tasks, KeywordRouter(registry), pool)
        trained = await run(tasks, InProcessPolicy(policy, 0.0), pool)
    return {
        "rows": len(tasks),
        "oracle": sum(any(right[t.row_id] for right in by_pair.values()) for t in tasks) / len(tasks),
        "keyword": sum(keyword.values()) / len(tasks),
        "policy_greedy": sum(trained.values()) / len(tasks),
        "policy_right_rows": sorted(row for row, right in trained.items() if right),
    }


async def run(tasks: Sequence[Task], policy: Policy, pool: ExpertPool) -> dict[str, bool]:
    done: list[Trajectory] = []
    budget = Budget(max_prompt_tokens=256, max_turn_tokens=96, max_observation_tokens=32, max_trajectory_tokens=256)
    await run_episodes(tasks, policy, pool, budget=budget, concurrency=4, on_done=done.append)
    gold = {task.row_id: task for task in tasks}
    return {
        t.row_id: score("vlmsareblind", str(gold[t.row_id].ground_truth), t.answer, group=t.group).value == 1.0
        for t in done
    }


if __name__ == "__main__":
    main()
