"""Bar charts drawn by matplotlib: upright or lying bars, values printed or to be read off the axis.

The chart is put together from matplotlib's artists in pixels, without `Axes`: that takes half the time, keeps
a user's matplotlibrc out of the picture, and every bar ends where its value says.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from eval.benchmarks.embedded.canvas import encode
from eval.benchmarks.embedded.colours import INKS, Colour, dark, jitter, paper
from eval.benchmarks.embedded.drawing import Drawing, Part
from eval.benchmarks.embedded.names import draw_names
from eval.benchmarks.embedded.plot import Plot, share

_DPI = 100
_TITLES = ("Sales", "Survey", "Output", "Results", "Visits", "Stock")


@dataclass(frozen=True)
class Bars:
    """What a chart says: a value for each name. `top` is the upper end of the value axis."""

    names: tuple[str, ...]
    values: tuple[float, ...]
    top: float

    def printed(self, index: int) -> str:
        return f"{self.values[index]:g}"

    @property
    def highest(self) -> str:
        return self.names[self.values.index(max(self.values))]

    @property
    def lowest(self) -> str:
        return self.names[self.values.index(min(self.values))]


def draw_value(ask: str, rng: Random, part: Part) -> Drawing:
    """The value of one named bar."""
    bars, lying = _plan(rng, part)
    index = rng.randrange(len(bars.names))
    return Drawing(_paint(rng, bars, lying), bars.printed(index), {"name": bars.names[index]})


def draw_extreme(ask: str, rng: Random, part: Part) -> Drawing:
    """The name of the highest ("max") or lowest ("min") bar."""
    bars, lying = _plan(rng, part)
    return Drawing(_paint(rng, bars, lying), bars.highest if ask == "max" else bars.lowest, {})


def _plan(rng: Random, part: Part) -> tuple[Bars, bool]:
    lying = rng.random() < 0.4
    count = rng.randint(3, 6 if lying else 5)
    names = draw_names(rng, part, count, (2, 3) if lying or count < 5 else (2,))
    top = rng.choice((10, 50, 100, 500, 1000))

    def make() -> tuple[float, ...] | None:
        values = sorted(round(rng.uniform(0.22, 0.95) * top, 1 if top == 10 else 0) for _ in range(count))
        # The two largest and the two smallest stay clearly apart: about 8 pixels.
        if values[-1] - values[-2] < 0.06 * top or values[1] - values[0] < 0.06 * top:
            return None
        rng.shuffle(values)
        return tuple(values)

    return Bars(names, part.pick(make), top), lying


def _paint(rng: Random, bars: Bars, lying: bool) -> bytes:
    import numpy as np
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    width, height = rng.randint(264, 320), rng.randint(200, 280)
    figure = Figure(figsize=(width / _DPI, height / _DPI), dpi=_DPI, facecolor=share(paper(rng)))
    canvas = FigureCanvasAgg(figure)
    titled = rng.random() < 0.5
    plot = Plot(
        figure=figure,
        lying=lying,
        left=64 if lying else 40,
        bottom=24,
        right=width - 12,
        top=height - (26 if titled else 10),
        full=bars.top * 1.12,
        ink=dark(rng),
        points=rng.choice((8, 8.5, 9)),
        face=rng.choice(("DejaVu Sans", "DejaVu Sans", "DejaVu Serif")),
    )
    if titled:
        plot.text((plot.left + plot.right) / 2, height - 13, rng.choice(_TITLES), more=1)
    steps = rng.choice((4, 5))
    values = [bars.top * step / steps for step in range(steps + 1)]
    plot.ticks(values, marks=rng.random() < 0.5, rules=rng.random() < 0.4)
    fills = _fills(rng, len(bars.names))
    plot.bars(bars.names, bars.values, fills, rng.uniform(0.5, 0.78), printed=rng.random() < 0.6)
    plot.frame(closed=rng.random() < 0.5)
    canvas.draw()
    return encode(np.ascontiguousarray(np.asarray(canvas.buffer_rgba())[:, :, :3]), rng)


def _fills(rng: Random, count: int) -> list[Colour]:
    fills = [jitter(rng, colour) for colour in rng.sample(INKS[:-1], count)]
    return fills if rng.random() < 0.5 else fills[:1] * count
