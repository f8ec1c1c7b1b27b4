"""`maestro parse` and `maestro answer`."""

from __future__ import annotations

import io
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from maestro.cli import answer_cmd
from maestro.cli.app import run
from orchestrator.episode import Episode
from orchestrator.policies.fixed_pair import FixedPair
from orchestrator.policy import PolicyTurn


class Input:
    def __init__(self, data: bytes) -> None:
        self.buffer = io.BytesIO(data)


@pytest.fixture
def image(tmp_path: Path) -> str:
    path = tmp_path / "picture.png"
    picture = Image.new("RGB", (240, 240), "white")
    picture.paste((200, 30, 30), (40, 40, 110, 110))
    picture.paste((30, 30, 200), (140, 140, 200, 200))
    picture.save(path)
    return str(path)


@pytest.mark.parametrize(
    ("turn", "options", "action"),
    [
        (
            "<search> chart reader@@chart-problem solver: How high: 3? </search> so",
            [],
            {"action": "search", "expert": "Chart-Reader", "skill": "Chart_Problem_Solver", "query": "How high: 3?"},
        ),
        ("<answer>\n42\n</answer>", [], {"action": "answer", "text": "42"}),
        (
            "<search>Chart@@Chart_Problem_Solver: x</search>",
            [],
            {
                "action": "malformed",
                "kind": "unknown_expert",
                "detail": "There is no expert named 'Chart'. Nearest: Chart-Reader.",
            },
        ),
        ("<answer> 42 ", ["--stopped", "</answer>"], {"action": "answer", "text": "42"}),
        ("", [], {"action": "malformed", "kind": "empty", "detail": "The turn is empty."}),
    ],
)
def test_parse_prints_one_action(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    turn: str,
    options: list[str],
    action: dict[str, str],
) -> None:
    monkeypatch.setattr(sys, "stdin", Input(turn.encode()))
    assert run(["parse", "--json", *options]) == 0
    assert json.loads(capsys.readouterr().out) == action


def test_parse_takes_any_bytes(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "stdin", Input(b"\xff\xfe<answer>\xe5\xb7\xa6\xff</answer>"))
    assert run(["parse"]) == 0
    assert capsys.readouterr().out == "action  answer\ntext    左\ufffd\n"


def test_serve_without_a_checkpoint_says_how_to_get_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["serve", "--policy", "runs/mine", "--port", "0"]) == 2
    assert "no policy checkpoint in runs/mine" in capsys.readouterr().err


def test_answer_without_a_checkpoint_says_how_to_get_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, image: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["answer", "--image", image, "--question", "How many shapes?"]) == 2
    error = capsys.readouterr().err
    assert "no policy checkpoint in runs/demo/policy" in error
    assert "make demo" in error
    assert "Traceback" not in error


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--image", "missing.png", "--question", "q?"], "missing.png"),
        (["--image", "IMAGE", "--question", "  "], "the question is empty"),
        (["--image", "IMAGE", "--question", "q?", "--policy-url", "http://localhost:1"], "add --model NAME"),
        (
            ["--image", "IMAGE", "--question", "q?", "--policy-url", "http://localhost:1", "--policy", "x"],
            "both given",
        ),
        (["--image", "IMAGE", "--question", "q?", "--horizon", "-1"], "horizon is -1"),
        (["--image", "IMAGE", "--question", "\u200b \u202e"], "the question is empty"),
        (["--image", "IMAGE", "--question", "q?", "--temperature", "inf"], "--temperature"),
        (["--image", "IMAGE", "--question", "q?", "--policy-url", "http://h:99999", "--model", "m"], "http://h:99999"),
        (["--image", "IMAGE", "--question", "q?", "--policy-url", "ftp://h", "--model", "m"], "no proper address"),
        (["--image", "IMAGE", "--question", "q?", "--policy-url", "", "--model", "m"], "no proper address"),
    ],
)
def test_answer_refuses_what_it_cannot_do(
    capsys: pytest.CaptureFixture[str], image: str, words: list[str], message: str
) -> None:
    assert run(["answer", *(image if word == "IMAGE" else word for word in words)]) == 2
    assert message in capsys.readouterr().err


def answer_with_pair(monkeypatch: pytest.MonkeyPatch, pair: tuple[str, str], *words: str) -> int:
    """Runs the command with a rule in the place of the checkpoint; experts are the embedded ones."""
    monkeypatch.setattr(answer_cmd, "_checkpoint", lambda *_: FixedPair(*pair))
    return run(["answer", *words])


def test_answer_prints_each_turn_and_the_answer(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], image: str
) -> None:
    pair = ("Shape-Spotter", "Counting_Problem_Solver")
    question = "How many [all]shapes[/all] are there?"
    assert answer_with_pair(monkeypatch, pair, "--image", image, "--question", question) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"turn 1  asks Shape-Spotter under Counting_Problem_Solver: {question}"
    assert lines[-1] == "answer  2"


class Rewording(FixedPair):
    """Asks one sub-question of its own, whatever the question is."""

    async def act(self, episode: Episode, *, seed: int) -> PolicyTurn:
        turn = await super().act(episode, seed=seed)
        return replace(turn, text=turn.text.replace("How  many shapes?", "How many circles?"))


@pytest.mark.parametrize(("policy", "noted"), [(Rewording, 1), (FixedPair, 0)])
def test_answer_notes_a_sub_question_in_other_words_than_the_question(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    image: str,
    policy: type[FixedPair],
    noted: int,
) -> None:
    monkeypatch.setattr(answer_cmd, "_checkpoint", lambda *_: policy("Shape-Spotter", "Counting_Problem_Solver"))
    run(["answer", "--image", image, "--question", "How  many shapes?"])
    assert capsys.readouterr().out.count("(asks in other words than you did)") == noted


@pytest.mark.parametrize(("options", "said"), [([], True), (["--json"], False)])
def test_answer_says_that_the_policy_is_being_loaded_before_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], image: str, options: list[str], said: bool
) -> None:
    (tmp_path / "config.json").write_text("{}", encoding="utf-8")
    assert run(["answer", "--image", image, "--question", "q?", "--policy", str(tmp_path), *options]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"loading the policy {tmp_path}\n") is said
    assert "cannot be loaded" in error


def test_answer_shows_escape_sequences_of_a_question_and_does_not_send_them(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], image: str
) -> None:
    pair = ("Shape-Spotter", "Counting_Problem_Solver")
    question = "How many shapes\x1b]0;mine\x07 are \u202ethere?"
    assert answer_with_pair(monkeypatch, pair, "--image", image, "--question", question) == 0
    first = capsys.readouterr().out.splitlines()[0]
    assert first == (
        "turn 1  asks Shape-Spotter under Counting_Problem_Solver: How many shapes\N{REPLACEMENT CHARACTER}]0;mine"
        "\N{REPLACEMENT CHARACTER} are \N{REPLACEMENT CHARACTER}there?"
    )


def test_answer_gives_the_whole_record_as_json(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], image: str
) -> None:
    pair = ("Shape-Spotter", "Counting_Problem_Solver")
    assert answer_with_pair(monkeypatch, pair, "--image", image, "--question", "How many shapes?", "--json") == 0
    record: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert (record["answer"], record["stop"], record["counts"]["calls"]) == ("2", "answered", 1)


def test_an_episode_without_an_answer_ends_with_code_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], image: str
) -> None:
    assert answer_with_pair(monkeypatch, ("Nobody", "Nothing"), "--image", image, "--question", "q?") == 1
    assert "no answer: the episode stopped as malformed" in capsys.readouterr().err
