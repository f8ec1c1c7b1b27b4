"""How far an episode may go.

The one idea: every limit says in its name what it covers, and limits that cannot hold together are refused
before anything starts, with the sum printed. Lengths are tokens of the policy's tokenizer.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from registry.errors import UserFault


@dataclass(frozen=True)
class Budget:
    """The limits of one episode. Raises UserFault where they contradict each other.

    horizon: delegations at most (the paper's T); the turn after the last one must answer. 0 = no delegation.
    max_prompt_tokens: system prompt, picture and question; a longer prompt ends as `overlong_prompt`.
    max_turn_tokens: what the policy may write in one turn.
    max_observation_tokens: one whole information block, its tags and any truncation marker included.
    max_trajectory_tokens: everything behind the prompt: all turns and all observations together.
    malformed_turns: malformed turns that are answered by an `invalid_action` observation; one more ends the
    episode.
    """

    horizon: int = 4
    max_prompt_tokens: int = 4096
    max_turn_tokens: int = 512
    max_observation_tokens: int = 512
    max_trajectory_tokens: int = 4096
    malformed_turns: int = 1

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            least = 0 if field.name in ("horizon", "malformed_turns") else 1
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise UserFault(
                    f"budget: {field.name} is {value!r}",
                    fix=f"give a whole number of at least {least}",
                )
        if self.max_turn_tokens > self.max_trajectory_tokens:
            raise UserFault(
                f"budget: max_turn_tokens {self.max_turn_tokens} > "
                f"max_trajectory_tokens {self.max_trajectory_tokens}",
                fix=f"raise max_trajectory_tokens to at least {self.max_turn_tokens}",
            )
        needed = self.max_turn_tokens + self.max_observation_tokens + 1
        if self.horizon > 0 and needed > self.max_trajectory_tokens:
            raise UserFault(
                "budget: one call does not fit: "
                f"max_turn_tokens {self.max_turn_tokens} + "
                f"max_observation_tokens {self.max_observation_tokens} + 1 = {needed} "
                f"> max_trajectory_tokens {self.max_trajectory_tokens}",
                fix=f"raise max_trajectory_tokens to at least {needed}, or lower the other two",
            )

    @property
    def max_context_tokens(self) -> int:
        """Context that the policy's model must be able to hold: prompt and trajectory."""
        return self.max_prompt_tokens + self.max_trajectory_tokens
