"""Plots as SVG inside the page: they follow its light and dark colours, scale, and can be read without a script.

The one idea: marks are few and labelled directly; series differ by shape or dash as well as by colour; every value is
in a table of the page too, and in the mark's own title.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

WIDTH = 600
_LETTER = 6.6  # pixels of a letter at the labels' size


@dataclass(frozen=True)
class Mark:
    """One value; ``low`` and ``high`` bound its interval. ``style`` 1 is the leading colour."""

    label: str
    y: float
    x: float = 0.0
    low: float | None = None
    high: float | None = None
    style: int = 2


@dataclass(frozen=True)
class Line:
    label: str
    marks: tuple[Mark, ...]
    style: int = 1
    dashed: bool = False


def dots(marks: Sequence[Mark], *, title: str) -> Markup:
    """One line a mark: a dot at its share in 0..1 and its interval."""
    left = 16 + max((len(mark.label) for mark in marks), default=0) * _LETTER
    left, right, step = min(left, 300), WIDTH - 64, 26
    height = 14 + step * len(marks) + 34
    parts = [_ticks_below(left, right, height - 34, 8)]
    for place, mark in enumerate(marks):
        y = 22 + step * place
        x, low, high = (
            left + (right - left) * _clip(v) for v in (mark.y, _or(mark.low, mark.y), _or(mark.high, mark.y))
        )
        parts.append(_text(left - 10, y + 4, mark.label, "end", strong=mark.style == 1))
        shape = f'<line x1="{low:.1f}" x2="{high:.1f}" y1="{y}" y2="{y}" class="whisker s{mark.style}"/>'
        shape += f'<circle cx="{x:.1f}" cy="{y}" r="5" class="dot s{mark.style}"/>'
        parts.append(f"<g><title>{_told(mark)}</title>{shape}</g>")
        parts.append(_text(high + 9, y + 4, f"{mark.y:.3f}"))
    return _svg(title, height, parts)


def scatter(marks: Sequence[Mark], *, title: str, x_name: str) -> Markup:
    """Share in 0..1 against a positive quantity, on a logarithmic axis where its values differ by more than 20."""
    left, right, top, bottom = 52, WIDTH - 24, 14, 330
    known = [mark.x for mark in marks if mark.x > 0] or [1.0]
    log = max(known) > 20 * min(known)
    low, high = (min(known) / 1.5, max(known) * 1.5) if log else (0.0, max(known) * 1.15)

    def at(value: float) -> float:
        if log:
            return left + (right - left) * _clip(math.log(max(value, low) / low) / math.log(high / low))
        return left + (right - left) * _clip(value / high)

    parts = [_ticks_left(left, right, top, bottom)]
    for value in _steps(low, high, log):
        parts.append(_text(at(value), bottom + 18, f"{value:g}", "middle", soft=True))
        parts.append(f'<line x1="{at(value):.1f}" x2="{at(value):.1f}" y1="{bottom}" y2="{bottom + 4}" class="axis"/>')
    parts.append(_text(right, bottom + 36, x_name + (", logarithmic" if log else ""), "end", soft=True))
    places = [(at(mark.x), bottom - (bottom - top) * _clip(mark.y)) for mark in marks]
    taken = [(x - 6, y - 6, x + 6, y + 6) for x, y in places]
    for mark, (x, y) in zip(marks, places, strict=True):
        parts.append(
            f"<g><title>{_told(mark, x_name)}</title>{_whisker(x, mark, top, bottom)}{_shape(x, y, mark.style)}</g>"
        )
        found = _free(x, y, mark.label, taken, (left, top, right, bottom))
        if found is not None:
            parts.append(_text(found[0], found[1], mark.label, strong=mark.style == 1))
    return _svg(title, bottom + 46, parts)


def lines(series: Sequence[Line], *, title: str, x_name: str) -> Markup:
    """Shares in 0..1 over few values of x, which stand at equal distances; each line is named at its end."""
    names = max((len(line.label) for line in series), default=0) * _LETTER
    left, right, top, bottom = 52, WIDTH - min(names, 260) - 24, 14, 330
    xs = sorted({mark.x for line in series for mark in line.marks})
    gap = (right - left - 60) / max(1, len(xs) - 1)
    at = {x: left + 30 + gap * place for place, x in enumerate(xs)}
    parts = [_ticks_left(left, right, top, bottom)]
    parts += [_text(at[x], bottom + 18, f"{x:g}", "middle", soft=True) for x in xs]
    parts.append(_text(right, bottom + 36, x_name, "end", soft=True))
    ends: list[tuple[float, Line]] = []
    for line in series:
        places = [(at[mark.x], bottom - (bottom - top) * _clip(mark.y), mark) for mark in line.marks]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y, _ in places)
        parts.append(f'<polyline points="{path}" class="line s{line.style}{" dashed" if line.dashed else ""}"/>')
        for x, y, mark in places:
            told = _told(mark, x_name)
            parts.append(f"<g><title>{told}</title>{_whisker(x, mark, top, bottom)}{_shape(x, y, line.style)}</g>")
        if places:
            ends.append((places[-1][1], line))
    for y, line in _apart(ends, 15):
        parts.append(_text(right + 4, y + 4, line.label, cls=f"s{line.style}"))
    return _svg(title, bottom + 46, parts)


def _svg(title: str, height: float, parts: Iterable[str]) -> Markup:
    head = f'<svg viewBox="0 0 {WIDTH} {height:.0f}" role="img" aria-label="{escape(title)}">'
    return Markup(head + "".join(parts) + "</svg>")


def _shape(x: float, y: float, style: int) -> str:
    """A circle, square, triangle or diamond: series are told apart without colours."""
    kind, name = (style - 1) % 4, f'class="dot s{style}"'
    if kind == 0:
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" {name}/>'
    if kind == 1:
        return f'<rect x="{x - 4.5:.1f}" y="{y - 4.5:.1f}" width="9" height="9" {name}/>'
    corners = ((0, -6), (5.5, 4.5), (-5.5, 4.5)) if kind == 2 else ((0, -6), (6, 0), (0, 6), (-6, 0))
    return f'<polygon points="{" ".join(f"{x + a:.1f},{y + b:.1f}" for a, b in corners)}" {name}/>'


def _whisker(x: float, mark: Mark, top: float, bottom: float) -> str:
    if mark.low is None or mark.high is None:
        return ""
    low, high = (bottom - (bottom - top) * _clip(value) for value in (mark.low, mark.high))
    return f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{low:.1f}" y2="{high:.1f}" class="whisker s{mark.style}"/>'


def _ticks_left(left: float, right: float, top: float, bottom: float) -> str:
    found = []
    for share in (0, 0.2, 0.4, 0.6, 0.8, 1):
        y = bottom - (bottom - top) * share
        found.append(f'<line x1="{left}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}" class="axis"/>')
        found.append(_text(left - 8, y + 4, f"{share:.1f}", "end", soft=True))
    return "".join(found)


def _ticks_below(left: float, right: float, bottom: float, top: float) -> str:
    found = []
    for share in (0, 0.2, 0.4, 0.6, 0.8, 1):
        x = left + (right - left) * share
        found.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{top}" y2="{bottom}" class="axis"/>')
        found.append(_text(x, bottom + 18, f"{share:.1f}", "middle", soft=True))
    return "".join(found)


def _text(
    x: float, y: float, text: str, anchor: str = "start", *, soft: bool = False, strong: bool = False, cls: str = ""
) -> str:
    short = text if len(text) <= 44 else text[:43] + "…"
    names = " ".join(name for name in (cls, "soft" if soft else "", "strong" if strong else "") if name)
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" class="{names}">{escape(short)}</text>'


def _told(mark: Mark, x_name: str = "") -> str:
    interval = "" if mark.low is None or mark.high is None else f" (95 %: {mark.low:.3f} to {mark.high:.3f})"
    return str(escape(f"{mark.label}: {mark.y:.3f}{interval}" + (f", {x_name} {mark.x:g}" if x_name else "")))


def _free(
    x: float, y: float, label: str, taken: list[tuple[float, float, float, float]], area: tuple[float, ...]
) -> tuple[float, float] | None:
    """A place for a label beside its mark where it covers nothing; ``None`` where there is none (its title and the
    table tell)."""
    wide = min(len(label), 44) * _LETTER
    for dx, dy in ((10, 4), (-10 - wide, 4), (-wide / 2, -12), (-wide / 2, 20), (10, -10), (10, 18), (-10 - wide, 18)):
        box = (x + dx, y + dy - 11, x + dx + wide, y + dy + 3)
        inside = box[0] >= area[0] and box[2] <= area[2] and box[1] >= area[1] - 8 and box[3] <= area[3]
        if inside and not any(box[0] < b[2] and b[0] < box[2] and box[1] < b[3] and b[1] < box[3] for b in taken):
            taken.append(box)
            return x + dx, y + dy
    return None


def _apart(ends: Iterable[tuple[float, Line]], least: float) -> list[tuple[float, Line]]:
    """Labels pushed down where they would cover one another."""
    found: list[tuple[float, Line]] = []
    for y, line in sorted(ends, key=lambda end: end[0]):
        found.append((y if not found else max(y, found[-1][0] + least), line))
    return found


def _steps(low: float, high: float, log: bool) -> list[float]:
    if log:
        powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        return [10.0**power for power in powers if low <= 10.0**power <= high]
    rough = high / 5
    unit = 10 ** math.floor(math.log10(rough))
    step = next(unit * factor for factor in (1, 2, 5, 10) if unit * factor >= rough)
    return [round(step * place, 12) for place in range(int(high / step) + 1)]


def _clip(value: float) -> float:
    return min(1.0, max(0.0, value))


def _or(value: float | None, other: float) -> float:
    return other if value is None else value
