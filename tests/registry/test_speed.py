"""The registry is quick to import and to load, and pulls in nothing heavy."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

from registry.registry import Registry

HEAVY = ("torch", "transformers", "cv2", "rapidocr", "matplotlib", "numpy", "PIL", "openai", "experts")
SERVED = Path(__file__).parent / "served.yaml"


def test_importing_pulls_in_nothing_heavy_and_takes_well_under_a_second():
    code = (
        "import json, sys, time; started = time.process_time()\n"
        "import registry.registry, registry.prompt, registry.routing\n"
        "print(json.dumps([time.process_time() - started, sorted(sys.modules)]))"
    )
    root = Path(__file__).resolve().parents[2]
    output = subprocess.run(
        [sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True
    )
    seconds, modules = json.loads(output.stdout)
    assert [name for name in HEAVY if name in modules] == []
    assert seconds < 0.8


def test_a_file_of_300_lines_loads_in_a_fraction_of_a_second(write):
    text = SERVED.read_text(encoding="utf-8")
    skills = text[text.index("skills:\n") + len("skills:\n") :]
    copies = "".join(
        skills.replace("Problem Solver:", f"Problem Solver {n}:")
        .replace("&chart", f"&chart{n}")
        .replace("*chart", f"*chart{n}")
        for n in range(3)
    )
    path = write(text + copies)
    assert len(path.read_text().splitlines()) >= 300
    started = time.process_time()
    registry = Registry.load(path)
    assert time.process_time() - started < 0.3
    assert len(registry.skills) == 20
