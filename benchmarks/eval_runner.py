"""How fast `maestro evaluate` runs episodes, what memory it takes, and whether being killed changes a score.

    python benchmarks/eval_runner.py                              # 10,000 rows, 128 at once, an expert of 500 ms
    python benchmarks/eval_runner.py --kill 5                     # and once more, killed five times and started again
    python benchmarks/eval_runner.py --rows 1000 --delay-ms 0 --profile

Made rows with a picture each (a chart of 224 x 224, decoded and normalised for every row), a policy that asks the one
expert once and answers with its reply, and a stub expert in its own process (expert_stub.py). All else is the real
thing: the benchmark's YAML file, the journal, results.json and report.html.

One JSON object on standard output; `held` says whether the run reached 80 % of the ideal rate (concurrency / delay),
memory's peak grew by less than 100 MB from row 1,000 to the last, and, with --kill, scores.jsonl is the same to the
byte. Run it where nothing else runs.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import json
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from expert_stub import registry_for, running
from PIL import Image, ImageDraw
from pool_throughput import rounded, shares

SHARE_OF_IDEAL, GROWTH_MB, FIRST_MARK = 0.80, 100.0, 1000
PICTURES = 64
WAIT_S = 1800.0
BENCHMARK = """
name: made
title: Made rows
licence: none
id: id
question: question
answer: {columns: answer}
images: {columns: image}
groups: {half: {columns: half}}
group: half
scorer: {official: integer, source: made}
metrics: {by: half, macro_over: half}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--concurrency", type=int, default=128)
    parser.add_argument("--delay-ms", type=float, default=500.0)
    parser.add_argument("--kill", type=int, default=0, metavar="TIMES")
    parser.add_argument("--seed", type=int, default=0, help="Of the moments of the kills.")
    parser.add_argument("--profile", action="store_true", help="Shares of packages; slows the run down.")
    parser.add_argument("--child", nargs=3, metavar=("DATA", "RUN", "URL"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        data, run, url = args.child
        print(json.dumps(measure(args, Path(data), Path(run), url)), flush=True)
        return
    with tempfile.TemporaryDirectory(prefix="eval-runner-") as scratch, running(delay_ms=args.delay_ms) as stub:
        folder = Path(scratch)
        make_rows(folder / "data", args.rows)
        call = [sys.executable, __file__, *words(args), "--child", str(folder / "data")]
        report = finished([*call, str(folder / "straight"), stub.urls[0]])
        if args.delay_ms:
            report["ideal_per_s"] = args.concurrency / (args.delay_ms / 1000)
            report["share_of_ideal"] = report["rate_per_s"] / report["ideal_per_s"]
        held = report.get("share_of_ideal", 1.0) >= SHARE_OF_IDEAL and report["peak_growth_mb"] < GROWTH_MB
        if args.kill:
            moments = killed([*call, str(folder / "killed"), stub.urls[0]], folder / "killed", args)
            same = [(folder / name / "scores.jsonl").read_bytes() for name in ("straight", "killed")]
            report |= {"killed_at_rows": moments, "same_scores": same[0] == same[1]}
            held = held and report["same_scores"]
    print(json.dumps(rounded(report | {"held": held}), indent=2))


def words(args: argparse.Namespace) -> list[str]:
    """The options that a child needs."""
    given = ["--rows", str(args.rows), "--concurrency", str(args.concurrency)]
    return [*given, "--profile"] if args.profile else given


def make_rows(folder: Path, count: int) -> None:
    """The benchmark: its file, its rows, its pictures. Of every seventh row the right answer is another one than the
    expert gives."""
    (folder / "images").mkdir(parents=True)
    for number in range(PICTURES):
        chart(number).save(folder / "images" / f"{number}.png")
    (folder / "made.yaml").write_text(BENCHMARK)
    with (folder / "samples.jsonl").open("w") as file:
        for number in range(count):
            row = {
                "id": f"{number:06d}",
                "question": f"How many? #{number}#",
                "answer": str(number + (number % 7 == 0)),
                "half": "first" if number < count / 2 else "second",
                "image": f"{number % PICTURES}.png",
            }
            file.write(json.dumps(row) + "\n")


def chart(number: int) -> Image.Image:
    """A bar chart, another one for each number."""
    image = Image.new("RGB", (224, 224), (250, 250, 250))
    draw = ImageDraw.Draw(image)
    for bar in range(8):
        height = (37 * number + 53 * bar) % 200
        draw.rectangle((8 + 27 * bar, 216 - height, 24 + 27 * bar, 216), fill=(25 * bar, 90, 200))
    return image


def measure(args: argparse.Namespace, data: Path, run: Path, url: str) -> dict[str, Any]:
    """One evaluation in this process; what is already in the run's journal is not run again."""
    from eval.config import EvalConfig
    from eval.run import evaluate

    config = EvalConfig.model_validate(
        {
            "benchmark": str(data / "made.yaml"),
            "data": {"root": str(data)},
            "run": str(run),
            "arms": {"scripted": {"kind": "random_pair"}},  # of one expert and one skill
            "expert_concurrency": args.concurrency,
            "deadlines": {"episode_s": 120, "call_s": 60},
        }
    )
    registry = registry_for((url,), max_concurrency=args.concurrency, timeout_s=60)
    marks: dict[int, dict[str, float]] = {}

    def start(name: str, steps: int | None) -> Callable[[], None]:
        if name != "scripted":
            return lambda: None
        done = 0
        marks[0] = mark()

        def advance() -> None:
            nonlocal done
            done += 1
            if done == FIRST_MARK:
                marks[FIRST_MARK] = mark()
            if done % 100 == 0 or done == steps:
                marks[-1] = mark() | {"rows": done}

        return advance

    profile = cProfile.Profile()
    if args.profile:
        profile.enable()
    done = asyncio.run(evaluate(config, registry, run, start_phase=start))
    profile.disable()
    first, last = marks.get(0, mark()), marks.get(-1, mark() | {"rows": 0})
    early = marks.get(FIRST_MARK, first)
    rows = max(1.0, last["rows"])
    entry = done.results["baselines"]["scripted"]
    return {
        "rows": args.rows,
        "ran": done.ran,
        "concurrency": args.concurrency,
        "seconds": last["wall"] - first["wall"],
        "rate_per_s": rows / max(1e-9, last["wall"] - first["wall"]),
        "cpu_ms_per_episode": 1000 * (last["cpu"] - first["cpu"]) / rows,
        "loop_cpu_ms_per_episode": 1000 * (last["thread_cpu"] - first["thread_cpu"]) / rows,
        "peak_mb_at_first_mark": early["peak_mb"],
        "peak_mb_at_last_row": last["peak_mb"],
        "peak_growth_mb": last["peak_mb"] - early["peak_mb"],
        "peak_mb_with_report": mark()["peak_mb"],
        "seconds_report": mark()["wall"] - last["wall"],
        "accuracy": entry["accuracy"],
        "errors": entry["errors"],
        **({"profile_share": shares(profile)} if args.profile else {}),
    }


def mark() -> dict[str, float]:
    """Wall seconds, processor seconds of the process and of the event loop's thread, peak memory."""
    return {
        "wall": time.perf_counter(),
        "cpu": time.process_time(),
        "thread_cpu": time.thread_time(),
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def finished(call: list[str]) -> dict[str, Any]:
    """What a child that ends well prints."""
    done = subprocess.run(call, stdout=subprocess.PIPE, timeout=WAIT_S, check=True)
    return json.loads(done.stdout)


def killed(call: list[str], run: Path, args: argparse.Namespace) -> list[int]:
    """Starts a child again and again, kills each at a random row, lets the last one end; returns those rows."""
    rng = random.Random(args.seed)
    moments = sorted(rng.randrange(1, args.rows) for _ in range(args.kill))
    reached = []
    for moment in moments:
        with subprocess.Popen(call, stdout=subprocess.DEVNULL) as child:
            deadline = time.monotonic() + WAIT_S
            while lines(run / "journal.jsonl") < moment and child.poll() is None and time.monotonic() < deadline:
                time.sleep(rng.uniform(0.005, 0.05))
            child.send_signal(signal.SIGKILL)
        reached.append(lines(run / "journal.jsonl"))
    finished(call)
    return reached


def lines(path: Path) -> int:
    """Line ends in a file that another process writes."""
    try:
        with path.open("rb") as file:
            return sum(block.count(b"\n") for block in iter(lambda: file.read(1 << 20), b""))
    except FileNotFoundError:
        return 0


if __name__ == "__main__":
    main()
