"""The plot area of a bar chart in pixels (y up, as matplotlib has it): frame, ticks, bars, labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from eval.benchmarks.embedded.colours import Colour

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def share(colour: Colour) -> tuple[float, float, float]:
    """A colour as matplotlib wants it: channels from 0 to 1."""
    return colour[0] / 255, colour[1] / 255, colour[2] / 255


_PALE = (216, 216, 216)


@dataclass(frozen=True)
class Plot:
    """A rectangle of `figure` from (left, bottom) to (right, top); the value axis ends at `full`.

    `lying` bars run to the right, with names on the left; upright ones run up, with names below.
    """

    figure: Figure
    lying: bool
    left: float
    bottom: float
    right: float
    top: float
    full: float
    ink: Colour
    points: float
    face: str

    def text(
        self, x: float, y: float, text: str, across: str = "center", along: str = "center", more: float = 0
    ) -> None:
        """Text at a pixel; `across`, `along`: which side of it lies there; `more`: points above the usual."""
        from matplotlib.transforms import IdentityTransform

        self.figure.text(
            x, y, text, ha=across, va=along, transform=IdentityTransform(),
            family=self.face, size=self.points + more, color=share(self.ink),
        )  # fmt: skip

    def line(self, xs: Sequence[float], ys: Sequence[float], colour: Colour, order: float = 1) -> None:
        """A thin line through pixels; higher `order` lies above lower."""
        from matplotlib.lines import Line2D
        from matplotlib.transforms import IdentityTransform

        self.figure.add_artist(
            Line2D(xs, ys, color=share(colour), linewidth=0.8, zorder=order, transform=IdentityTransform())
        )

    def frame(self, *, closed: bool) -> None:
        """The two axes, or the whole box."""
        xs, ys = [self.left, self.left, self.right], [self.top, self.bottom, self.bottom]
        if closed:
            xs, ys = [*xs, self.right, self.left], [*ys, self.top, self.top]
        self.line(xs, ys, self.ink)

    def ticks(self, values: Sequence[float], *, marks: bool, rules: bool) -> None:
        """Numbers along the value axis, with little marks and with pale rules across the plot if wanted."""
        for value in values:
            at = self.reach(value)
            if rules and value:
                self._across(at, (self.bottom, self.top) if self.lying else (self.left, self.right), _PALE)
            if marks:
                foot = self.bottom if self.lying else self.left
                self._across(at, (foot - 3, foot), self.ink)
            if self.lying:
                self.text(at, self.bottom - 6, f"{value:g}", along="top")
            else:
                self.text(self.left - 6, at, f"{value:g}", across="right", along="center_baseline")

    def bars(
        self,
        names: Sequence[str],
        values: Sequence[float],
        fills: Sequence[Colour],
        thickness: float,
        *,
        printed: bool,
    ) -> None:
        """Bars as thick as a share of their pitch, their names, and their values at the ends if `printed`."""
        from matplotlib.patches import Rectangle
        from matplotlib.transforms import IdentityTransform

        start, stop = (self.top, self.bottom) if self.lying else (self.left, self.right)
        pitch = (stop - start) / len(names)
        thick = abs(pitch) * thickness
        for index, (name, value, fill) in enumerate(zip(names, values, fills, strict=True)):
            middle, end = start + pitch * (index + 0.5), self.reach(value)
            if self.lying:
                box = (self.left, middle - thick / 2), end - self.left, thick
                self.text(self.left - 6, middle, name, across="right", along="center_baseline")
            else:
                box = (middle - thick / 2, self.bottom), thick, end - self.bottom
                self.text(middle, self.bottom - 6, name, along="top")
            self.figure.add_artist(Rectangle(*box, color=share(fill), linewidth=0, transform=IdentityTransform()))
            if printed and self.lying:
                self.text(end + 4, middle, f"{value:g}", across="left", along="center_baseline")
            elif printed:
                self.text(middle, end + 3, f"{value:g}", along="bottom")

    def _across(self, at: float, span: tuple[float, float], colour: Colour) -> None:
        """A line square to the value axis at one of its pixels; pale ones lie behind the bars."""
        flat = (at, at)
        self.line(*((flat, span) if self.lying else (span, flat)), colour, order=0 if colour == _PALE else 3)

    def reach(self, value: float) -> float:
        """The pixel along the value axis where a value lies."""
        low, high = (self.left, self.right) if self.lying else (self.bottom, self.top)
        return low + (high - low) * value / self.full
