"""A real training run whose experts are killed in its middle and started again: does it wait, go on and lose no row?

    python benchmarks/expert_outage.py --policy runs/embedded/policy                       # all experts at once
    python benchmarks/expert_outage.py --policy runs/embedded/policy --kill Chart-Reader --down 8

The embedded experts are served over HTTP, each by a process of its own (benchmarks/embedded_server.py). After
`--after` steps those named by `--kill` get SIGKILL; `--down` seconds later they are started again on their ports.
Prints what the run said, and one JSON object: steps, pauses, lost rollouts, rows that came back, rows that are missing.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from train.curves import read_metrics
from train.outage import pause_of
from train.paths import RunPaths
from train.rollout_log import latest, read_records

ROOT = Path(__file__).resolve().parents[1]
HERE = Path(__file__).resolve().parent
LONGEST_S = 900.0


class Servers:
    """One process for each expert, on a port that it keeps."""

    def __init__(self, names: list[str]) -> None:
        self.ports = dict(zip(names, _free_ports(len(names)), strict=True))
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, names: list[str]) -> None:
        for name in names:
            command = [sys.executable, str(HERE / "embedded_server.py"), "--port", str(self.ports[name])]
            self._processes[name] = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        for name in names:
            output = self._processes[name].stdout
            assert output is not None
            json.loads(output.readline())  # it listens

    def kill(self, names: list[str]) -> None:
        for name in names:
            self._processes[name].kill()
            self._processes[name].wait(30)


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as open_:
        sockets = [open_.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


def write_registry(folder: Path, servers: Servers) -> tuple[Path, Path]:
    """The embedded registry with its experts behind servers, and the endpoints file that says where they are."""
    registry = yaml.safe_load((ROOT / "configs/registry/embedded.yaml").read_text(encoding="utf-8"))
    endpoints: dict[str, Any] = {}
    for name, expert in registry["experts"].items():
        # answers must not come from the cache: nobody would miss an expert that is down
        expert.pop("deterministic", None)
        expert.pop("revision", None)
        expert["backend"] = {"type": "openai", "model": name, "replicas": [{"url": "http://127.0.0.1:9/v1"}]}
        expert["limits"] = {"timeout_s": 10}
        endpoints[name] = {"model": name, "replicas": [{"url": f"http://127.0.0.1:{servers.ports[name]}/v1"}]}
    (folder / "registry.yaml").write_text(yaml.safe_dump(registry, sort_keys=False), encoding="utf-8")
    served = {"version": 1, "written": time.time(), "experts": endpoints, "tools": {}}
    (folder / "endpoints.json").write_text(json.dumps(served), encoding="utf-8")
    return folder / "registry.yaml", folder / "endpoints.json"


@contextlib.contextmanager
def training(args: argparse.Namespace, registry: Path, endpoints: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The run, as anybody would start it; its output goes to `said` in its folder."""
    args.run.mkdir(parents=True, exist_ok=True)
    command = [
        sys.executable, "-m", "maestro.cli.app", "train", str(ROOT / "configs/train/embedded.yaml"),
        f"run={args.run}", f"policy={args.policy.resolve()}", f"registry=[{registry}]", f"endpoints={endpoints}",
        "data.train_rows=96", "data.validation_rows=8", f"grpo.steps={args.steps}", f"grpo.prompts={args.prompts}",
        f"grpo.samples={args.samples}", "checkpoint.every=1", "checkpoint.validate_every=0", "watch.probe_seconds=1",
        "watch.pages_every=0", f"watch.pause_above={args.pause_above}",
    ]  # fmt: skip
    with (args.run / "said").open("wb") as said:
        job = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.STDOUT)
    try:
        yield job
    finally:
        if job.poll() is None:
            job.terminate()
            job.wait(60)


def follow(args: argparse.Namespace, paths: RunPaths, servers: Servers, job: subprocess.Popen[bytes]) -> dict[str, Any]:
    """Kills and restarts at the right moments; returns what was seen of the pause."""
    began = time.monotonic()
    killed = started = None
    pause = None
    while job.poll() is None and time.monotonic() - began < LONGEST_S:
        time.sleep(0.05)
        now = time.monotonic()
        if killed is None and len(read_metrics(paths.metrics)) >= args.after:
            servers.kill(args.kill)
            killed = now
        seen = pause_of(paths.pauses)
        if seen is not None and (pause is None or seen.waiting > pause["waiting"]):
            pause = {"why": seen.why, "waiting": seen.waiting}
            if seen.waiting:
                watch = [sys.executable, "-m", "maestro.cli.app", "train", "watch", str(args.run), "--once"]
                shown = subprocess.run(watch, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
                pause["watch"] = [line.strip(" │") for line in shown.stdout.splitlines() if "paused" in line]
        if killed is not None and started is None and now - killed >= args.down:
            servers.start(args.kill)
            started = time.monotonic()
    return {"pause": pause, "killed_after_steps": args.after, "down_s": args.down}


def told(paths: RunPaths, args: argparse.Namespace) -> dict[str, Any]:
    """What the run's own files say."""
    steps = read_metrics(paths.metrics)
    records, _ = read_records(paths.rollouts)
    groups: dict[tuple[int, str], list[bool]] = {}
    for step, rollouts in latest(records):
        for one in rollouts:
            groups.setdefault((step, one.row), []).append(one.valid)
    taught = {row for (_, row), valid in groups.items() if sum(valid) >= 2}
    met = {row for _, row in groups}
    plays = Counter(row for _, row in groups)
    line = [json.loads(text) for text in paths.requeue.read_text().splitlines()]
    waiting = {"/".join(one["row"]) for one in line[-1]["line"] if one["tries"]} if line else set()
    keys = ("rollouts", "invalid", "seconds", "seconds_paused", "rows_requeued", "rows_again", "rows_given_up")
    order = _order(paths, args.steps * args.prompts, steps)
    return {
        "steps": [{"step": s["step"], **{key: s.get(key) for key in keys}} for s in steps],
        "rows_met": len(met),
        "rows_met_twice": sorted(row for row, count in plays.items() if count > 1),
        "rows_that_taught_nothing": sorted(met - taught),
        "waiting_at_the_end": sorted(waiting),
        "rows_skipped": sorted(set(order[: len(met)]) - met),
        "full_groups": sum(len(valid) == args.samples for valid in groups.values()),
    }


def _order(paths: RunPaths, count: int, steps: list[dict[str, Any]]) -> list[str]:
    """The rows in the order in which verl's loader gives them."""
    import pyarrow.parquet as pq
    import torch
    from torchdata.stateful_dataloader.sampler import RandomSampler

    rows = [extra["id"] for extra in pq.read_table(paths.train_rows, columns=["extra_info"])["extra_info"].to_pylist()]
    generator = torch.Generator()
    generator.manual_seed(json.loads(paths.config.read_text())["seed"])
    return [rows[place] for place in RandomSampler(range(len(rows)), generator=generator)][:count]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--policy", type=Path, required=True, help="Hugging Face folder of a policy that calls experts")
    parser.add_argument("--run", type=Path, default=None, help="folder of the run; none = a temporary one")
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--prompts", type=int, default=4)
    parser.add_argument("--samples", type=int, default=4)
    parser.add_argument("--after", type=int, default=2, help="steps before the experts are killed")
    parser.add_argument("--down", type=float, default=20.0, help="seconds until they are started again")
    parser.add_argument("--kill", nargs="*", default=None, help="experts to kill; none named = all")
    parser.add_argument("--pause-above", type=float, default=0.5, help="watch.pause_above of the run")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="maestro-outage-") as scratch:
        args.run = args.run or Path(scratch) / "run"
        names = list(yaml.safe_load((ROOT / "configs/registry/embedded.yaml").read_text())["experts"])
        args.kill = args.kill or names
        servers, paths = Servers(names), RunPaths.at(args.run)
        servers.start(names)
        try:
            registry, endpoints = write_registry(Path(scratch), servers)
            with training(args, registry, endpoints) as job:
                seen = follow(args, paths, servers, job)
            print((args.run / "said").read_text(encoding="utf-8"))
            print(json.dumps({"exit_code": job.returncode, **seen, **told(paths, args)}, indent=1))
        finally:
            servers.kill(names)
    sys.exit(job.returncode)


if __name__ == "__main__":
    main()
