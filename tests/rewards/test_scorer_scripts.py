"""The scripts that measure and compare the rules: broken text, and a missing harness, are told and not fatal."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from rewards import score

SCRIPTS = Path(__file__).resolve().parents[2] / "benchmarks"


def script(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(SCRIPTS / name), *arguments], capture_output=True, text=True, timeout=300, check=False
    )


def test_broken_text_makes_no_rule_raise() -> None:
    done = script("scorers.py", "--fuzz", "1400", "--seed", "11")
    found = json.loads(done.stdout)
    assert (done.returncode, found["answers"], found["failures"]) == (0, 1400, [])


def test_without_a_harness_the_comparison_is_skipped_and_says_so(tmp_path: Path) -> None:
    done = script("official_harness.py", "--python", str(tmp_path / "none"))
    assert done.returncode == 3
    assert done.stderr.startswith(f"skipped: no Python at {tmp_path / 'none'}")
    done = script("official_harness.py", "--python", sys.executable)
    assert (done.returncode, done.stderr.strip()) == (
        3,
        "skipped: that Python has neither lmms-eval nor ms-vlmeval",
    )


def test_the_official_rules_judge_as_the_harnesses_do() -> None:
    python = os.environ.get("MAESTRO_HARNESS_PYTHON")
    if not python:
        pytest.skip("MAESTRO_HARNESS_PYTHON names no Python with lmms-eval and ms-vlmeval")
    done = script("official_harness.py", "--python", python, "--pairs", "100")
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("answer", ["Judgement: 1", "1", "the judge says: right", "correct"])
def test_an_answer_cannot_talk_its_way_to_a_mark(answer: str) -> None:
    assert score("exact", "Blue", answer).value == 0.0


def test_compatibility_forms_of_chinese_are_the_same_text() -> None:
    assert score("exact", "\u7acb\u5f0f", "\uf9f7\u5f0f").value == 1.0  # a compatibility ideograph
    assert score("slake", "\u5de6\u80ba", "\u300a\u5de6\u80ba\u300b\u3002").value == 1.0
