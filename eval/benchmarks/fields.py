"""Reading one field of a row: the first of its alternatives that the row has.

An alternative is a column's name, or a template over columns; a template is taken where all its columns have a
value. A value counts as there unless it is null, an empty text, NaN or an empty list.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from experts.templates import TemplateFault, render
from registry.errors import UserFault
from registry.names import nearest
from registry.templates import read_template

Record = Mapping[str, Any]


@lru_cache(maxsize=1024)
def columns_of(alternative: str) -> frozenset[str]:
    """The columns that an alternative reads."""
    if "{{" in alternative or "{%" in alternative:
        return read_template(alternative).variables
    return frozenset({alternative})


def is_there(value: Any) -> bool:
    if value is None or (isinstance(value, float) and value != value):
        return False
    return not isinstance(value, str | bytes | list | tuple | dict) or len(value) > 0


def read_field(record: Record, alternatives: Sequence[str]) -> Any:
    """The field's value, None where the row has none. Raises UserFault for a template that fails on the row."""
    for alternative in alternatives:
        names = columns_of(alternative)
        if not all(is_there(record.get(name)) for name in names):
            continue
        if names == {alternative}:
            return record[alternative]
        try:
            text = render(alternative, dict(record))
        except TemplateFault as fault:
            raise UserFault(f"the template {alternative!r:.80} fails: {fault}") from None
        if text.strip():
            return text
    return None


def check_columns(record: Record, what: str, alternatives: Sequence[str], where: str) -> None:
    """Raises UserFault, with the nearest column, when none of a field's alternatives is among the row's columns.

    For the first row alone: a later one may lack a column that its table has.
    """
    if any(columns_of(alternative) <= record.keys() for alternative in alternatives):
        return
    wanted = list(dict.fromkeys(name for one in alternatives for name in sorted(columns_of(one))))
    missing = [name for name in wanted if name not in record]
    near = dict.fromkeys(found for name in missing for found in nearest(name, map(str, record), 1))
    hint = f"did you mean {' or '.join(map(repr, near))}? " if near else ""
    raise UserFault(
        f"no column {_either(missing)} for the {what}; the data has {_listing(record)}",
        where=where,
        fix=f"{hint}name the right column in the benchmark's YAML",
    )


def _either(names: Iterable[str]) -> str:
    return " or ".join(map(repr, names))


def _listing(record: Record) -> str:
    names = [str(name) for name in record]
    return ", ".join(names[:20]) + (f" and {len(names) - 20} more" if len(names) > 20 else "")
