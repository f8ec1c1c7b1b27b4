"""A benchmark whose answers are programs, on a machine without a sandbox: told before the first row."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from made_benchmark import READER, YAML, Birds, row

from eval.benchmarks import program
from eval.replay import replay
from eval.run import Evaluation, evaluate
from experts.sandbox import run as sandbox
from experts.sandbox.isolation import Isolation
from experts.sandbox.result import SandboxResult
from maestro.cli.app import run
from registry.errors import UserFault
from registry.registry import Registry

NONE = Isolation("none", (), {"bubblewrap": "no program bwrap on the PATH", "namespaces": "not allowed"})
WHAT = (
    "the answers of Birds are programs, and there is no sandbox here to run them in: nothing here keeps a program in"
    " (bubblewrap: no program bwrap on the PATH; namespaces: not allowed)"
)
FIX = (
    "install bubblewrap (its program is bwrap), or allow user namespaces, or use Linux 5.13 or later with Landlock on"
    " x86-64; docs/sandbox.md tells what each needs"
)


@pytest.fixture
def birds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Birds:
    """Three rows whose answer is the program "pass", which is right."""
    monkeypatch.syspath_prepend(str(tmp_path))
    made = Birds(tmp_path, [row(n, question="say pass", answer="assert True") for n in range(3)])
    text = YAML.replace("answer: {columns: answer}", "answer: {columns: answer, kind: program}")
    text = text.replace("official: chartqa_official, lenient: chartqa", "official: humaneval_v")
    (tmp_path / "birds.yaml").write_text(text)
    return made


def start(birds: Birds, *, settings: dict[str, Any] | None = None, **options: Any) -> Evaluation:
    registry = Registry.load(birds.folder / "registry.yaml")
    return asyncio.run(evaluate(birds.config(**(settings or {})), registry, birds.run, **options))


def take_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a machine where no isolation holds."""
    monkeypatch.setattr(sandbox, "available", lambda: NONE)


def noting(names: list[str]) -> Callable[[str, int | None], Callable[[], None]]:
    def start_phase(name: str, steps: int | None) -> Callable[[], None]:
        names.append(name)
        return lambda: None

    return start_phase


def test_an_evaluation_is_refused_before_the_first_row_and_goes_on_once_there_is_a_sandbox(
    birds: Birds, monkeypatch: pytest.MonkeyPatch
) -> None:
    phases: list[str] = []
    with monkeypatch.context() as patch:
        take_away(patch)
        with pytest.raises(UserFault) as caught:
            start(birds, start_phase=noting(phases))
    assert (caught.value.what, caught.value.where, caught.value.fix) == (WHAT, "benchmark Birds", FIX)
    assert phases == ["rows"]
    assert (birds.run / "journal.jsonl").read_bytes() == b""
    done = start(birds)
    assert (done.ran, done.results["baselines"]["reader"]["accuracy"]) == (3, 1.0)


def test_pairs_are_not_measured_either(birds: Birds, monkeypatch: pytest.MonkeyPatch) -> None:
    take_away(monkeypatch)
    phases: list[str] = []
    settings = {"arms": {"best": {"kind": "best_single_pair"}, **READER}, "rows": {"validation": 1}}
    with pytest.raises(UserFault, match="there is no sandbox here"):
        start(birds, settings=settings, start_phase=noting(phases))
    assert phases == ["rows"]
    assert not (birds.run / "matrix.json").exists()


def test_the_command_says_it_in_one_message_and_ends_with_2(
    birds: Birds, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    take_away(monkeypatch)
    reader = "{kind: single_expert, expert: Reader, skill: Reading}"
    config = birds.folder / "eval.yaml"
    config.write_text(f"benchmark: {birds.folder}/birds.yaml\nrun: {birds.run}\narms: {{reader: {reader}}}\n")
    words = ["--registry", str(birds.folder / "registry.yaml"), "--data-root", str(birds.folder / "data"), "--json"]
    assert run(["evaluate", str(config), *words]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.splitlines() == [f"error: {WHAT}", "  where: benchmark Birds", f"  fix: {FIX}"]


def test_a_replay_is_refused_too_unless_another_rule_is_asked_for(
    birds: Birds, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    start(birds)
    take_away(monkeypatch)
    assert run(["evaluate", "replay", str(birds.run), "--json"]) == 2
    told = capsys.readouterr()
    assert told.err.splitlines() == [f"error: {WHAT}", "  where: benchmark Birds", f"  fix: {FIX}"]
    assert not (birds.run / "replay.json").exists()
    assert replay(birds.run, scorer="exact").arms["test"]["reader"].scored == 3


def test_a_finished_run_needs_no_sandbox_to_be_drawn_again(birds: Birds, monkeypatch: pytest.MonkeyPatch) -> None:
    start(birds)
    take_away(monkeypatch)
    assert start(birds).ran == 0


def test_a_sandbox_that_fails_later_ends_no_run(birds: Birds, monkeypatch: pytest.MonkeyPatch) -> None:
    real = program.run_python

    def fails(source: str, **options: Any) -> SandboxResult:
        refused = SandboxResult("refused", detail="no namespaces here")
        return refused if options.get("test") else real(source, **options)

    with monkeypatch.context() as patch:
        patch.setattr(program, "run_python", fails)
        done = start(birds)
    entry = done.results["baselines"]["reader"]
    assert (entry["accuracy"], entry["errors"], entry["failures"]) == (None, 3, {"scoring": 3})
    lines = [json.loads(line) for line in (birds.run / "journal.jsonl").read_text().splitlines()]
    assert {line["unscored"] for line in lines} == {"the program can't be run: no namespaces here"}
    assert start(birds, retry_errors=True).results["baselines"]["reader"]["accuracy"] == 1.0
