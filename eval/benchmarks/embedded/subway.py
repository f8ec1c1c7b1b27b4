"""Coloured routes between four stations on a grid; they may cross but never run along one another."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations
from random import Random

from eval.benchmarks.embedded.canvas import Canvas
from eval.benchmarks.embedded.colours import INKS, dark, jitter, paper
from eval.benchmarks.embedded.drawing import Drawing, Part

CELLS = 18
Node = tuple[int, int]

# Station -> (where its letter stands, the three grid points where routes may start, the way they leave).
_STATIONS: dict[str, tuple[Node, tuple[Node, ...], Node]] = {
    "A": ((9, 1), ((8, 2), (9, 2), (10, 2)), (0, 1)),
    "B": ((17, 9), ((16, 8), (16, 9), (16, 10)), (-1, 0)),
    "C": ((9, 17), ((8, 16), (9, 16), (10, 16)), (0, -1)),
    "D": ((1, 9), ((2, 8), (2, 9), (2, 10)), (1, 0)),
}
_PORTS = frozenset(port for _, ports, _ in _STATIONS.values() for port in ports)


@dataclass
class Tracks:
    """Grid points taken so far: `straight` ones, passed in a direction; `solid` ones, where a route turns."""

    straight: set[tuple[Node, bool]] = field(default_factory=set)
    solid: set[Node] = field(default_factory=set)

    def add(self, walk: list[Node]) -> bool:
        """Take a walk over neighbouring grid points if it only crosses what is there; True if taken."""
        turns, passes = {walk[0], walk[-1]}, set()
        for before, here, after in zip(walk, walk[1:], walk[2:], strict=False):
            flat = before[1] == here[1]
            if flat != (here[1] == after[1]):
                turns.add(here)
            else:
                passes.add((here, flat))
        passed = {node for node, _ in passes}
        taken = {node for node, _ in self.straight}
        if len(set(walk)) != len(walk) or turns & (taken | self.solid) or passed & self.solid or passes & self.straight:
            return False
        self.straight |= passes
        self.solid |= turns
        return True


def draw_routes(ask: str, rng: Random, part: Part) -> Drawing:
    """How many routes join two named stations, 0 to 3."""

    def make() -> tuple[list[list[Node]], list[tuple[str, str]], tuple[str, str]] | None:
        walks, joined = _lay(rng, rng.randint(2, 5))
        if len(walks) < 2:
            return None
        pair = rng.choice(joined) if rng.random() < 0.7 else tuple(sorted(rng.sample("ABCD", 2)))
        return walks, joined, (pair[0], pair[1])

    walks, joined, pair = part.pick(make, content=lambda made: (sorted(made[1]), made[2], len(made[0][0])))
    size = rng.randint(240, 320)
    unit = size / CELLS
    ink, face = dark(rng), rng.choice(("DejaVuSans-Bold.ttf", "DejaVuSans.ttf"))
    canvas = Canvas(size, size, paper(rng))
    stroke = rng.choice((3, 4, 5))
    for walk, colour in zip(walks, rng.sample(INKS[:-1], len(walks)), strict=True):
        canvas.line([(x * unit, y * unit) for x, y in _corners(walk)], jitter(rng, colour), stroke)
    for name, ((x, y), _, _) in _STATIONS.items():
        canvas.text(x * unit, y * unit, name, ink, face, round(size / 17))
    one, two = pair if rng.random() < 0.5 else pair[::-1]
    return Drawing(canvas.png(rng), str(joined.count(pair)), {"one": one, "two": two})


def _lay(rng: Random, wanted: int) -> tuple[list[list[Node]], list[tuple[str, str]]]:
    free = {name: rng.sample(ports, len(ports)) for name, (_, ports, _) in _STATIONS.items()}
    tracks, walks, joined = Tracks(), [], []
    for _ in range(40):
        pairs = [pair for pair in combinations("ABCD", 2) if free[pair[0]] and free[pair[1]]]
        if len(walks) == wanted or not pairs:
            break
        # Every second route repeats an earlier pair of stations, so that counts above 1 are common.
        again = [pair for pair in joined if pair in pairs]
        one, two = rng.choice(again) if again and rng.random() < 0.5 else rng.choice(pairs)
        walk = _walk(rng, free[one][-1], _STATIONS[one][2], free[two][-1], _STATIONS[two][2])
        if (set(walk) & _PORTS) == {walk[0], walk[-1]} and tracks.add(walk):
            free[one].pop()
            free[two].pop()
            walks.append(walk)
            joined.append((one, two))
        else:
            rng.shuffle(free[one])
            rng.shuffle(free[two])
    return walks, joined


def _walk(rng: Random, start: Node, leave: Node, end: Node, arrive: Node) -> list[Node]:
    """A walk of unit steps that leaves both stations straight and wanders by up to two random points."""
    out, back = rng.randint(1, 5), rng.randint(1, 5)
    first = start[0] + leave[0] * out, start[1] + leave[1] * out
    last = end[0] + arrive[0] * back, end[1] + arrive[1] * back
    stops = [start, first]
    for _ in range(rng.randint(0, 2)):
        stops.append((rng.randint(4, 14), rng.randint(4, 14)))
    walk = [start]
    for stop in [*stops[1:], last, end]:
        sideways = rng.random() < 0.5
        corner = (stop[0], walk[-1][1]) if sideways else (walk[-1][0], stop[1])
        for target in (corner, stop):
            while walk[-1] != target:
                x, y = walk[-1]
                walk.append((x + (target[0] > x) - (target[0] < x), y + (target[1] > y) - (target[1] < y)))
    return walk


def _corners(walk: list[Node]) -> list[Node]:
    """The walk without the points that it passes straight on."""
    inner = (
        here
        for before, here, after in zip(walk, walk[1:], walk[2:], strict=False)
        if (before[1] == here[1]) != (here[1] == after[1])
    )
    return [walk[0], *inner, walk[-1]]
