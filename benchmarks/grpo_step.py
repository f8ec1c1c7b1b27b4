"""Seconds per GRPO step and where they go, on this machine.

    python benchmarks/grpo_step.py runs/demo            # from a finished run: no new training
    python benchmarks/grpo_step.py --steps 15 --run runs/bench --from runs/demo

16 prompts x 8 trajectories of about 25 response tokens with an image each. The second form runs new steps from another
run's policy (so that trajectories have their usual length) and leaves the first three, in which processes warm up, out.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path

from train.curves import read_metrics

ROOT = Path(__file__).resolve().parents[1]
PARTS = ("seconds", "seconds_gen", "seconds_update", "seconds_sync", "seconds_checkpoint")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("finished", nargs="?", type=Path, help="folder of a finished run")
    parser.add_argument("--steps", type=int, default=15)
    parser.add_argument("--run", type=Path, default=Path("runs/bench"))
    parser.add_argument("--from", dest="source", type=Path, default=Path("runs/demo"), help="run to start from")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    run = args.finished or train(args.run, args.source, args.steps)
    records = [r for r in read_metrics(run / "metrics.jsonl") if r["step"] > 3 and "seconds_checkpoint" not in r]
    if len(records) < 5:
        sys.exit(f"{run}: fewer than five plain steps in metrics.jsonl")
    print(json.dumps(split(records)) if args.json else table(split(records)))


def train(run: Path, source: Path, steps: int) -> Path:
    command = [
        sys.executable, "-m", "maestro.cli.app", "train", str(ROOT / "configs/train/embedded.yaml"), f"run={run}",
        f"policy={source / 'policy'}", f"grpo.steps={steps}", "checkpoint.every=1000", "checkpoint.validate_every=1000",
        "resume=never",
    ]  # fmt: skip
    subprocess.run(command, check=True, cwd=ROOT)
    return run


def split(records: list[dict]) -> dict[str, float]:
    """Median seconds of each part, and what the rollouts look like."""
    found = {part: statistics.median(r[part] for r in records if part in r) for part in PARTS if part in records[0]}
    found["seconds_other"] = found["seconds"] - found["seconds_gen"] - found["seconds_update"]
    found["steps"] = len(records)
    found["rollouts"] = statistics.median(r["rollouts"] for r in records)
    found["response_tokens"] = statistics.median(r["response_tokens"] for r in records)
    return {key: round(value, 2) for key, value in found.items()}


def table(result: dict[str, float]) -> str:
    return "\n".join(f"{key:<20} {value:>8}" for key, value in result.items())


if __name__ == "__main__":
    main()
