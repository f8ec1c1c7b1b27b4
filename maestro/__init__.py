"""Maestro: an orchestrator that answers image questions by delegating to expert-skill pairs, learned by RL.

The public names, each imported when it is first used (PEP 562), so that `import maestro` costs nothing:

    from maestro import Registry, ExpertPool, load_picture, run_episode, score, reward
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from eval.benchmarks.row import Row
    from experts.images import Picture, load_picture
    from experts.outcome import Delegation, ExpertReply, Outcome, Usage
    from experts.pool import ExpertPool
    from orchestrator.action import Action, Answer, Malformed, Search
    from orchestrator.budget import Budget
    from orchestrator.protocol import parse_turn
    from orchestrator.runner import run_episode, run_episodes
    from orchestrator.task import Task
    from orchestrator.trajectory import Trajectory
    from registry.errors import UserFault
    from registry.prompt import system_prompt
    from registry.registry import Registry, default_registry_path
    from rewards import Reward, Score, reward, score

    __version__: str

_HOMES = {
    "Action": "orchestrator.action",
    "Answer": "orchestrator.action",
    "Budget": "orchestrator.budget",
    "Delegation": "experts.outcome",
    "ExpertPool": "experts.pool",
    "ExpertReply": "experts.outcome",
    "Malformed": "orchestrator.action",
    "Outcome": "experts.outcome",
    "Picture": "experts.images",
    "Registry": "registry.registry",
    "Reward": "rewards",
    "Row": "eval.benchmarks.row",
    "Score": "rewards",
    "Search": "orchestrator.action",
    "Task": "orchestrator.task",
    "Trajectory": "orchestrator.trajectory",
    "Usage": "experts.outcome",
    "UserFault": "registry.errors",
    "default_registry_path": "registry.registry",
    "load_picture": "experts.images",
    "parse_turn": "orchestrator.protocol",
    "reward": "rewards",
    "run_episode": "orchestrator.runner",
    "run_episodes": "orchestrator.runner",
    "score": "rewards",
    "system_prompt": "registry.prompt",
}

__all__ = [
    "Action", "Answer", "Budget", "Delegation", "ExpertPool", "ExpertReply", "Malformed", "Outcome",
    "Picture", "Registry", "Reward", "Row", "Score", "Search", "Task", "Trajectory", "Usage", "UserFault",
    "default_registry_path", "load_picture", "parse_turn", "reward", "run_episode", "run_episodes", "score",
    "system_prompt",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("maestro-orchestrator")
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'maestro' has no attribute {name!r}")
    value = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES, "__version__"])
