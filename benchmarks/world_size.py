"""Do several actor processes on one machine learn what one does? Losses, gradients and rollouts, step by step.

    python benchmarks/world_size.py                                 # makes a small policy; about six minutes
    python benchmarks/world_size.py --from runs/demo                # 16 x 8 rollouts from a run's policy before RL
    python benchmarks/world_size.py --from runs/demo --workers 1    # one worker against one: the engine's own noise

Every update has the full rate, so that a wrong one shows in the steps after it. Losses are judged on the steps up to
the first whose rollouts differ (engines batch differently and round differently; a token that is all but a tie may fall
otherwise). Exit code 1: one of these is off by more than 1e-4, or already the first step was rolled out differently.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from train.checkpoints import is_complete, world_size
from train.paths import RunPaths

ROOT = Path(__file__).resolve().parents[1]
LIMIT = 1e-4
# verl's names; the first is all that is minimised, the next two its parts
NUMBERS = ("actor/loss", "actor/pg_loss", "actor/entropy_loss", "actor/grad_norm", "actor/rollout_prob_gap_max")
FULL_RATE = ("grpo.warmup=0", "grpo.schedule=constant", "grpo.entropy=0.001")
# a policy that speaks the protocol and is often wrong, so that groups teach something; several passes an update
SMALL = (
    "data.train_rows=12", "data.validation_rows=4", "cold_start.demonstrations=12", "cold_start.steps=80",
    "cold_start.batch=16", "cold_start.rehearsal_share=0", "grpo.prompts=4", "grpo.samples=4", "grpo.micro_tokens=512",
)  # fmt: skip


@dataclass(frozen=True)
class Step:
    """One step in both runs. same: its rollouts and those of all steps before are the same, text for text."""

    step: int
    rollouts: int
    differ: int
    same: bool
    one: dict[str, float]
    more: dict[str, float]

    def off(self, name: str = NUMBERS[0]) -> float:
        return abs(self.one[name] - self.more[name])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--from", dest="source", type=Path, help="a run that gives policy before RL and rows")
    parser.add_argument("--run", type=Path, default=Path("runs/world-size"), help="both runs go there, anew")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    shutil.rmtree(args.run, ignore_errors=True)
    settings = [*FULL_RATE, f"grpo.steps={args.steps}", f"checkpoint.every={args.steps}"]
    settings += SMALL if args.source is None else kept(args.source)
    one = train(args.run / "one", settings)
    if args.source is None:
        settings.append(f"policy={one.cold}")
    more = train(args.run / "more", [*settings, f"cluster.gpus_per_node={args.workers}"])
    steps = compare(one, more)
    if args.json:
        print(json.dumps({"steps": [asdict(step) for step in steps], "weights": weights(one, more)}))
    else:
        print("\n".join(table(steps, args.workers)))
        print("weights: " + ", ".join(f"{name} {value:.2g}" for name, value in weights(one, more).items()))
    checkpoint = more.checkpoints / f"global_step_{args.steps}"
    if not is_complete(checkpoint) or world_size(checkpoint) != args.workers:
        sys.exit(f"{checkpoint} is no complete checkpoint of {args.workers} workers")
    if len(steps) != args.steps or not steps[0].same or any(step.same and step.off() > LIMIT for step in steps):
        sys.exit(f"not the same within {LIMIT:g}")


def kept(source: Path) -> list[str]:
    run = RunPaths.at(source)
    return [
        f"policy={run.cold}", f"data.train_files=[{run.train_rows}]", f"data.validation_files=[{run.validation_rows}]",
    ]  # fmt: skip


def train(run: Path, settings: list[str]) -> RunPaths:
    paths = RunPaths.at(run)
    command = [
        sys.executable, "-m", "maestro.cli.app", "train", str(ROOT / "configs/train/embedded.yaml"),
        f"run={paths.root}", *settings, f"verl.trainer.rollout_data_dir={paths.root / 'generated'}",
    ]  # fmt: skip
    subprocess.run(command, check=True, cwd=ROOT, stdout=sys.stderr)
    return paths


def compare(one: RunPaths, more: RunPaths) -> list[Step]:
    here, there = numbers(one), numbers(more)
    steps: list[Step] = []
    for step in sorted(here.keys() & there.keys()):
        texts = [generated(run, step) for run in (one, more)]
        differ = (texts[0] - texts[1]).total()
        same = not differ and texts[0].total() == texts[1].total() and all(s.same for s in steps)
        steps.append(Step(step, texts[0].total(), differ, same, here[step], there[step]))
    return steps


def numbers(run: RunPaths) -> dict[int, dict[str, float]]:
    lines = [json.loads(line) for line in run.verl_metrics(1).read_text(encoding="utf-8").splitlines()]
    return {line["step"]: {n: line["data"][n] for n in NUMBERS} for line in lines if NUMBERS[0] in line["data"]}


def generated(run: RunPaths, step: int) -> Counter[tuple[Any, ...]]:
    """Prompt, text and reward of every rollout of the step."""
    lines = (run.root / "generated" / f"{step}.jsonl").read_text(encoding="utf-8").splitlines()
    return Counter((row["input"], row["output"], row["score"]) for row in map(json.loads, lines))


def weights(one: RunPaths, more: RunPaths) -> dict[str, float]:
    """How far the weights came, and how far the two policies lie apart."""
    from safetensors.torch import load_file

    # the policy that both began with: the first run made it, or was given it
    begun = json.loads(one.config.read_text(encoding="utf-8"))["policy"] or one.cold
    before, alone, shared = (load_file(Path(p) / "model.safetensors") for p in (begun, one.policy, more.policy))
    return {
        "largest change": max(float((alone[key] - before[key]).abs().max()) for key in alone),
        "largest difference": max(float((alone[key] - shared[key]).abs().max()) for key in alone),
        "mean difference": sum(float((alone[key] - shared[key]).abs().sum()) for key in alone)
        / sum(tensor.numel() for tensor in alone.values()),
    }


def table(steps: list[Step], workers: int) -> list[str]:
    rows = [
        f"{'step':>4} {'rollouts differ':>16} {'number':<28} {'1 worker':>14} {f'{workers} workers':>14} {'apart':>9}"
    ]
    for step in steps:
        for i, name in enumerate(NUMBERS):
            left = f"{step.step:>4} {f'{step.differ} of {step.rollouts}':>16}" if not i else " " * 21
            rows.append(f"{left} {name:<28} {step.one[name]:>14.8f} {step.more[name]:>14.8f} {step.off(name):>9.1e}")
    return rows


if __name__ == "__main__":
    main()
