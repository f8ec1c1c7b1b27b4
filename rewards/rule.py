"""What of an episode is rewarded: the paper's sum, its ablations, and what calls may cost.

The one idea: the parts are always measured, the rule only says how they add up. At its defaults it is the paper's
R = r_ans + r_fmt (3.4).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class RewardRule:
    """answer, format: whether that part counts (each False is one of the paper's ablations).

    min_calls: well-formed calls that the form asks for. call_weight: taken off a right answer for each call beyond
    free_calls. cost_weight: taken off a right answer for each unit of money of its calls. max_penalty: the most that
    both take off, below 1, so that a right answer is always worth more than a wrong one.
    """

    answer: bool = True
    format: bool = True
    min_calls: int = 1
    call_weight: float = 0.0
    free_calls: int = 1
    cost_weight: float = 0.0
    max_penalty: float = 0.5

    def penalty(self, answer: float, calls: int, cost: float) -> float:
        """What calls and cost take off an episode of r_ans `answer`; a wrong answer gains nothing by being cheap."""
        extra = max(0, calls - self.free_calls)
        return answer * min(self.max_penalty, self.call_weight * extra + self.cost_weight * cost)

    def total(self, answer: float, form: float, penalty: float) -> float:
        """The reward."""
        return (answer - penalty if self.answer else 0.0) + (form if self.format else 0.0)


PAPER = RewardRule()
