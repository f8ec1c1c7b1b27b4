"""Which question a row asks, where several rows ask the same one.

The one idea: rows of one question are not independent, however many of them there are, so they carry a common key.
It is the row's own where the data has one, else made of what the rows have in common.
"""

from __future__ import annotations

import hashlib
import json

from eval.benchmarks.fields import Record, read_field
from eval.benchmarks.row import Row
from eval.benchmarks.spec import QuestionKey
from experts.images import Picture


def question_key(
    spec: QuestionKey | None, record: Record, row: Row, pictures: tuple[Picture, ...] | None
) -> str | None:
    """The key of the question; ``None``: the row is a question of its own. ``pictures``: ``None`` where none are read,
    and then only texts tell questions apart. Raises UserFault for a template that fails on the row."""
    if spec is None:
        return None
    if spec.columns:
        found = read_field(record, spec.columns)
        return None if found is None else str(found)
    parts: dict[str, object] = {
        "question": row.question,
        "options": sorted(row.choices or ()),
        "pictures": None if pictures is None else [picture.sha256 for picture in pictures],
    }
    text = json.dumps([parts[name] for name in spec.same], ensure_ascii=True)
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
