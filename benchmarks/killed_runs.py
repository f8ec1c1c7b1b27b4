"""Three runs of one seed: two left alone, one killed with -9 at random moments. Does it go on as if nothing was?

    python benchmarks/killed_runs.py --from runs/demo --steps 30 --kills 3 --folder runs/killed

All start from the policy before RL of `--from`. The killed run's launcher and all its processes get SIGKILL at moments
drawn between the first step and the last, and the same command is started again. Prints one JSON object: rows, samples
and seeds of every step compared, steps, learning rates, and the mean distance between the reward curves: the killed
run lies within the spread when the nearer of the other two is at most as far from it as they are from each other.
Exit code 1 where anything differs that must not.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from train import processes
from train.curves import read_metrics
from train.paths import RunPaths
from train.rollout_log import latest, read_records

ROOT = Path(__file__).resolve().parents[1]
STEP_LIMIT_S = 120.0
START_LIMIT_S = 300.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--from", dest="source", type=Path, default=Path("runs/demo"), help="run to start from")
    parser.add_argument("--folder", type=Path, default=Path("runs/killed"))
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--every", type=int, default=5, help="steps between checkpoints")
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--moments", type=int, default=0, help="seed of the moments")
    args = parser.parse_args()
    first, second, killed = (RunPaths.at((args.folder / name).resolve()) for name in ("first", "second", "killed"))
    for paths in (first, second):
        run_alone(args, paths)
    moments = sorted(random.Random(args.moments).uniform(1, args.steps - 1) for _ in range(args.kills))
    for moment in moments:
        kill_at(args, killed, moment)
    run_alone(args, killed)
    result = {"steps": args.steps, "checkpoint_every": args.every, "killed_at": [round(m, 2) for m in moments]}
    result |= compare(first, second, killed)
    print(json.dumps(result))
    return 0 if all(result["same"].values()) and result["within_spread"] else 1


def start(args: Any, paths: RunPaths) -> subprocess.Popen[bytes]:
    command = [
        sys.executable, "-m", "maestro.cli.app", "train", str(ROOT / "configs/train/embedded.yaml"),
        f"run={paths.root}", f"policy={args.source / 'policy-before'}", f"grpo.steps={args.steps}",
        f"checkpoint.every={args.every}",
        "checkpoint.validate_every=100000", f"seed={args.seed}",
    ]  # fmt: skip
    return subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL)


def run_alone(args: Any, paths: RunPaths) -> None:
    code = start(args, paths).wait(timeout=START_LIMIT_S + STEP_LIMIT_S * args.steps)
    if code:
        sys.exit(f"train ended with {code}; see {paths.root}/logs")


def kill_at(args: Any, paths: RunPaths, moment: float) -> None:
    """SIGKILL to all of a run, at `moment` in steps: the fraction is that of the last step's seconds."""
    job, deadline = start(args, paths), time.monotonic() + START_LIMIT_S + STEP_LIMIT_S * args.steps
    while (done := steps_of(paths)) is None or done[-1]["step"] < int(moment):
        if job.poll() is not None or time.monotonic() > deadline:
            sys.exit(f"train ended or stood still before step {moment:.1f}; see {paths.root}/logs")
        time.sleep(0.1)
    time.sleep(done[-1]["seconds"] * (moment % 1))
    os.kill(job.pid, signal.SIGKILL)
    for process in processes.members(paths.root):
        process.kill()
    job.wait(timeout=60)
    print(f"killed at {moment:.2f}", file=sys.stderr, flush=True)


def steps_of(paths: RunPaths) -> list[dict[str, Any]] | None:
    return (read_metrics(paths.metrics) or None) if paths.metrics.exists() else None


def rollouts(paths: RunPaths) -> dict[int, list[tuple[str, int, int]]]:
    records, _ = read_records(paths.rollouts)
    return {step: sorted((r.row, r.sample, r.seed) for r in done) for step, done in latest(records)}


def compare(first: RunPaths, second: RunPaths, killed: RunPaths) -> dict[str, Any]:
    metrics = [read_metrics(paths.metrics) for paths in (first, second, killed)]
    rows = [rollouts(paths) for paths in (first, second, killed)]
    steps = [[record["step"] for record in one] for one in metrics]
    rates = [[record.get("rate") for record in one] for one in metrics]
    rewards = [[record["reward"] for record in one] for one in metrics]

    def apart(one: int, other: int) -> float:
        pairs = list(zip(rewards[one], rewards[other], strict=False))
        return sum(abs(a - b) for a, b in pairs) / len(pairs)

    alone, broken = apart(0, 1), min(apart(0, 2), apart(1, 2))
    return {
        "same": {
            "rows_samples_seeds": rows[0] == rows[1] == rows[2],
            "steps": steps[0] == steps[1] == steps[2],
            "rates": rates[0] == rates[1] == rates[2],
        },
        "mean_reward_distance": {"first_second": alone, "killed_nearer": broken},
        "last_ten_steps_reward": [round(sum(one[-10:]) / len(one[-10:]), 4) for one in rewards],
        "within_spread": broken <= alone,
    }


if __name__ == "__main__":
    sys.exit(main())
