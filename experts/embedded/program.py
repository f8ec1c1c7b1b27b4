"""What all embedded experts share: reading the brief, choosing the measurement, and always answering in
words.

A program knows a few tasks, each with its own measurement. A task that it does not know gets its one
habitual measurement, as a narrow specialist would give it: plausible, and beside the point.
"""

from __future__ import annotations

import logging
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, Protocol

import numpy as np

from experts.embedded.brief import Brief, read_brief
from experts.embedded.lexicon import understood
from registry.names import normalise

UNCLEAR = "unclear"
CLASSIFY = "classify"
"""The task of choosing a method: its question is followed by lines "- label: what it is"."""

_LABEL = re.compile(r"\s*-\s*([^:]+):")

_log = logging.getLogger(__name__)

Measurement = Callable[[Brief, np.ndarray], str | None]
"""(brief, H x W x 3 uint8 picture) -> the answer, or None where it cannot tell."""


class HasPixels(Protocol):
    """The part of a picture that programs look at."""

    def rgb(self) -> np.ndarray:
        """H x W x 3 uint8."""
        ...


class Program(ABC):
    """Base of the embedded experts. Subclasses name their `tasks` and their `habit`."""

    tasks: ClassVar[Mapping[str, Measurement]] = {}
    """Normalised task name -> measurement, the favourite first."""

    def answer(self, prompt: str, pictures: Sequence[HasPixels]) -> str:
        """A short text for any prompt and any picture ("unclear" where nothing can be told). Never raises."""
        if not pictures:
            return UNCLEAR
        try:
            rgb = np.ascontiguousarray(pictures[0].rgb())
            brief = read_brief(prompt)
            asked = brief.question.split("\n")[0] if brief.task == CLASSIFY else brief.question
            return (self.measure(brief, rgb) if understood(brief.task, asked) else None) or UNCLEAR
        except Exception as error:  # a measurement that a picture leads astray is one that cannot tell
            _log.warning("%s could not measure: %s: %s", type(self).__name__, type(error).__name__, error)
            return UNCLEAR

    def measure(self, brief: Brief, rgb: np.ndarray) -> str | None:
        """The answer to the brief, or None."""
        if brief.task == CLASSIFY:
            return self._choose(brief, rgb)
        return self.tasks.get(brief.task or "", self.habit)(brief, rgb)

    @abstractmethod
    def habit(self, brief: Brief, rgb: np.ndarray) -> str | None:
        """The habitual measurement, for tasks that the program does not know."""

    def fitting_task(self, question: str, rgb: np.ndarray) -> str | None:
        """Which task suits the question and the picture; the favourite one unless a program looks closer."""
        return next(iter(self.tasks), None)

    def _choose(self, brief: Brief, rgb: np.ndarray) -> str | None:
        """One of the offered labels that is a task of this program, the fitting one if it is among them."""
        question, *rest = brief.question.split("\n")
        offered = {normalise(match[1]) for line in rest if (match := _LABEL.match(line))}
        fitting = self.fitting_task(question, rgb)
        known = [task for task in (fitting, *self.tasks) if task in offered]
        return known[0] if known else None
