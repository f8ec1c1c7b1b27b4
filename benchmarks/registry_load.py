"""How long a large registry takes to load and validate: 5,000 made skills in 500 files, by default.

    nice -n 19 python benchmarks/registry_load.py --runs 7

The files are made in a temporary folder. Nine skills of ten have one subskill with keywords and two steps (a tool and
an ask); each tenth has two subskills, a condition, a filter and a repair loop. No two texts are alike, so nothing is
won by remembering one. Each run is a fresh process. Printed as JSON: seconds of wall and of process time (the second
is the one to compare on a shared machine), median and all, and where the time goes (one more run under cProfile, which
makes everything slower; only the shares mean something).
"""

from __future__ import annotations

import argparse
import cProfile
import json
import os
import pstats
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parent.parent
TARGET_S = 3.0
_WORDS = ("bar", "axis", "legend", "angle", "label", "cell", "scan", "route", "colour", "count", "depth", "figure")
_BASE = """\
experts:
  Reader:
    description: Reads what is asked.
    backend: {type: python, target: "nowhere:Reader"}
tools:
  ocr:
    description: Text in the image with its places.
    backend: {type: python, target: "nowhere:Ocr"}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--skills", type=int, default=5000)
    parser.add_argument("--files", type=int, default=500)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--load", type=Path, metavar="FOLDER", help=argparse.SUPPRESS)  # one run, in its own process
    args = parser.parse_args()
    if args.load is not None:
        print(json.dumps(load_once(args.load)))
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        size = make(folder, args.skills, args.files)
        runs = [in_a_process(folder) for _ in range(args.runs)]
        shares = profile(folder)
    report = {
        "skills": args.skills,
        "subskills": runs[0]["subskills"],
        "files": args.files,
        "megabytes": round(size / 1e6, 2),
        "cores": os.cpu_count(),
        "load_average": round(os.getloadavg()[0], 2),
        "wall_s": {"median": round(median(run["wall_s"] for run in runs), 3), "all": [run["wall_s"] for run in runs]},
        "process_s": {
            "median": round(median(run["process_s"] for run in runs), 3),
            "all": [run["process_s"] for run in runs],
        },
        "target_s": TARGET_S,
        "share_of_time_by_module": shares,
    }
    print(json.dumps(report, indent=2))


def make(folder: Path, skills: int, files: int) -> int:
    """Write the files; returns their bytes."""
    (folder / "0000_base.yaml").write_text(_BASE, encoding="utf-8")
    for number in range(files):
        mine = range(number * skills // files, (number + 1) * skills // files)
        text = "skills:\n" + "".join(skill(index) for index in mine)
        (folder / f"made_{number:04d}.yaml").write_text(text, encoding="utf-8")
    return sum(path.stat().st_size for path in folder.iterdir())


def skill(index: int) -> str:
    """One skill as YAML; every tenth is an involved one."""
    first, second = _WORDS[index % 12], _WORDS[index // 12 % 12]
    head = f"""\
  Made_Skill_{index}:
    description: Questions about {first} and {second}, kind {index}; needs a figure, gives one value.
    routing: auto
    subskills:
      Plain_{index}:
        description: Reads one {first} of kind {index} and gives it.
        keywords: [{first}, {second}, "{first} {index}", how many {second}]
        procedure:
          steps:
            - {{tool: ocr, save: texts}}
            - system: You measure {first} number {index} and say nothing else.
              ask: |-
                Task: made_{index}
                Text in the image: {{{{ texts.json }}}}
                Question: {{{{ question }}}}
"""
    if index % 10:
        return head
    return f"""{head}\
      Involved_{index}:
        description: Checks one {second} of kind {index} a second time.
        keywords: [check {second}, {index}]
        procedure:
          steps:
            - {{tool: ocr, save: texts, when: "'{second} {index}' not in question"}}
            - {{ask: "Kind {index}: {{{{ question }}}} {{{{ texts.text | truncate(40) }}}}", save: draft}}
          repair:
            when: draft | length > {20 + index}
            rounds: 2
            steps:
              - {{ask: "Shorter, kind {index}: {{{{ draft.text }}}}", images: [], save: draft}}
          answer: "{{{{ draft.text }}}} ({index})"
"""


def load_once(folder: Path) -> dict[str, float]:
    from registry.registry import Registry

    wall, process = time.perf_counter(), time.process_time()
    registry = Registry.load(folder)
    wall, process = time.perf_counter() - wall, time.process_time() - process
    return {
        "wall_s": round(wall, 3),
        "process_s": round(process, 3),
        "subskills": sum(len(skill.subskills) for skill in registry.skills),
    }


def in_a_process(folder: Path) -> dict[str, float]:
    command = [sys.executable, __file__, "--load", str(folder)]
    done = subprocess.run(command, cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    return json.loads(done.stdout)


def profile(folder: Path) -> dict[str, float]:
    """The share of each module in the time of one run, the largest eight."""
    sys.path.insert(0, str(ROOT))
    from registry.registry import Registry

    profiler = cProfile.Profile()
    profiler.runcall(Registry.load, folder)
    seconds: Counter[str] = Counter()
    for (file, _, _), (_, _, own, _, _) in pstats.Stats(profiler).stats.items():  # type: ignore[attr-defined]
        parts = Path(file).parts
        seconds["built in" if file == "~" else "/".join(parts[-2:])] += own
    total = sum(seconds.values())
    return {name: round(own / total, 3) for name, own in seconds.most_common(8)}


if __name__ == "__main__":
    main()
