"""A small mixture made in a folder: two sources, one benchmark, pictures that differ, and the command that reads it."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

SPEC = """
name: {name}
title: {name}
licence: mine
id: id
question: question
answer: {{columns: answer}}
images: {{columns: image}}
scorer: {{official: {name}, source: made}}
"""


def photo(seed: int, size: tuple[int, int] = (96, 64)) -> Image.Image:
    """Smooth coloured blobs, other ones for each seed."""
    coarse = np.random.default_rng(seed).integers(0, 256, (5, 7, 3), np.uint8)
    return Image.fromarray(coarse).resize(size, Image.Resampling.BICUBIC)


def encoded(image: Image.Image, kind: str = "JPEG", **options: Any) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def make_mixture(folder: Path, **config: Any) -> Path:
    """chartqa: 30 rows, pictures 0 to 29; tallyqa: 30 rows, pictures 100 to 129; evaluated on: 10 rows, pictures 900
    to 909. The config asks for 8 + 2 rows of each."""
    benchmarks = folder / "benchmarks"
    benchmarks.mkdir(parents=True)
    (benchmarks / "ocrbench.yaml").write_text(SPEC.format(name="ocrbench"))
    for name in ("chartqa", "tallyqa"):
        (folder / f"{name}.yaml").write_text(SPEC.format(name=name))
    data = folder / "data"
    write_rows(data / "chartqa", rows_of(range(30), lambda i: f"What is the value of bar {i}?"))
    write_rows(data / "tallyqa", rows_of(range(100, 130), lambda i: f"How many birds sit on tree {i}?"))
    write_rows(data / "ocrbench", rows_of(range(900, 910), lambda i: f"What is written on sign {i}?"))
    source = {"rows": 8, "validation_rows": 2}
    whole = {
        "name": "made",
        "out": str(folder / "out"),
        "prompt_style": "none",
        "sources": {name: {"benchmark": f"{name}.yaml", **source} for name in ("chartqa", "tallyqa")},
        "leaks": {"benchmarks": "benchmarks"},
        **config,
    }
    file = folder / "made.yaml"
    file.write_text(json.dumps(whole))  # JSON is YAML
    return file


def rows_of(numbers: Sequence[int] | range, question: Callable[[int], str]) -> list[tuple[dict[str, Any], bytes]]:
    return [({"id": i, "question": question(i), "answer": str(i)}, encoded(photo(i))) for i in numbers]


def write_rows(folder: Path, rows: list[tuple[dict[str, Any], bytes]]) -> None:
    (folder / "images").mkdir(parents=True, exist_ok=True)
    with (folder / "samples.jsonl").open("w") as stream:
        for row, picture in rows:
            name = f"{row['id']}.jpg"
            (folder / "images" / name).write_bytes(picture)
            stream.write(json.dumps({**row, "image": name}) + "\n")
