"""From a row as it was read to a candidate of the mixture, or to the reason why it is none."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

from experts.images import ImageFault, ImageLimits
from rewards import score
from train.data.config import DataConfig
from train.data.evaluated import EvaluatedPicture, EvaluatedRow, Leak, LeakIndex
from train.data.lengths import PromptLengths
from train.data.picture import Seen, look_at
from train.data.row import MixtureRow, Skipped
from train.data.wording import normal_words
from train.data.workspace import Candidate

BAD_IMAGE = "bad image"


@dataclass(frozen=True)
class Leaked:
    """A row that an evaluation benchmark holds too."""

    key: int
    row: str
    leak: Leak


def order_key(seed: int, source: str, row: str) -> int:
    """A row's place in its source's seeded order, 62 bits: depends on nothing but these three."""
    text = f"{seed}\x1f{source}\x1f{row}".encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest()) >> 2


class Checks:
    """Everything that a row has to pass. Holds no state of a run: rows may be checked in several threads."""

    def __init__(self, config: DataConfig, index: LeakIndex, lengths: PromptLengths | None) -> None:
        self._config, self._index, self._lengths = config, index, lengths
        self._limits = ImageLimits(max_pixels=config.max_pixels)

    def check(self, key: int, row: MixtureRow) -> Candidate | Leaked | Skipped:
        if not row.pictures:
            return Skipped("no image", "", row.id)
        if len(row.pictures) > self._config.max_images:
            return Skipped("too many images", f"{len(row.pictures)}, the limit is {self._config.max_images}", row.id)
        fault = unscorable(row)
        if fault is not None:
            return Skipped("bad gold answer", fault, row.id)
        try:
            seen = see(row, self._limits)
        except ImageFault as fault:
            return Skipped(BAD_IMAGE, fault.what, row.id)
        leak = self._index.find(row.question, row.choices, [s.digest for s in seen], [s.looks for s in seen])
        if leak is not None:
            return Leaked(key, row.id, leak)
        extra = dict(row.extra)
        if self._lengths is not None:
            length = self._lengths.measure(row, [(s.width, s.height) for s in seen])
            most = self._config.max_prompt_tokens
            if most is not None and length.total > most:
                what = f"{length.total} tokens, {sum(length.images)} of them for pictures; the limit is {most}"
                return Skipped("prompt too long", what, row.id)
            extra["tokens"] = {"prompt": length.total, "images": list(length.images)}
        digests = tuple(s.digest for s in seen)
        words = " ".join(normal_words(row.question, row.choices)).encode("utf-8", "surrogatepass")
        content = hashlib.blake2b(b"".join(digests) + words, digest_size=16).digest()
        kept = replace(row, pictures=tuple(s.data for s in seen), extra=extra)
        return Candidate(key, content, kept, digests)


def unscorable(row: MixtureRow) -> str | None:
    """Why the right answer itself would earn no reward, so that nothing could be learned from the row."""
    gold = row.extra.get("answers", row.answer)
    try:
        result = score(row.benchmark, gold, row.answer, row.choices, row.group)
    except ValueError as fault:
        return str(fault)
    return None if result.value > 0 else f"the right answer {row.answer!r:.80} scores 0: {result.explanation}"


def see(row: MixtureRow, limits: ImageLimits) -> tuple[Seen, ...]:
    """All pictures of a row. Raises ImageFault naming the row, and the picture where there are several."""
    several = len(row.pictures) > 1
    return tuple(
        look_at(data, limits, f"{row.id}, image {place}" if several else row.id)
        for place, data in enumerate(row.pictures, 1)
    )


def evaluated_row(row: MixtureRow, limits: ImageLimits) -> EvaluatedRow:
    """A benchmark's row as the index keeps it; pictures that can't be read can't be leaked either."""
    try:
        seen: Sequence[Seen] = see(row, limits)
    except ImageFault:
        seen = ()
    pictures = tuple(_evaluated(one) for one in seen)
    return EvaluatedRow(row.benchmark, row.id, " ".join(normal_words(row.question, row.choices)), pictures)


def _evaluated(seen: Seen) -> EvaluatedPicture:
    if seen.looks.flat:
        return EvaluatedPicture(seen.digest, None, None)
    return EvaluatedPicture(seen.digest, seen.looks.hash.tobytes(), seen.looks.thumbnail.tobytes())
