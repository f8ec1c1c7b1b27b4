"""Rows out of every kind of copy, as they will be asked, and one clear message for each row that can't be."""

from __future__ import annotations

import base64
import io
import json
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from eval.benchmarks.catalogue import find_benchmark
from eval.benchmarks.hub import through_datasets
from eval.benchmarks.item import Item
from eval.benchmarks.options import right_option
from eval.benchmarks.reader import Reading, outcomes, read_items
from eval.benchmarks.spec import Benchmark, Scorer
from eval.benchmarks.tally import RowFault, Tally
from orchestrator.prompt import question_text
from registry.errors import UserFault


def png(colour: tuple[int, int, int] = (200, 30, 30), size: tuple[int, int] = (64, 48)) -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", size, colour).save(buffer, "PNG")
    return buffer.getvalue()


def lines(folder: Path, *records: dict[str, Any], name: str = "samples.jsonl") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("".join(json.dumps(record) + "\n" for record in records))
    (folder / "images").mkdir(exist_ok=True)
    (folder / "images" / "a.png").write_bytes(png())
    return folder


def rows_of(benchmark: Benchmark | str, data_root: Path, **how: Any) -> list[Item]:
    found = find_benchmark(benchmark) if isinstance(benchmark, str) else benchmark
    return list(read_items(found, Reading(data_root, **how)))


def faults_of(benchmark: str, data_root: Path) -> list[str]:
    spec = find_benchmark(benchmark)
    found = outcomes(spec, Reading(data_root), Tally(spec.name))
    return [one.what for one in found if isinstance(one, RowFault)]


CHART: dict[str, Any] = {
    "id": "7",
    "question": "How high?",
    "answer": "12",
    "type": "human_test",
    "image": "images/a.png",
}


def test_a_row_becomes_a_task_with_pictures_gold_and_labels(tmp_path: Path) -> None:
    [item] = rows_of("chartqa", lines(tmp_path, CHART))
    task = item.task()
    assert (task.row_id, task.benchmark, task.group, task.question) == ("chartqa/7", "chartqa", "human", "How high?")
    assert (task.ground_truth, task.choices, dict(item.groups)) == ("12", None, {"split": "human"})
    assert [(picture.width, picture.height) for picture in task.pictures] == [(64, 48)]


def test_the_copy_is_found_below_a_folder_of_copies_by_name(tmp_path: Path) -> None:
    lines(tmp_path / "ChartQA", CHART)
    lines(tmp_path / "other", {"id": "1"})
    assert [item.row.id for item in rows_of("chartqa", tmp_path)] == ["chartqa/7"]


def test_the_same_rows_come_from_lines_parquet_table_and_a_saved_data_set(tmp_path: Path) -> None:
    from datasets import Dataset, Features, Value
    from datasets import Image as Picture

    lines(tmp_path / "lines", CHART, name="test.jsonl")
    cell = {"bytes": png(), "path": None}
    record = {**CHART, "image": cell}
    (tmp_path / "parquet" / "data").mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist([record]), tmp_path / "parquet" / "data" / "test-00000-of-00001.parquet")
    features = Features({**dict.fromkeys(("id", "question", "answer", "type"), Value("string")), "image": Picture()})
    Dataset.from_list([record], features=features).save_to_disk(tmp_path / "saved")
    (tmp_path / "list").mkdir()
    (tmp_path / "list" / "test.json").write_text(json.dumps([{**CHART, "image": "a.png"}]))
    (tmp_path / "list" / "a.png").write_bytes(png())
    found = [rows_of("chartqa", tmp_path / kind) for kind in ("lines", "parquet", "saved", "list")]
    shapes = [[(item.row.id, item.row.answer, item.groups, item.pictures) for item in items] for items in found]
    assert shapes[0] and all(shape == shapes[0] for shape in shapes)


def test_a_stream_through_datasets_keeps_pictures_encoded(tmp_path: Path) -> None:
    from datasets import Dataset, Features, List, Value
    from datasets import Image as Picture

    features = Features({"question": Value("string"), "image": Picture(), "images": List(Picture())})
    cell = {"bytes": png(), "path": None}
    table = Dataset.from_list([{"question": "q", "image": cell, "images": [cell, cell]}], features=features)
    table.to_parquet(str(tmp_path / "x.parquet"))
    [record] = through_datasets("parquet", split="train", data_files=str(tmp_path / "x.parquet"))
    assert record["image"]["bytes"] == png()
    assert [one["bytes"] for one in record["images"]] == [png(), png()]


def test_hr_bench_rows_carry_options_cycle_and_base64_pictures(tmp_path: Path) -> None:
    text = base64.b64encode(png()).decode()
    head = "index\tquestion\tanswer\tcategory\tA\tB\tC\tD\tcycle_category\timage\n"
    row = f"4\tWhat colour?\tC\tsingle\tred\tblue\tgreen\tblack\t1\t{text}\n"
    (tmp_path / "hr_bench_4k.tsv").write_text(head + row)
    [item] = rows_of("hrbench4k", tmp_path)
    task = item.task()
    assert question_text(task) == "What colour?\nA. red\nB. blue\nC. green\nD. black"
    assert (task.row_id, task.ground_truth, task.group) == ("hrbench4k/4", "C", "single")
    assert dict(item.groups) == {"category": "single", "cycle": "1"}
    assert len(task.pictures) == 1


def test_options_are_cut_out_of_the_question(tmp_path: Path) -> None:
    lines(
        tmp_path,
        {
            "text": "What is the glove made of?\n(A) rubber\n(B) wool\nAnswer with the letter.",
            "label": "B",
            "category": "direct_attributes",
            "question_id": 3,
            "image": "images/a.png",
        },
    )
    [item] = rows_of("vstar", tmp_path)
    task = item.task()
    assert question_text(task) == "What is the glove made of?\nAnswer with the letter.\nA. rubber\nB. wool"
    assert (task.row_id, task.choices, task.ground_truth) == ("vstar/direct_attributes/3", ("rubber", "wool"), "B")


def test_options_may_speak_of_panels_and_the_gold_answer_may_be_the_whole_line(tmp_path: Path) -> None:
    query = "<image>\nCaption: (A) a map (B) a key\nQuestion: Which?\nOptions:\nA. panel (A)\nB. panels (A) and (B)\n"
    lines(tmp_path, {"query": query, "response": "B. panels (A) and (B)", "image": "images/a.png", "question_id": "x"})
    [item] = rows_of("msearthmcq", tmp_path)
    assert item.row.choices == ("panel (A)", "panels (A) and (B)")
    assert item.row.answer == "B"
    assert item.row.question == "Caption: (A) a map (B) a key\nQuestion: Which?"


def test_an_option_given_by_its_number_becomes_its_letter(tmp_path: Path) -> None:
    record = {"question": "Where?", "choices": ["here", "there"], "correct_index": 1, "task": 2}
    lines(tmp_path, {**record, "images_list": ["images/a.png", "images/a.png"]})
    [item] = rows_of("microvqa", tmp_path)
    assert (item.row.answer, item.row.group, len(item.pictures)) == ("B", "hypothesis generation", 2)


def test_the_places_of_several_pictures_are_kept_in_words(tmp_path: Path) -> None:
    record = {"question_id": "1", "answer": "A", "question_type": "Action", "images": ["images/a.png"] * 2}
    lines(tmp_path, {**record, "question": "Compare <image> with <image>. A. same B. other"})
    [item] = rows_of("erqa", tmp_path)
    assert item.row.question == "Compare (image 1) with (image 2). A. same B. other"
    assert len(item.task().pictures) == 2


def test_slake_pictures_come_out_of_the_zip_file_beside_the_data(tmp_path: Path) -> None:
    record = {
        "qid": 5,
        "q_lang": "zh",
        "answer": "肺",
        "question": "哪里?",
        "answer_type": "OPEN",
        "img_name": "x/s.png",
    }
    lines(tmp_path, record, name="test.jsonl")
    with zipfile.ZipFile(tmp_path / "imgs.zip", "w") as archive:
        archive.writestr("imgs/x/s.png", png())
    [item] = rows_of("slake", tmp_path)
    assert (item.groups["language"], item.groups["answer_type"]) == ("zh", "open")
    assert item.groups["language_and_type"] == "zh open"
    assert len(item.pictures) == 1


def test_a_benchmark_can_keep_one_language_alone(tmp_path: Path) -> None:
    spec = find_benchmark("slake").model_copy(update={"where": {"language": ("en",)}})
    record = {"answer": "lung", "question": "Where?", "answer_type": "OPEN", "image": "images/a.png"}
    lines(tmp_path, *({**record, "qid": i, "q_lang": lang} for i, lang in enumerate(["en", "zh", "en"])))
    tally = Tally("slake")
    items = list(read_items(spec, Reading(tmp_path), tally))
    assert [item.row.id for item in items] == ["slake/0", "slake/2"]
    assert tally.summary() == "2 of 3 rows; 1 not asked for"


def test_several_right_answers_are_all_kept(tmp_path: Path) -> None:
    record = {"question": "How many?", "answer": ["5014", "5,014"], "question_type": "Doc-oriented VQA"}
    [item] = rows_of("ocrbench", lines(tmp_path, {**record, "dataset": "ChartQA", "image": "images/a.png"}))
    assert item.task().ground_truth == ("5014", "5,014")
    assert item.groups["area"] == "documents"


def test_a_renamed_column_is_told_with_the_nearest(tmp_path: Path) -> None:
    renamed = {"id": "7", "questions": "How high?", "answer": "12", "image": "images/a.png"}
    with pytest.raises(UserFault) as caught:
        rows_of("chartqa", lines(tmp_path, renamed))
    assert "no column 'question' or 'query' for the question; the data has id, questions, answer" in str(caught.value)
    assert "did you mean 'questions'?" in str(caught.value)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"image": None}, "no image"),
        ({"image": "images/none.png"}, "bad image: no such image: 'images/none.png'"),
        ({"image": "../../etc/passwd"}, "bad image: "),
        ({"image": "images/half.png"}, "bad image: broken image"),
        ({"answer": None}, "no gold answer"),
        ({"answer": "  "}, "no gold answer"),
        ({"question": ""}, "no question"),
        ({"question": "<image><image> Which?"}, "too few images: the question asks for 2, the row has 1"),
        ({"id": "0"}, "duplicate id: 'chartqa/0'"),
    ],
)
def test_a_row_that_cannot_be_asked_is_one_clear_fault(tmp_path: Path, change: dict[str, Any], what: str) -> None:
    lines(tmp_path, {**CHART, "id": "0"}, {**CHART, **change})
    (tmp_path / "images" / "half.png").write_bytes(png(size=(300, 300))[:400])
    [fault] = faults_of("chartqa", tmp_path)
    assert fault.startswith(what)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"answer": "purple"}, "bad gold answer: gold answer 'purple' names none of the options"),
        ({"choices": ["red"]}, "bad options: 1 of them, expected 2 to 26"),
        ({"choices": None}, "bad options: the row has none"),
        ({"choices": "red, blue"}, "bad options: no list: 'red, blue'"),
    ],
)
def test_a_multiple_choice_row_that_does_not_fit_is_told(tmp_path: Path, change: dict[str, Any], what: str) -> None:
    good = {"id": 0, "question": "Which?", "choices": ["red", "blue"], "answer": "B", "image": "images/a.png"}
    lines(tmp_path, good, {**good, "id": 1, **change})
    [fault] = faults_of("geometry3k", tmp_path)
    assert fault.startswith(what)


def test_faulty_rows_are_skipped_and_counted_or_end_the_reading(tmp_path: Path) -> None:
    rows = [{**CHART, "id": str(i), "answer": None if i == 3 else "12"} for i in range(25)]
    lines(tmp_path, *rows)
    tally = Tally("chartqa")
    found = list(read_items(find_benchmark("chartqa"), Reading(tmp_path), tally))
    assert (len(found), tally.summary()) == (24, "24 of 25 rows; skipped 1: no gold answer 1")
    with pytest.raises(RowFault) as caught:
        rows_of("chartqa", tmp_path, on_fault="fail")
    assert caught.value.where == f"{tmp_path / 'samples.jsonl'}: line 4"


def test_reading_is_given_up_when_too_many_rows_are_faulty(tmp_path: Path) -> None:
    lines(tmp_path, *({**CHART, "id": str(i), "answer": None if i % 2 else "12"} for i in range(40)))
    with pytest.raises(UserFault) as caught:
        rows_of("chartqa", tmp_path)
    assert "more than 5 % of the rows are faulty (10 of 20 rows; skipped 10: no gold answer 10)" in str(caught.value)


def test_a_folder_without_the_data_says_what_was_looked_for(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("nothing here")
    with pytest.raises(UserFault) as caught:
        rows_of("chartqa", tmp_path)
    assert "no data of the benchmark 'chartqa'" in str(caught.value)
    assert "it holds: notes.txt" in str(caught.value)
    with pytest.raises(UserFault, match="no such folder or file"):
        rows_of("chartqa", tmp_path / "none")


def test_a_broken_line_is_told_with_its_number(tmp_path: Path) -> None:
    lines(tmp_path, CHART)
    with (tmp_path / "samples.jsonl").open("a") as file:
        file.write('{"id": "8", "quest')
    with pytest.raises(UserFault) as caught:
        rows_of("chartqa", tmp_path)
    assert caught.value.where == f"{tmp_path / 'samples.jsonl'}:2"


def test_rows_are_streamed(tmp_path: Path) -> None:
    spec = Benchmark(
        name="many", title="Many", licence="none", scorer=Scorer(official="exact", source="here"), id=("id",)
    )
    filler = "x" * 4000
    (tmp_path / "samples.jsonl").write_text(
        "".join(json.dumps({"id": i, "question": filler, "answer": "1"}) + "\n" for i in range(2_000))
    )
    tracemalloc.start()
    count = sum(1 for _ in read_items(spec, Reading(tmp_path, text_only=True)))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert count == 2_000
    assert peak < 2_000_000  # 8 MB of questions went by; what stays is a number of each id


def test_the_embedded_world_is_a_benchmark_like_the_others() -> None:
    items = list(read_items(find_benchmark("embedded"), Reading(limit=12)))
    assert len({item.row.id for item in items}) == 12
    assert len({item.groups["family"] for item in items}) == 12
    assert all(len(item.task().pictures) == 1 for item in items)


@pytest.mark.parametrize(("gold", "letter"), [(2, "C"), (2.0, "C"), ("2", "C")])
def test_the_number_of_an_option_may_have_become_a_float(gold: object, letter: str) -> None:
    assert right_option(gold, ["a", "b", "c"], is_index=True) == letter
