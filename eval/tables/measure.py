"""What a cell can hold: the measures of the paper's tables, and where ``results.json`` has them.

The one idea: a measure knows its unit, its way of being printed and which direction is better; the rest of the
tables treat all of them alike.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_AT_K = re.compile(r"(pass|sc)@([1-9]\d{0,5})")
Pair = tuple[float, float]


@dataclass(frozen=True)
class Measure:
    """``name`` as in `paper.yaml`; values are in percent, seconds or tokens."""

    name: str
    label: str
    places: int
    scale: float = 1.0
    """From the unit of results.json (shares in 0..1) to the table's."""
    best: str | None = "highest"
    """``lowest``, or None where neither is better."""
    minus: str | None = None
    """A difference: this measure is taken off ``of``."""
    of: str | None = None
    zero_is_none: bool = False
    """A row at 0 uses none at all, as rules do of tokens, and doesn't compete."""

    def competes(self, value: float | None) -> bool:
        """Whether a value may be the best of its column."""
        return value is not None and not (self.zero_is_none and value == 0)


def measure_named(name: str) -> Measure:
    """Raises ValueError for a name that is no measure."""
    if name in _FIXED:
        return _FIXED[name]
    if _AT_K.fullmatch(name):
        return Measure(name, name, 1, 100.0)
    left, dash, right = name.partition(" - ")
    if dash and _AT_K.fullmatch(left) and _AT_K.fullmatch(right):
        return Measure(name, f"{left} − {right}", 1, 100.0, None, minus=right, of=left)
    raise ValueError(f"unknown measure {name!r}")


def value_of(entry: Mapping[str, Any], measure: Measure) -> float | None:
    """The measure's value in an arm's entry of results.json, in the table's unit; None where it was not measured.

    Raises ValueError for a value that is no finite number.
    """
    if measure.of is not None and measure.minus is not None:
        left, right = (value_of(entry, measure_named(name)) for name in (measure.of, measure.minus))
        return None if left is None or right is None else left - right
    found = _number(_raw(entry, measure.name), measure.name)
    return None if found is None else measure.scale * found


def interval_of(entry: Mapping[str, Any], measure: Measure) -> Pair | None:
    """The 95 % interval in the table's unit, where results.json has one for this value.

    Raises ValueError for a bound that is no finite number."""
    if _AT_K.fullmatch(measure.name):
        family, _, k = measure.name.partition("@")
        return _bounds(_inside(entry.get(f"{family}_at_k_ci95"), k), measure)
    if measure.name != "accuracy":
        return None
    average, accuracy, bounds = (entry.get(name) for name in ("average", "accuracy", "ci95"))
    own = entry.get("average_ci95")
    if average is not None and own is not None:
        bounds = own
    elif average is not None and average != accuracy and not math.isclose(_finite(average), _finite(accuracy)):
        return None  # the headline is another mean than the one whose interval is known
    return _bounds(bounds, measure)


def ks_of(entry: Mapping[str, Any], family: str) -> set[int]:
    """The k at which ``pass`` or ``sc`` was measured."""
    table = entry.get(f"{family}_at_k")
    if not isinstance(table, Mapping):
        return set()
    return {int(k) for k, value in table.items() if str(k).isdecimal() and len(str(k)) < 7 and value is not None}


def shown(value: float, measure: Measure, *, signed: bool = False) -> str:
    """The value as a table prints it; differences carry their sign."""
    sign = "+" if signed or measure.of is not None else ""
    rounded = round(value, measure.places) + 0.0  # no "-0.0"
    return f"{rounded:{sign}.{measure.places}f}"


_FIXED = {
    "accuracy": Measure("accuracy", "accuracy, %", 1, 100.0),
    "latency": Measure("latency", "latency, s", 2, best="lowest"),
    "tokens": Measure("tokens", "tokens, read and written", 1, best="lowest", zero_is_none=True),
    "written_tokens": Measure("written_tokens", "tokens, written", 1, best="lowest", zero_is_none=True),
}


def _raw(entry: Mapping[str, Any], name: str) -> Any:
    if name == "accuracy":
        average = entry.get("average")  # the benchmark's own headline number
        return entry.get("accuracy") if average is None else average
    if name == "latency":
        return _inside(entry.get("latency_s"), "mean")
    if name in ("tokens", "written_tokens"):
        return _inside(entry.get(name), "mean")
    family, _, k = name.partition("@")
    return _inside(entry.get(f"{family}_at_k"), k)


def _bounds(found: Any, measure: Measure) -> Pair | None:
    if not isinstance(found, list | tuple) or len(found) != 2:
        return None
    low, high = (_number(one, "ci95") for one in found)
    return None if low is None or high is None else (measure.scale * low, measure.scale * high)


def _finite(value: Any) -> float:
    return math.nan if value is None else _number(value, "accuracy") or 0.0


def _inside(table: Any, key: str) -> Any:
    return table.get(key) if isinstance(table, Mapping) else None


def _number(value: Any, name: str) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"{name!r} is no number but {str(value)[:60]!r}")
    return float(value)
