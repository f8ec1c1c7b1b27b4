"""What the scripts for agentic benchmarks share: a registry with one scripted expert, and `maestro serve` over it."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
_START_S = 180.0


def started(doc: str | None, package: str, benchmark: str) -> tuple[Path, list[dict[str, Any]], Path]:
    """Reads the command line of a script whose docstring is `doc`: the harness's python, the real rows of `benchmark`
    (none where there is no such file, said on standard error), and the folder to write to, made."""
    parser = argparse.ArgumentParser(description=(doc or "").split("\n")[0])
    parser.add_argument("--harness", type=Path, required=True, help=f"python with {package}")
    folder = ROOT.parent / "shared" / "data" / "benchmarks" / benchmark
    parser.add_argument("--rows", type=Path, default=folder / "samples.jsonl")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    out = options.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    if not options.rows.is_file():
        print(f"no rows in {options.rows}: nothing to do", file=sys.stderr)
        return options.harness, [], out
    lines = options.rows.read_text(encoding="utf-8").splitlines()
    return options.harness, [json.loads(line) for line in lines], out


def write_registry(folder: Path, script: dict[str, Any]) -> Path:
    """A registry file whose only expert plays `script` (see eval.agentic.scripted)."""
    path = folder / "script.json"
    path.write_text(json.dumps(script), encoding="utf-8")
    registry = folder / "registry.yaml"
    target, options = "eval.agentic.scripted:ScriptedExpert", json.dumps({"script": str(path)})
    registry.write_text(
        "experts:\n  Scripted:\n    description: Plays written steps.\n"
        f'    backend: {{type: python, target: "{target}", options: {options}}}\n'
        "    limits: {max_concurrency: 16}\n"
    )
    return registry


@contextmanager
def serving(registry: Path, folder: Path, *options: str) -> Iterator[str]:
    """`maestro serve` on a free port while the block runs; gives its address. Raises RuntimeError where it does not
    start within three minutes."""
    shipped = ROOT / "configs" / "registry" / "agentic.yaml"
    words = ["serve", "--registry", str(registry), "--registry", str(shipped), "--port", "0"]
    words += ["--record", str(folder / "steps.jsonl"), *options]
    server = subprocess.Popen(
        [sys.executable, "-m", "maestro.cli.app", *words], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    killer = threading.Timer(_START_S, server.kill)
    killer.start()
    try:
        assert server.stdout is not None
        line = server.stdout.readline()
        killer.cancel()
        if not line:
            raise RuntimeError(f"maestro serve did not start (exit code {server.wait(10)})")
        yield json.loads(line)["url"]
    finally:
        killer.cancel()
        server.terminate()
        try:
            server.wait(15)
        except subprocess.TimeoutExpired:
            server.kill()
