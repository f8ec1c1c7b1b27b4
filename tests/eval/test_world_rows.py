"""Rows of the embedded world: seeded, balanced, split without overlap, worded so that pictures matter."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from collections import Counter
from itertools import islice
from random import Random

import pytest
from PIL import Image

from eval.benchmarks.embedded import triangles
from eval.benchmarks.embedded.drawing import SPLITS, Part
from eval.benchmarks.embedded.names import SYLLABLES, draw_name
from eval.benchmarks.embedded.sheet import contact_sheet
from eval.benchmarks.embedded.wordings import WORDINGS, choose
from eval.benchmarks.embedded.world import FAMILIES, generate, make_row

SHARING = sorted({family for wording in WORDINGS if wording.shared for family in wording.asks})


def test_there_are_twelve_families() -> None:
    assert sorted(FAMILIES) == [
        "bar_extreme",
        "bar_value",
        "grid_size",
        "line_crossings",
        "nested_squares",
        "olympic_rings",
        "relative_position",
        "right_triangle",
        "shape_colour",
        "shape_count",
        "subway_routes",
        "touching_circles",
    ]


def test_rows_do_not_depend_on_how_many_are_asked_for() -> None:
    assert list(generate("train", 5, seed=3)) == list(islice(generate("train", 40, seed=3), 5))
    assert make_row("train", 4, seed=3) == list(generate("train", 5, seed=3))[4]


def test_seeds_and_splits_give_different_rows() -> None:
    pictures = {
        make_row(split, 0, seed).pictures for split in ("train", "validation", "test") for seed in (0, 1)
    }
    assert len(pictures) == 6


def test_rows_are_the_same_in_another_process() -> None:
    program = (
        "import zlib; from eval.benchmarks.embedded.world import generate; "
        "print([(r.question, r.answer, zlib.crc32(r.pictures[0])) for r in generate('test', 12, 7)])"
    )
    texts = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(texts) == 1


def test_every_block_of_twelve_holds_each_family_once_in_changing_order() -> None:
    groups = [row.group for row in generate("train", 36, seed=0)]
    blocks = [groups[start : start + 12] for start in (0, 12, 24)]
    assert [sorted(block) for block in blocks] == [sorted(FAMILIES)] * 3
    assert blocks[0] != blocks[1]


def test_a_row_says_what_it_is() -> None:
    row = make_row("validation", 5, seed=2)
    assert row.id == "embedded-validation-2-000005"
    assert (row.benchmark, row.split, row.choices) == ("embedded", "validation", None)
    assert set(row.extra) == {"wording", "shared", "caption"}
    assert row.extra["caption"] in FAMILIES[row.group].captions


def test_pictures_are_rgb_png_of_200_to_320_pixels_a_side() -> None:
    for row in generate("train", 24, seed=1):
        [data] = row.pictures
        picture = Image.open(io.BytesIO(data))
        assert (picture.format, picture.mode) == ("PNG", "RGB")
        assert all(200 <= side <= 320 for side in picture.size), row.group


def test_an_unknown_split_is_refused_before_anything_is_drawn() -> None:
    with pytest.raises(ValueError, match="unknown split 'dev'"):
        generate("dev", 3, seed=0)


ANSWERS = {
    "bar_value": r"\d{1,3}(\.\d)?|1000",
    "bar_extreme": r"[A-Z][a-z]{3,5}",
    "shape_count": r"[1-9]|10",
    "shape_colour": r"red|green|blue|yellow|orange|purple|pink|cyan",
    "relative_position": r"Yes|No",
    "touching_circles": r"Yes|No",
    "olympic_rings": r"[3-8]",
    "nested_squares": r"[2-7]",
    "line_crossings": r"[0-3]|Yes|No",
    "subway_routes": r"[0-3]",
    "grid_size": r"[2-9],[2-9]",
    "right_triangle": r"\d{1,3}(\.5)?",
}


def test_answers_have_the_form_of_their_family() -> None:
    for row in generate("test", 72, seed=4):
        assert re.fullmatch(ANSWERS[row.group], row.answer), (row.group, row.question, row.answer)


def test_questions_are_short_and_filled_in() -> None:
    for row in generate("test_unseen", 48, seed=4):
        assert len(row.question.split()) <= 14
        assert not set("{}<>") & set(row.question), row.question


def test_test_uses_the_wordings_of_training_and_test_unseen_only_others() -> None:
    seen = {wording.id for wording in WORDINGS if wording.seen}
    assert {row.extra["wording"] for row in generate("test", 48, seed=5)} <= seen
    assert not {row.extra["wording"] for row in generate("test_unseen", 48, seed=5)} & seen


@pytest.mark.parametrize("family", SHARING)
@pytest.mark.parametrize("seen", [True, False])
def test_about_45_percent_of_a_sharing_familys_rows_have_a_shared_wording(family: str, seen: bool) -> None:
    rng = Random(0)
    share = sum(choose(rng, family, seen=seen).shared for _ in range(4000)) / 4000
    assert 0.42 < share < 0.48


def test_each_family_has_four_wordings_of_its_own_and_two_that_training_never_uses() -> None:
    own = [wording for wording in WORDINGS if not wording.shared]
    assert Counter((*wording.asks, wording.seen) for wording in own) == {
        **{(family, True): 4 for family in FAMILIES},
        **{(family, False): 2 for family in FAMILIES},
    }


def test_wordings_have_ids_and_texts_of_their_own_and_at_most_twelve_words() -> None:
    assert len({wording.id for wording in WORDINGS}) == len(WORDINGS)
    assert len({wording.text for wording in WORDINGS}) == len(WORDINGS)
    assert max(len(wording.text.split()) for wording in WORDINGS) <= 12


def test_unseen_wordings_are_made_of_words_seen_in_training() -> None:
    def words(seen: bool) -> set[str]:
        texts = (re.sub(r"\{\w+\}", "", wording.text).lower() for wording in WORDINGS if wording.seen == seen)
        return {word for text in texts for word in re.findall(r"[\w-]+", text)}

    assert words(seen=False) <= words(seen=True)
    assert len(words(seen=True)) < 100


def test_nine_families_share_wordings_with_families_that_look_different() -> None:
    assert len(SHARING) == 9
    for wording in WORDINGS:
        looks = {FAMILIES[family].captions for family in wording.asks}
        assert len(looks) == len(wording.asks), wording.id


def test_captions_say_nothing_of_experts_or_skills() -> None:
    for family in FAMILIES.values():
        assert 2 <= len(family.captions) <= 3
        for caption in family.captions:
            assert not re.search(r"[A-Z@_]|skill|solver|reader|tracer|spotter|analyst|geometer", caption)


def test_names_are_made_of_sixty_syllables_and_never_shared_by_train_and_test() -> None:
    rng = Random(0)
    names = {
        split: {draw_name(rng, Part(split)) for _ in range(1500)} for split in ("train", "validation", "test")
    }
    assert len(SYLLABLES) == 60
    assert all(re.fullmatch(f"({'|'.join(SYLLABLES)}){{2,3}}", name.lower()) for name in names["train"])
    assert not names["test"] & names["train"]
    assert not names["validation"] & names["train"]
    assert not names["validation"] & names["test"]


def test_both_test_splits_use_the_same_part_of_the_world() -> None:
    contents = [(number, "content") for number in range(1000)]
    owners = {split: {c for c in contents if Part(split).owns(c)} for split in SPLITS}
    assert owners["test"] == owners["test_unseen"]
    assert owners["train"] | owners["validation"] | owners["test"] == set(contents)
    assert [round(len(owners[split]), -2) for split in ("train", "validation", "test")] == [600, 100, 300]


def test_test_asks_for_sides_of_triangles_that_training_never_asks_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    drawn: list[tuple[float, ...]] = []

    def note(rng: Random, part: Part, sides: list[float], labels: list[str]) -> bytes:
        drawn.append(tuple(sorted(sides)))
        return b""

    monkeypatch.setattr(triangles, "_paint", note)

    def asked(split: str) -> set[tuple[object, ...]]:
        rng, part = Random(1), Part(split)
        answers = [triangles.draw_right("letter", rng, part).answer for _ in range(400)]
        found = set(zip(drawn, answers, strict=True))
        drawn.clear()
        return found

    train, test = asked("train"), asked("test")
    assert len(train) > 100 and len(test) > 50
    assert not train & test


def test_the_contact_sheet_has_a_line_for_each_family() -> None:
    sheet = contact_sheet("test", seed=0, columns=1)
    assert sheet.size == (8 + 188 + 2 * 102, 12 * 250)
