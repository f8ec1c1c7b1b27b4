"""What the evaluation benchmarks hold, in a form that training rows can be looked up in: `LeakIndex`.

The one idea: a row leaks when the same picture is evaluated on (whatever is asked about it), when a long text is, or
when a short question is asked about a picture that looks alike. A short question alone says nothing: "How many
people are there?" stands in every counting data set.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from train.data.looks import SIDE, WORDS, Looks, correlation, distances
from train.data.wording import normal_words, pairs, shared, sketch

_ALIKE_BITS, _ALIKE_CORRELATION = 96, 0.85  # a picture beside the same words: cropped, annotated, recoloured
_SKETCH_BITS, _SHARED_PAIRS = 12, 0.75


@dataclass(frozen=True)
class Leak:
    """kind: why. row: the benchmark's row. detail: how near."""

    kind: str
    benchmark: str
    row: str
    detail: str


class EvaluatedPicture(NamedTuple):
    """digest: as `picture.Seen`. hash, thumbnail: as `looks.Looks`; None for a picture of one colour."""

    digest: bytes
    hash: bytes | None
    thumbnail: bytes | None


class EvaluatedRow(NamedTuple):
    """text: normal words, joined by blanks."""

    benchmark: str
    row: str
    text: str
    pictures: tuple[EvaluatedPicture, ...]


class LeakIndex:
    """All rows of all benchmarks: 1.1 kB a picture and the text, in memory."""

    def __init__(self, rows: Iterable[EvaluatedRow], *, picture_bits: int, least_correlation: float, text_words: int):
        self._bits, self._correlation, self._long = picture_bits, least_correlation, text_words
        self._names: list[tuple[str, str]] = []
        self._texts: dict[str, list[int]] = {}
        self._digests: dict[bytes, int] = {}
        hashes, thumbnails, self._owners = bytearray(), bytearray(), []
        places: dict[int, list[int]] = {}
        for number, row in enumerate(rows):
            self._names.append((row.benchmark, row.row))
            if row.text:
                self._texts.setdefault(row.text, []).append(number)
            for picture in row.pictures:
                if picture.hash is None or picture.thumbnail is None:
                    self._digests.setdefault(picture.digest, number)
                    continue
                places.setdefault(number, []).append(len(self._owners))
                if picture.digest not in self._digests:
                    self._digests[picture.digest] = number
                hashes += picture.hash
                thumbnails += picture.thumbnail
                self._owners.append(number)
        self._hashes = np.asfortranarray(np.frombuffer(bytes(hashes), np.uint64).reshape(-1, WORDS))
        self._thumbnails = np.frombuffer(bytes(thumbnails), np.uint8).reshape(-1, SIDE * SIDE)
        self._places = places
        self._long_texts = [text for text in self._texts if len(text.split()) >= text_words]
        self._sketches = np.array([sketch(text.split()) for text in self._long_texts], np.uint64).reshape(-1, 1)

    def __len__(self) -> int:
        return len(self._names)

    def find(
        self, question: str, choices: Sequence[str] | None, digests: Sequence[bytes], looks: Sequence[Looks]
    ) -> Leak | None:
        """The first reason why a row must not be trained on, strongest first; None where there is none."""
        for digest in digests:
            if digest in self._digests:
                return self._leak("same picture", self._digests[digest], "equal pixels")
        for one in looks:
            found = self._alike(one)
            if found is not None:
                return found
        return self._worded(normal_words(question, choices), looks)

    def _alike(self, looks: Looks) -> Leak | None:
        if looks.flat or not len(self._hashes):
            return None
        away = distances(self._hashes, looks.hash)
        best: tuple[float, int] | None = None
        for place in np.flatnonzero(away <= self._bits):
            value = correlation(self._thumbnails[place], looks.thumbnail)
            if value >= self._correlation and (best is None or value > best[0]):
                best = value, int(place)
        if best is None:
            return None
        detail = f"{away[best[1]]} of 256 bits differ, thumbnails correlate {best[0]:.3f}"
        return self._leak("picture alike", self._owners[best[1]], detail)

    def _worded(self, words: list[str], looks: Sequence[Looks]) -> Leak | None:
        text = " ".join(words)
        same = self._texts.get(text, [])
        if len(words) >= self._long:
            if same:
                return self._leak("same text", same[0], f"{len(words)} equal words")
            return self._near(words)
        for number in same:
            for place in self._places.get(number, []):
                for one in looks:
                    away = int(distances(self._hashes[place : place + 1], one.hash)[0])
                    value = correlation(self._thumbnails[place], one.thumbnail)
                    if not one.flat and away <= _ALIKE_BITS and value >= _ALIKE_CORRELATION:
                        return self._leak("same question, picture alike", number, f"thumbnails correlate {value:.3f}")
        return None

    def _near(self, words: list[str]) -> Leak | None:
        if not self._long_texts:
            return None
        away = distances(self._sketches, np.array([sketch(words)], np.uint64))
        own = pairs(words)
        for place in np.flatnonzero(away <= _SKETCH_BITS):
            other = self._long_texts[place]
            share = shared(own, pairs(other.split()))
            if share >= _SHARED_PAIRS:
                return self._leak("text alike", self._texts[other][0], f"{share:.0%} of the word pairs")
        return None

    def _leak(self, kind: str, number: int, detail: str) -> Leak:
        benchmark, row = self._names[number]
        return Leak(kind, benchmark, row, detail)
