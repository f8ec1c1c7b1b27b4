"""Demonstrations for the cold start: rollouts of a weak, noisy keyword router, and rehearsals.

One idea: the router's episodes go through the same runner and experts as everybody's, so that what is imitated is the
protocol with real observations. Before it calls, a demonstration says in a thought what kind of picture lies there, as
far as the row's caption tells. The router itself never looks: what it chooses is poor on purpose, and where a wording
is shared by several kinds of picture it follows the words alone. That a choice may follow the thought is left to RL.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from experts.images import Picture
from orchestrator.protocol import render_information
from orchestrator.trajectory import Trajectory

Scene = tuple[Picture, str | None]
"""A picture and what its row says of it, if anything."""

_NAME = re.compile(r"(?<=\s)[A-Z][a-z]{3,}\b")
_WORD = re.compile(r"\b[a-z]{2,}\b")
_SWAPPED = (0.0, 0.3, 1.0, 1.0)  # share of a rehearsed question's words that give way to others
_INVENTED = 0.1  # share of those that no question ever held
_REPEATED = 0.15  # share of those that stand in the question already: what follows a word must not be guessed from it
_CONSONANTS, _VOWELS = "bdfgklmnprstvz", "aeiou"


@dataclass(frozen=True)
class Demonstration:
    """One supervised sequence: a question with its picture, then pieces of (text, learned?)."""

    question: str
    picture: Picture
    pieces: tuple[tuple[str, bool], ...]


def from_trajectories(trajectories: Iterable[Trajectory], scenes: Mapping[str, Scene]) -> list[Demonstration]:
    """Well-formed, answered trajectories as demonstrations; `scenes` by row id."""
    demonstrations = []
    for trajectory in trajectories:
        if not trajectory.valid or trajectory.stop != "answered":
            continue
        picture, caption = scenes[trajectory.row_id]
        pieces: list[tuple[str, bool]] = []
        for turn in trajectory.turns:
            pieces.append((turn["text"] if pieces else _thought(caption) + turn["text"], True))
            if turn["observation"] is not None:
                pieces.append((turn["observation"]["shown"], False))
        demonstrations.append(Demonstration(trajectory.question, picture, tuple(pieces)))
    return demonstrations


def _thought(caption: str | None) -> str:
    return f"<think> {caption} </think>" if caption else ""


def rehearsals(calls: Sequence[Demonstration], count: int, seed: int) -> list[Demonstration]:
    """`count` demonstrations made from `calls`, with other names, words and replies.

    What is copied is new every time: a router that is mostly wrong mostly hears "unclear", and without these the policy
    would learn to copy nothing else. Picture, thought and choice stay together: where the words are scrambled, what is
    on the picture must be seen, and a choice can follow nothing but what is seen.
    """
    rng = random.Random(f"rehearsals {seed}")
    calls = [call for call in calls if _reply(call) is not None]
    heard = [reply for call in calls if (reply := _reply(call)) is not None]
    words = sorted({word for call in calls for word in _WORD.findall(call.question)})
    made = []
    for _ in range(count if calls else 0):
        call = rng.choice(calls)
        question = _other_words(call.question, words, rng)
        said = call.pieces[0][0].replace(call.question, question)
        reply = rng.choice((_made_up_name(rng), _made_up_number(rng), _made_up_number(rng), rng.choice(heard)))
        pieces = ((said, True), (render_information(reply), False), (f"<answer> {reply} </answer>", True))
        made.append(replace(call, question=question, pieces=pieces))
    return made


def _other_words(question: str, words: Sequence[str], rng: random.Random) -> str:
    share = rng.choice(_SWAPPED)

    def other(found: re.Match[str]) -> str:
        if rng.random() >= share:
            word = found.group()
        elif (kind := rng.random()) < _INVENTED:
            word = _made_up_name(rng).lower()
        elif kind < _INVENTED + _REPEATED and written:
            word = rng.choice(written)
        else:
            word = rng.choice(words)
        written.append(word)
        return word

    written: list[str] = []
    named = _NAME.sub(_made_up_name(rng), question)
    return _WORD.sub(other, named)


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
