"""Rows as tasks, and trajectories as demonstrations."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from experts.images import Picture
from orchestrator.trajectory import Trajectory
from registry.errors import UserFault
from train.demonstrations import Demonstration, from_trajectories, rehearsals
from train.rows import image_bytes, read_rows, task_from_row


def png(colour: tuple[int, int, int] = (10, 20, 30), size: tuple[int, int] = (64, 48)) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", size, colour).save(out, "PNG")
    return out.getvalue()


def row(**fields: Any) -> dict[str, Any]:
    extra = {"index": 3, "id": "r-3", "question": "<image>How many?", "split": "train", "family": "bars"}
    usual = {
        "data_source": "embedded", "prompt": [{"role": "user", "content": "<image>How many?"}], "ability": "vqa",
        "images": [{"bytes": png(), "path": None}], "reward_model": {"style": "rule", "ground_truth": "4"},
        "extra_info": extra,
    }  # fmt: skip
    return (
        usual | {k: v for k, v in fields.items() if k in usual} | {"extra_info": {**extra, **fields.get("extra", {})}}
    )


def test_a_row_becomes_a_task() -> None:
    task = task_from_row(row(), row()["images"], "row 3")
    assert (task.row_id, task.benchmark, task.group, task.question) == ("r-3", "embedded", "bars", "How many?")
    assert (task.ground_truth, task.choices, len(task.pictures)) == ("4", None, 1)


@pytest.mark.parametrize("shape", ["bytes", "dict", "list", "array", "path", "pil"])
def test_images_come_in_many_shapes(shape: str, tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(png())
    array = np.empty(1, dtype=object)
    array[0] = {"bytes": png(), "path": None}
    images: Any = {
        "bytes": png(), "dict": {"bytes": png()}, "list": [{"bytes": png()}], "array": array,
        "path": [{"bytes": None, "path": str(tmp_path / "a.png")}], "pil": [Image.open(io.BytesIO(png()))],
    }[shape]  # fmt: skip
    [picture] = task_from_row(row(), images, "row 3", [tmp_path]).pictures
    assert (picture.width, picture.height, picture.rgb()[0, 0].tolist()) == (64, 48, [10, 20, 30])


def test_paths_of_images_are_looked_for_beside_the_file(tmp_path: Path) -> None:
    (tmp_path / "pictures").mkdir()
    (tmp_path / "pictures" / "a.png").write_bytes(png())
    path = write(tmp_path / "rows.parquet", row(images=[{"bytes": None, "path": "pictures/a.png"}]))
    [(task, _)] = read_rows(path)
    assert task.pictures[0].width == 64


def test_images_inside_messages_keep_their_order() -> None:
    pil = Image.new("RGB", (8, 8))
    parts = [
        {"type": "image", "bytes": b"one", "image": pil}, {"type": "text", "text": "x"},
        {"type": "image", "image": pil},
        {"type": "image", "bytes": None, "path": "/a.png"},
    ]  # fmt: skip
    messages = [
        {"role": "system", "content": "s"},
        {"role": "user", "content": parts},
        {"role": "user", "content": None},
    ]
    assert image_bytes(messages) == [b"one", pil, "/a.png"]


def test_equal_texts_stay_two_rows() -> None:
    ids = {task_from_row(row(extra={"id": None, "index": i}), [], "row").row_id for i in (0, 1)}
    assert ids == {"embedded-train-0", "embedded-train-1"}
    assert task_from_row(row(extra={"id": 0}), [], "row").row_id == "0"


def test_a_row_without_any_number_is_refused() -> None:
    with pytest.raises(UserFault, match="neither id nor index") as caught:
        task_from_row(row(extra={"id": None, "index": None}), [], "rows.parquet, row 3")
    assert caught.value.where == "rows.parquet, row 3"


@pytest.mark.parametrize("question", [None, 3, ["a"]])
def test_a_row_without_a_question_is_refused_with_its_place(question: Any) -> None:
    with pytest.raises(UserFault, match="extra_info holds no question") as caught:
        task_from_row(row(extra={"question": question}), [], "rows.parquet, row 3")
    assert caught.value.where == "rows.parquet, row 3"


def test_a_broken_image_is_refused_with_its_place() -> None:
    with pytest.raises(UserFault) as caught:
        task_from_row(row(), [{"bytes": png()[:40], "path": None}], "rows.parquet, row 3")
    assert "rows.parquet, row 3" in str(caught.value)


@pytest.mark.parametrize(
    ("given", "truth"),
    [("4", "4"), (["4", "four"], ("4", "four")), (np.array([4, 5]), ("4", "5")), (4, "4"), (None, None)],
)
def test_gold_answers_come_in_several_shapes(given: Any, truth: Any) -> None:
    assert task_from_row(row(reward_model={"ground_truth": given}), [], "row").ground_truth == truth


def test_options_are_kept_in_order() -> None:
    assert task_from_row(row(extra={"choices": np.array(["b", "a"])}), [], "row").choices == ("b", "a")
    assert task_from_row(row(extra={"choices": []}), [], "row").choices is None


def write(path: Path, *rows: dict[str, Any]) -> Path:
    pq.write_table(pa.Table.from_pylist(list(rows)), path)
    return path


@pytest.mark.parametrize(
    ("extra", "caption"),
    [('{"caption": "a bar chart"}', "a bar chart"), ("{}", None), ("not json", None), ("[1]", None), (None, None)],
)
def test_captions_are_read_where_there_are_any(tmp_path: Path, extra: str | None, caption: str | None) -> None:
    [(task, found)] = read_rows(write(tmp_path / "rows.parquet", row(extra={"extra": extra})))
    assert (task.row_id, found) == ("r-3", caption)


def test_further_fields_that_are_no_text_are_no_fault(tmp_path: Path) -> None:
    [(_, found)] = read_rows(write(tmp_path / "rows.parquet", row(extra={"extra": {"caption": "a circle"}})))
    assert found == "a circle"


def test_a_fault_in_a_row_names_file_and_row(tmp_path: Path) -> None:
    path = write(tmp_path / "rows.parquet", row(), row(extra={"question": None}))
    reader = read_rows(path)
    next(reader)
    with pytest.raises(UserFault) as caught:
        next(reader)
    assert caught.value.where == f"{path}, row 1"


@pytest.mark.parametrize("harm", ["missing", "empty", "text", "cut", "damaged"])
def test_an_unreadable_file_is_named(tmp_path: Path, harm: str) -> None:
    path = write(tmp_path / "rows.parquet", row())
    whole = path.read_bytes()
    if harm == "missing":
        path.unlink()
    else:
        content = {"empty": b"", "text": b"id,question\n", "cut": whole[:-30]}
        path.write_bytes(content.get(harm, whole[:4] + b"\xff" * 600 + whole[604:]))
    with pytest.raises(UserFault, match="cannot read the rows") as caught:
        list(read_rows(path))
    assert caught.value.where == str(path)


def trajectory(**fields: Any) -> Trajectory:
    search = {"text": "<search> A@@S: q </search>", "observation": {"shown": "\n<information> 4 </information>\n"}}
    usual: dict[str, Any] = {
        "id": "r1#0", "row_id": "r1", "benchmark": "embedded", "group": "bars", "question": "q", "answer": "4",
        "choices": None, "ground_truth": "4", "pictures": [], "policy": "router", "seed": 1, "sample": 0,
        "prompt_ids": None, "response_ids": None, "response_mask": None, "response_logprobs": None,
        "turns": [search, {"text": "<answer> 4 </answer>", "observation": None}], "stop": "answered", "valid": True,
        "error": None, "counts": {}, "usage": {}, "timings": {},
    }  # fmt: skip
    return Trajectory(**usual | fields)


@pytest.mark.parametrize(
    ("caption", "thought"), [("a bar chart", "<think> a bar chart </think>"), (None, "")], ids=["captioned", "bare"]
)
def test_what_the_router_wrote_is_learned_behind_what_is_seen_and_what_it_was_shown_is_not(
    picture: Picture, caption: str | None, thought: str
) -> None:
    [got] = from_trajectories([trajectory()], {"r1": (picture, caption)})
    assert got == Demonstration(
        "q",
        picture,
        (
            (f"{thought}<search> A@@S: q </search>", True),
            ("\n<information> 4 </information>\n", False),
            ("<answer> 4 </answer>", True),
        ),
    )


def test_failed_and_unanswered_episodes_are_no_demonstrations(picture: Picture) -> None:
    episodes = [trajectory(valid=False), trajectory(stop="horizon"), trajectory(stop="malformed")]
    assert from_trajectories(episodes, {"r1": (picture, None)}) == []


QUESTION = "What is the value of Kamori in the chart?"


def a_call(picture: Picture) -> list[Demonstration]:
    said = {
        "text": f"<search> A@@S: {QUESTION} </search>",
        "observation": {"shown": "\n<information> 4 </information>\n"},
    }
    episode = trajectory(question=QUESTION, turns=[said, {"text": "<answer> 4 </answer>", "observation": None}])
    return from_trajectories([episode], {"r1": (picture, "a bar chart")})


def test_rehearsals_copy_their_question_and_answer_what_they_were_shown(picture: Picture) -> None:
    calls = a_call(picture)
    made = rehearsals(calls, 40, 3)
    assert len(made) == 40
    for demonstration in made:
        (said, a), (shown, b), (answer, c) = demonstration.pieces
        reply = shown.removeprefix("\n<information> ").removesuffix(" </information>\n")
        assert (a, b, c) == (True, False, True)
        assert said == f"<think> a bar chart </think><search> A@@S: {demonstration.question} </search>"
        assert answer == f"<answer> {reply} </answer>"
        assert demonstration.picture == picture
    assert len({demonstration.pieces[1] for demonstration in made}) > 15
    assert made == rehearsals(calls, 40, 3)
    assert made != rehearsals(calls, 40, 4)


def test_rehearsals_keep_some_questions_and_swap_words_of_others(picture: Picture) -> None:
    calls = a_call(picture)
    questions = [d.question for d in rehearsals(calls, 200, 1)]
    known = re.compile(r"What is the value of [A-Z][a-z]+ in the chart\?")
    kept = sum(bool(known.fullmatch(question)) for question in questions)
    assert 40 <= kept <= 75  # a quarter of them by rule, a few more by chance
    assert len(set(questions)) == 200
    assert all(len(question.split()) == 9 and question.startswith("What ") for question in questions)
    assert not any("Kamori" in question for question in questions)


def test_without_any_reply_there_is_nothing_to_rehearse(picture: Picture) -> None:
    direct = Demonstration("q", picture, (("<answer> 4 </answer>", True),))
    assert rehearsals([direct], 10, 0) == []
    assert rehearsals([], 10, 0) == []
