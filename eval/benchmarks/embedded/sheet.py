"""A contact sheet of the embedded world: a line of pictures with question and answer for each family.

On the right stand the first four at the size in which a small policy sees them. The picture in docs/ is
made by `python -m eval.benchmarks.embedded.sheet docs/images/embedded-world.png`.
"""

from __future__ import annotations

import argparse
import io
import textwrap
from collections import defaultdict
from pathlib import Path

from PIL import Image, ImageDraw

from eval.benchmarks.embedded.canvas import font
from eval.benchmarks.embedded.world import FAMILIES, make_row
from eval.benchmarks.row import Row

_CELL, _TEXT, _SMALL, _HEAD = 180, 48, 96, 22


def contact_sheet(split: str, seed: int, columns: int = 5) -> Image.Image:
    """`columns` rows of each family, shrunk to fit a cell; on the right, four of them at 96 x 96 pixels."""
    rows: dict[str, list[Row]] = defaultdict(list)
    for index in range(columns * len(FAMILIES)):
        row = make_row(split, index, seed)
        rows[row.group].append(row)
    height = _HEAD + _CELL + _TEXT
    small_columns = 2
    width = columns * (_CELL + 8) + small_columns * (_SMALL + 6) + 8
    sheet = Image.new("RGB", (width, height * len(FAMILIES)), (248, 248, 248))
    draw = ImageDraw.Draw(sheet)
    for line, (family, members) in enumerate(sorted(rows.items())):
        top = line * height
        draw.text((8, top + 4), family, font=font("DejaVuSans-Bold.ttf", 14), fill="black")
        for column, row in enumerate(members):
            left = 8 + column * (_CELL + 8)
            picture = Image.open(io.BytesIO(row.pictures[0]))
            fitted = picture.copy()
            fitted.thumbnail((_CELL, _CELL))
            sheet.paste(fitted, (left, top + _HEAD))
            mark = "* " if row.extra["shared"] else ""
            words = textwrap.wrap(f"{mark}{row.question}  [{row.answer}]", 29)[:3]
            for number, part in enumerate(words):
                place = left, top + _HEAD + _CELL + 3 + number * 14
                draw.text(place, part, font=font("DejaVuSans.ttf", 11), fill=(0, 70, 140))
            if column < 2 * small_columns:
                small = picture.resize((_SMALL, _SMALL), Image.Resampling.BICUBIC)
                x = 8 + columns * (_CELL + 8) + (column % 2) * (_SMALL + 6)
                sheet.paste(small, (x, top + _HEAD + (column // 2) * (_SMALL + 6)))
    return sheet


def main() -> None:
    """Write a contact sheet as a PNG."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("path", type=Path, help="where to write the PNG")
    parser.add_argument("--split", default="train")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    options.path.parent.mkdir(parents=True, exist_ok=True)
    sheet = contact_sheet(options.split, options.seed)
    sheet.save(options.path, optimize=True)


if __name__ == "__main__":
    main()
