"""How fast `maestro data prepare` is, how much memory it takes, and whether planted leaks are found.

    python benchmarks/data_prepare.py --rows 20000

Makes rows with JPEG pictures of 640x480 in a folder, plants copies of evaluated pictures and questions among them
(exact, resized, recompressed, the same long question in capitals on another picture), prepares a mixture of all rows
and prints one JSON object. CPU seconds are of the whole process, decoding threads included, without making the rows;
memory is the process's resident size a quarter through the rows and at its peak after that.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

SPEC = "name: {0}\ntitle: {0}\nlicence: made\nid: id\nquestion: question\nanswer: {{columns: answer}}\n" \
    "images: {{columns: image}}\nscorer: {{official: {0}, source: made}}\n"  # fmt: skip
LONG = (
    "Count the birds of kind {0} that sit on the wires between pole {0} and the red barn, leave out those that fly, "
    "and add the eggs in nest number {0} below them"
)
EVALUATED = 1000
KINDS = ("exact", "resized", "recompressed", "capitals")


def picture(seed: int) -> Image.Image:
    """Coloured blobs with some grain, so that a JPEG of it has the size of a photograph's."""
    random = np.random.default_rng(seed)
    blobs = Image.fromarray(random.integers(0, 256, (6, 8, 3), np.uint8)).resize((640, 480), Image.Resampling.BICUBIC)
    grain = random.normal(0, 6, (480, 640, 1)).astype(np.float32)
    return Image.fromarray(np.clip(np.asarray(blobs, np.float32) + grain, 0, 255).astype(np.uint8))


def jpeg(image: Image.Image, quality: int = 88) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=quality)
    return buffer.getvalue()


def planted(kind: str, number: int) -> tuple[str, bytes]:
    """A training row that is a copy of evaluated row `number`."""
    shown = picture(1_000_000 + number)
    if kind == "exact":
        return "What is this?", jpeg(shown)
    if kind == "resized":
        return "What is this?", jpeg(shown.resize((417, 313), Image.Resampling.LANCZOS))
    if kind == "recompressed":
        return "What is this?", jpeg(shown, 35)
    return LONG.format(number).upper() + " !", jpeg(picture(2_000_000 + number))


def write(file: Path, rows: Any) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema({"id": pa.int64(), "question": pa.string(), "answer": pa.string(), "image": pa.binary()})
    file.parent.mkdir(parents=True)
    with pq.ParquetWriter(file, schema) as writer:
        shard = []
        for row in rows:
            shard.append(row)
            if len(shard) == 200:
                writer.write_table(pa.Table.from_pylist(shard, schema))
                shard.clear()
        if shard:
            writer.write_table(pa.Table.from_pylist(shard, schema))


def resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


class Watch:
    """A reporter that looks at the memory after every shard."""

    def __init__(self, rows: int) -> None:
        self.rows, self.done, self.early, self.peak = rows, 0, 0.0, 0.0

    def phase(self, name: str, done: int) -> None:
        self.done = 0

    def advance(self, rows: int) -> None:
        self.done += rows
        if self.done <= self.rows // 4:
            self.early = max(self.early, resident_mb())
        else:
            self.peak = max(self.peak, resident_mb())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=20000)
    parser.add_argument("--each", type=int, default=25, help="planted leaks of each kind")
    count, each = (arguments := parser.parse_args()).rows, arguments.each
    from eval.benchmarks.parquet import write_parquet
    from eval.benchmarks.row import Row
    from eval.yaml_config import load_config
    from maestro.cli.data_sources import specs_of
    from train.data.config import DataConfig
    from train.data.prepare import Inputs, prepare
    from train.data.workspace import Workspace

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "benchmarks").mkdir()
        (folder / "benchmarks/ocrbench.yaml").write_text(SPEC.format("ocrbench"))
        (folder / "chartqa.yaml").write_text(SPEC.format("chartqa"))
        copies = [(kind, i) for k, kind in enumerate(KINDS) for i in range(k * each, (k + 1) * each)]

        def training() -> Any:
            for i in range(count):
                kind = copies[i] if i < len(copies) else None
                question, data = planted(*kind) if kind else (f"How many birds on tree {i}?", jpeg(picture(i)))
                yield {"id": i, "question": question, "answer": str(i % 20), "image": data}

        evaluated = min(EVALUATED, max(count // 4, 4 * each))
        write(folder / "data/chartqa/train.parquet", training())

        def benchmark() -> Any:
            for i in range(evaluated):
                data = jpeg(picture(1_000_000 + i))
                yield {"id": i, "question": LONG.format(i), "answer": "1", "image": data}

        write(folder / "data/ocrbench/test.parquet", benchmark())
        config = folder / "made.yaml"
        config.write_text(json.dumps({
            "name": "made", "out": str(folder / "out"), "prompt_style": "none", "leaks": {"benchmarks": "benchmarks"},
            "sources": {"chartqa": {"benchmark": "chartqa.yaml", "rows": count - len(copies)}},
        }))  # fmt: skip
        settings = load_config(DataConfig, config)
        specs = specs_of(settings, folder, folder / "data", folder / "data")
        sources, benchmarks = specs.readers(10.0)
        watch, work = Watch(count), Workspace(settings.out, "made")
        wall, cpu = time.perf_counter(), time.process_time()
        mixture = prepare(settings, Inputs(sources, benchmarks, None), work, watch)
        rows = (
            Row(**{key: getattr(row, key) for key in type(row).__dataclass_fields__})
            for row in mixture.rows(work, "train")
        )
        written = write_parquet(rows, settings.out / "train.parquet", system_prompt=None)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        found = {int(leak["row"].rpartition("/")[2]) for leak in mixture.leaks}
        work.close()
        read = count + evaluated
        print(json.dumps({
            "rows": count, "evaluated_rows": evaluated, "written": written,
            "cpu_ms_per_row": round(1000 * cpu / read, 2), "rows_per_cpu_second": round(read / cpu, 1),
            "rows_per_second": round(read / wall, 1),
            "memory_mb": {"first_quarter": round(watch.early), "after_it": round(watch.peak)},
            "found": {kind: sum(i in found for i, (k, _) in enumerate(copies) if k == kind) for kind in KINDS},
            "planted_of_each": each, "others_called_leaks": len(found - set(range(len(copies)))),
        }))  # fmt: skip


if __name__ == "__main__":
    main()
