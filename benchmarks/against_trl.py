"""Seconds a generated token: this project's training beside TRL's GRPOTrainer, same machine, policy, rows and reward.

    python -m venv /tmp/trl && /tmp/trl/bin/pip install --no-deps -r constraints/trl.txt
    echo "import site; site.addsitedir('$PWD/.venv/lib/python3.11/site-packages')" > \
        /tmp/trl/lib/python3.11/site-packages/ours.pth
    python benchmarks/against_trl.py --python /tmp/trl/bin/python --from runs/demo

TRL lives in an environment of its own that sees the packages of ours: same torch, same transformers. It generates with
transformers in one process (its vLLM mode needs a GPU); ours is the run that `maestro train` starts: verl, Ray, vLLM.

The task takes one turn: name the kind of picture, repeat the question, answer (`<think> a bar chart. How many ...?
</think><answer> 4 </answer>`), about as many tokens as a rollout with a call has. The policy of a finished run learns
that form first (a short cold start, no part of any time). Both then train from this one folder on the same rows in the
same order, 16 prompts x 8 samples a step, at most 48 tokens each, temperature 1, one update a step by AdamW, float32,
sdpa, no reference model, no gradient checkpointing, reward from `rewards`. TRL gets all 128 rollouts in one batch,
decoded pictures, every core, and no second pass for old log-probabilities.

A step lasts from the end of the step before it to its own end, whatever happens in between. The sides take turns, each
run is a new process; its first steps (warm-up) and its last one (ours writes a checkpoint there) are left out. Exit
code 3: skipped, there is no TRL.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from train.curves import read_metrics
from train.paths import RunPaths

ROOT = Path(__file__).resolve().parents[1]
WORKER = Path(__file__).with_name("trl_worker.py")
REGISTRY = ROOT / "configs/registry/embedded.yaml"
PROMPTS, SAMPLES, MOST_TOKENS = 16, 8, 48
LEARNED_STEPS = 200  # of the cold start that teaches the form
WARM = 3
MOST_SECONDS = 1800.0  # one run of one side
SKIPPED = 3


@dataclass(frozen=True)
class Step:
    """seconds: from the end of the step before. tokens: sampled by the policy, all rollouts. reward: mean."""

    seconds: float
    seconds_gen: float
    tokens: int
    reward: float


def prepare(source: Path, folder: Path, steps: int) -> None:
    """Rows for `steps` steps and the policy that answers in one turn, both once."""
    import pyarrow.parquet as pq

    from train.cold_start import run_cold_start
    from train.config import ColdStartSection
    from train.demonstrations import Demonstration
    from train.rows import read_rows

    kept = RunPaths.at(source)
    table = pq.read_table(kept.train_rows)
    if table.num_rows < steps * PROMPTS:
        sys.exit(f"{kept.train_rows}: {table.num_rows} rows, {steps} steps need {steps * PROMPTS}")
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(table.slice(0, steps * PROMPTS), folder / "rows.parquet")
    if (folder / "policy" / "config.json").exists():
        return
    shown = [
        Demonstration(
            task.question,
            task.pictures[0],
            ((f"<think> {caption}. {task.question} </think><answer> {task.ground_truth} </answer>", True),),
        )
        for task, caption in read_rows(kept.train_rows)
        if task.pictures and isinstance(task.ground_truth, str)
    ]
    run_cold_start(
        kept.policy,
        folder / "policy",
        [(shown, 1.0)],
        ColdStartSection(steps=LEARNED_STEPS, batch=32, rate=1e-3),  # pyright: ignore[reportCallIssue]
        seed=0,
        log=folder / "cold_start.jsonl",
        on_step=lambda step, loss: print(f"cold start {step}: {loss:.3f}", flush=True) if step % 50 == 0 else None,
    )


def ours(folder: Path, number: int, steps: int) -> list[Step]:
    """One run of `maestro train`. Raises SystemExit where it fails or a rollout took more than one turn."""
    run = RunPaths.at(folder / f"ours-{number}")
    rows = json.dumps([str(folder / "rows.parquet")])
    command = [
        sys.executable, "-m", "maestro.cli.app", "train", str(ROOT / "configs/train/embedded.yaml"), f"run={run.root}",
        f"policy={folder / 'policy'}", f"data.train_files={rows}", f"data.validation_files={rows}",
        f"grpo.steps={steps}", f"grpo.prompts={PROMPTS}", f"grpo.samples={SAMPLES}",
        f"protocol.max_turn_tokens={MOST_TOKENS}", "protocol.horizon=1", "reward.min_calls=0",
        "checkpoint.every=1000", "checkpoint.validate_every=1000", "resume=never", f"seed={number}",
        "verl.data.shuffle=false", "verl.trainer.test_freq=-1",
    ]  # fmt: skip
    attempt = 1 + len(list((run.root / "logs").glob("verl-*.log")))
    ends = _ends(command, run.verl_metrics(attempt), folder / f"ours-{number}.log")
    records = read_metrics(run.metrics)
    if len(ends) != steps or len(records) != steps:
        sys.exit(f"{len(records)} of {steps} steps; see {folder / f'ours-{number}.log'}")
    if any(record["calls"] > 0.02 for record in records):
        sys.exit("the policy calls experts: not a task of one turn")
    return [
        Step(end - before, record["seconds_gen"], round(record["policy_tokens"] * record["rollouts"]), record["reward"])
        for before, end, record in zip(ends, ends[1:], records[1:], strict=False)
    ][WARM - 1 : -1]


def _ends(command: list[str], metrics: Path, log: Path) -> list[float]:
    """Runs `command`; when each line of `metrics` (one a step, written unbuffered) appeared, by the monotonic clock."""
    ends: list[float] = []
    with log.open("ab") as out:
        process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
    deadline, size = time.monotonic() + MOST_SECONDS, 0
    try:
        while process.poll() is None and time.monotonic() < deadline:
            if metrics.exists() and metrics.stat().st_size > size:
                now = time.monotonic()
                with metrics.open("rb") as file:
                    file.seek(size)
                    new = file.read()
                ends += [now] * new.count(b'"training/global_step"')
                size += len(new)
            time.sleep(0.02)
    finally:
        process.terminate()  # where the deadline passed or the user broke off: the launcher ends its job
        process.wait()
    return ends


def theirs(folder: Path, number: int, steps: int, python: Path, threads: int) -> list[Step]:
    """One run of TRL's GRPOTrainer. Raises SystemExit where it fails."""
    run = {
        "folder": str(folder / f"trl-{number}"), "policy": str(folder / "policy"), "rows": str(folder / "rows.parquet"),
        "registry": [str(REGISTRY)], "steps": steps, "prompts": PROMPTS, "samples": SAMPLES, "max_tokens": MOST_TOKENS,
        "threads": threads, "seed": number,
    }  # fmt: skip
    env = os.environ | {"PYTHONPATH": str(ROOT), "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": str(threads)}
    log = folder / f"trl-{number}.log"
    with log.open("ab") as errors:
        process = subprocess.Popen(
            [str(python), str(WORKER), json.dumps(run)],
            cwd=ROOT, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, text=True,
        )  # fmt: skip
    deadline = threading.Timer(MOST_SECONDS, process.kill)
    deadline.start()
    try:
        records = [json.loads(line) for line in process.stdout or ()]
    finally:
        deadline.cancel()
        process.kill()
        process.wait()
    if len(records) != steps:
        sys.exit(f"TRL: {len(records)} of {steps} steps; see {log}")
    return [Step(r["seconds"], r["seconds_gen"], r["tokens"], r["reward"]) for r in records[WARM:-1]]


def summary(steps: Iterable[Step]) -> dict[str, float]:
    """Medians over steps; ms_a_token: of each step's own seconds over its own tokens."""
    found = list(steps)
    return {
        "seconds": statistics.median(s.seconds for s in found),
        "seconds_gen": statistics.median(s.seconds_gen for s in found),
        "tokens": statistics.median(s.tokens for s in found),
        "ms_a_token": statistics.median(1000 * s.seconds / s.tokens for s in found),
        "reward": statistics.mean(s.reward for s in found),
        "steps": len(found),
    }


def show(rounds: list[dict[str, list[Step]]]) -> dict[str, Any]:
    """Prints the table; returns it with the ratio of every round (ours over TRL's, below 1: ours is faster)."""
    sides = {side: summary(step for one in rounds for step in one[side]) for side in ("ours", "trl")}
    print(f"{'median':<28}{'ours':>10}{'TRL':>10}")
    for key, label in (
        ("seconds", "seconds a step"),
        ("seconds_gen", "of them generating"),
        ("tokens", "generated tokens a step"),
        ("ms_a_token", "ms a generated token"),
        ("reward", "reward (mean)"),
        ("steps", "steps counted"),
    ):
        print(f"{label:<28}{sides['ours'][key]:>10.3f}{sides['trl'][key]:>10.3f}")
    by_round = [summary(one["ours"])["ms_a_token"] / summary(one["trl"])["ms_a_token"] for one in rounds]
    ratio = sides["ours"]["ms_a_token"] / sides["trl"]["ms_a_token"]
    print(
        f"ours / TRL, a token: {ratio:.2f}; by round: {', '.join(f'{one:.2f}' for one in by_round)} (goal: at most 1)"
    )
    return {"sides": sides, "ratio": ratio, "ratio_by_round": by_round}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", type=Path, required=True, help="the Python of the environment with TRL")
    parser.add_argument(
        "--from", dest="source", type=Path, default=Path("runs/demo"), help="finished run to start from"
    )
    parser.add_argument("--folder", type=Path, default=Path("runs/against_trl"), help="where both sides write")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each side, in turn")
    parser.add_argument("--steps", type=int, default=10, help=f"steps a run; {WARM} first and the last are left out")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1, help="threads of TRL's process")
    parser.add_argument("--json", type=Path, help="write every step here")
    args = parser.parse_args()
    if not args.python.is_file():
        print(f"skipped: no Python at {args.python}; the text at the top of this file makes one", file=sys.stderr)
        return SKIPPED
    if args.steps < WARM + 2:
        parser.error(f"--steps: at least {WARM + 2}")
    folder = args.folder.resolve()
    # a process of its own: what the cold start holds is gone when the clocks run
    child = multiprocessing.get_context("spawn").Process(target=prepare, args=(args.source, folder, args.steps))
    child.start()
    child.join()
    if child.exitcode:
        return 1
    rounds = []
    for number in range(1, args.rounds + 1):
        one = {
            "ours": ours(folder, number, args.steps),
            "trl": theirs(folder, number, args.steps, args.python, args.threads),
        }
        rounds.append(one)
        seen = ", ".join(f"{side} {summary(steps)['ms_a_token']:.2f} ms a token" for side, steps in one.items())
        print(f"round {number} of {args.rounds}: {seen}", file=sys.stderr, flush=True)
    result = show(rounds)
    if args.json is not None:
        steps = [{side: [asdict(step) for step in found] for side, found in one.items()} for one in rounds]
        args.json.write_text(json.dumps(result | {"rounds": steps}, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
