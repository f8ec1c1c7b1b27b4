"""What tools cost beside their models: the embedded detection with and without its drawing, and reading replies.

    python -m benchmarks.tools [--pictures 60]

Prints one line a measurement: the median processor time of one call in milliseconds.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

from PIL import Image

from eval.benchmarks.embedded.world import generate
from experts.embedded.shapes import find_shapes
from experts.images import Picture, load_picture
from experts.tools.box_reply import read_boxes
from experts.tools.detect import DetectTool
from experts.tools.drawing import draw_boxes

_FAMILIES = ("shape_colour", "relative_position", "shape_count")
_SEED = 5


def median_ms(call: Callable[[Any], Any], inputs: Sequence[Any]) -> float:
    """Processor time of one call, its first call left out."""
    call(inputs[0])
    times: list[float] = []
    for one in inputs:
        started = time.thread_time()
        call(one)
        times.append(1000 * (time.thread_time() - started))
    return statistics.median(times)


def embedded_pictures(count: int) -> list[Picture]:
    """Pictures of the families whose procedures use `detect`."""
    rows = (row for row in generate("train", 12 * count, seed=_SEED) if row.group in _FAMILIES)
    return [load_picture(row.pictures[0]) for row, _ in zip(rows, range(count), strict=False)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pictures", type=int, default=60)
    pictures = embedded_pictures(parser.parse_args().pictures)
    tool = DetectTool()
    print(f"detect, shapes alone      {median_ms(lambda p: find_shapes(p.rgb()), pictures):8.2f} ms")
    print(f"detect, with its drawing  {median_ms(tool.run, pictures):8.2f} ms")
    photo = load_picture(Image.effect_noise((1920, 1080), 60).convert("RGB"))
    boxes = [[16.0 * n, 9.0 * n, 16.0 * n + 200, 9.0 * n + 100] for n in range(100)]
    print(f"100 boxes on 1920x1080    {median_ms(lambda p: draw_boxes(p, boxes), [photo] * 5):8.2f} ms")
    entries = [{"bbox_2d": [n, 0, n + 9, 9], "label": f"thing {n}"} for n in range(4000)]
    reply = f"```json\n{json.dumps(entries)}\n```"
    print(f"a reply of 4,000 boxes    {median_ms(lambda text: read_boxes(text, 200), [reply] * 5):8.2f} ms")
    print(f"256 KiB of brackets       {median_ms(lambda text: read_boxes(text, 200), ['[' * 262_144] * 5):8.2f} ms")


if __name__ == "__main__":
    main()
