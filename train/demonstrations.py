"""Demonstrations for the cold start: rollouts of a weak, noisy keyword router, rehearsals, and captions.

One idea: the router's episodes go through the same runner and experts as everybody's, so that what is imitated is the
protocol with real observations. What the router chooses is poor on purpose: where a wording is shared by several kinds
of picture it follows the words alone.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from experts.images import Picture
from orchestrator.protocol import render_information
from orchestrator.trajectory import Trajectory

CAPTION_QUESTION = "What kind of picture is this?"
_NAME = re.compile(r"(?<=\s)[A-Z][a-z]{3,}\b")
_CONSONANTS, _VOWELS = "bdfgklmnprstvz", "aeiou"


@dataclass(frozen=True)
class Demonstration:
    """One supervised sequence: a question with its picture, then pieces of (text, learned?)."""

    question: str
    picture: Picture
    pieces: tuple[tuple[str, bool], ...]


def from_trajectories(trajectories: Iterable[Trajectory], pictures: dict[str, Picture]) -> list[Demonstration]:
    """Well-formed, answered trajectories as demonstrations; `pictures` by row id."""
    demonstrations = []
    for trajectory in trajectories:
        if not trajectory.valid or trajectory.stop != "answered":
            continue
        pieces: list[tuple[str, bool]] = []
        for turn in trajectory.turns:
            pieces.append((turn["text"], True))
            if turn["observation"] is not None:
                pieces.append((turn["observation"]["shown"], False))
        demonstrations.append(Demonstration(trajectory.question, pictures[trajectory.row_id], tuple(pieces)))
    return demonstrations


def rehearsals(calls: Sequence[Demonstration], count: int, seed: int) -> list[Demonstration]:
    """`count` demonstrations with other names and replies: the same calls, but what is copied is new every time.

    A router that is mostly wrong mostly hears "unclear": without these the policy would learn to copy nothing else.
    """
    rng = random.Random(f"rehearsals {seed}")
    heard = [reply for d in calls if (reply := _reply(d)) is not None]
    made = []
    for _ in range(count if heard else 0):
        call = rng.choice(calls)
        name = _made_up_name(rng)
        question = _NAME.sub(name, call.question)
        said = call.pieces[0][0].replace(call.question, question)
        reply = rng.choice((_made_up_name(rng), _made_up_number(rng), _made_up_number(rng), rng.choice(heard)))
        pieces = ((said, True), (render_information(reply), False), (f"<answer> {reply} </answer>", True))
        made.append(replace(call, question=question, pieces=pieces))
    return made


def _reply(demonstration: Demonstration) -> str | None:
    """What came back in a demonstration of one call, None for others."""
    if len(demonstration.pieces) != 3:
        return None
    return demonstration.pieces[1][0].removeprefix("\n<information> ").removesuffix(" </information>\n")


def _made_up_name(rng: random.Random) -> str:
    parts = (rng.choice(_CONSONANTS) + rng.choice(_VOWELS) for _ in range(rng.choice((2, 3, 3))))
    return "".join(parts).capitalize()


def _made_up_number(rng: random.Random) -> str:
    whole = str(rng.randrange(10 ** rng.choice((1, 2, 2, 3, 4))))
    return rng.choice(
        (
            whole,
            whole,
            f"{whole}.{rng.randrange(1, 10)}",
            f"{whole}.{rng.randrange(10, 100)}",
            f"{rng.randrange(2, 12)},{rng.randrange(2, 12)}",
        )
    )


def captions(rows: Sequence[tuple[str, Picture]]) -> list[Demonstration]:
    """(caption, picture) pairs as demonstrations: the tiny policy learns to see kinds of picture, as a real one can."""
    return [Demonstration(CAPTION_QUESTION, picture, ((f"{caption}<|im_end|>", True),)) for caption, picture in rows]
