"""How good was it: answer scorers, format check, reward. Pure functions, standard library only.

`score` judges one answer by its benchmark's rule, `reward` one trajectory record.
"""

from __future__ import annotations

# Two submodules share their names with the functions below; all are imported before the functions take the
# names.
from rewards import verl_adapter
from rewards.benchmarks import benchmarks, score
from rewards.reward import Reward, reward
from rewards.rule import RewardRule
from rewards.score import Score

__all__ = ["Reward", "RewardRule", "Score", "benchmarks", "reward", "score", "verl_adapter"]
