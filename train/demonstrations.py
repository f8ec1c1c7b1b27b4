"""Demonstrations for the cold start: rollouts of a weak, noisy keyword router, and captions.

One idea: the router's episodes go through the same runner and experts as everybody's, so that what is imitated is the
protocol with real observations. What the router chooses is poor on purpose: where a wording is shared by several kinds
of picture it follows the words alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from experts.images import Picture
from orchestrator.trajectory import Trajectory

CAPTION_QUESTION = "What kind of picture is this?"


@dataclass(frozen=True)
class Demonstration:
    """One supervised sequence: a question with its picture, then pieces of (text, learned?)."""

    question: str
    picture: Picture
    pieces: tuple[tuple[str, bool], ...]


def from_trajectories(
    trajectories: Iterable[Trajectory], pictures: dict[str, Picture]
) -> list[Demonstration]:
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


def captions(rows: Sequence[tuple[str, Picture]]) -> list[Demonstration]:
    """(caption, picture) pairs as demonstrations: the tiny policy learns to see kinds of picture, as a real one can."""
    return [Demonstration(CAPTION_QUESTION, picture, ((f"{caption}<|im_end|>", True),)) for caption, picture in rows]
