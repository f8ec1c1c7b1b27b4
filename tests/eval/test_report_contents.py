"""What goes into the report, in which order, and what is left out when it grows too large."""

from __future__ import annotations

import io
import json

import numpy as np
from PIL import Image

from eval.facts import facts_of
from eval.report.bundle import Bundle, json_in_html
from eval.report.cards import card_of, clean
from eval.report.choice import choose
from eval.report.thumbnails import thumbnail, within
from experts.images import load_picture


def card(make_trajectory, row: str, **details):
    trajectory = make_trajectory(row, **details)
    facts = facts_of("after", "test", 1.0, trajectory)
    score = {"value": 1.0, "answer": "42", "explanation": "equal"}
    return card_of({"arm": "after", "score": score, "trajectory": trajectory}, facts, "1: fine")


def test_rows_that_the_first_arm_got_wrong_and_right_take_turns_and_bring_all_arms(make_facts) -> None:
    facts = [make_facts(f"r{i}", float(i >= 2), arm="after") for i in range(4)]
    facts += [make_facts(f"r{i}", 1.0, arm="before") for i in range(4)]
    keys = choose(facts, lead="after", arms=["after", "before"])
    assert [key[1] for key in keys if key[0] == "after"] == ["r0", "r2", "r1", "r3"]
    assert keys[:2] == [("after", "r0", 0), ("before", "r0", 0)]
    assert len(choose(facts, lead="after", arms=["after", "before"], rows_per_family=1)) == 2


def test_families_take_turns_and_errors_come_first(make_facts) -> None:
    facts = [make_facts(f"a{i}", 1.0, group="a") for i in range(3)] + [make_facts("b0", 1.0, group="b")]
    facts.append(make_facts("a9", None, group="a"))
    keys = choose(facts, lead="after", arms=["after"])
    assert [key[1] for key in keys] == ["a9", "a0", "b0", "a1", "a2"]


def test_all_samples_of_a_row_stand_together(make_facts) -> None:
    facts = [make_facts(row, 1.0, sample=sample) for sample in range(2) for row in ("r0", "r1")]
    keys = choose(facts, lead="after", arms=["after"])
    assert keys == [("after", "r0", 0), ("after", "r0", 1), ("after", "r1", 0), ("after", "r1", 1)]


def test_taking_ends_with_the_first_card_that_does_not_fit(make_trajectory) -> None:
    bundle = Bundle(6_000)
    took = [bundle.add(card(make_trajectory, f"r{i}", observation=f"{i}" * 700)) for i in range(9)]
    assert took == sorted(took, reverse=True)
    assert 0 < sum(took) < 9
    assert bundle.full
    assert not bundle.add(card(make_trajectory, "small"))
    assert len(json_in_html(bundle.to_json())) <= 6_000 + 100
    assert bundle.rows == {f"r{i}" for i in range(sum(took))}


def test_a_text_that_many_cards_share_is_stored_once(make_trajectory) -> None:
    bundle = Bundle(100_000)
    for row in range(50):
        bundle.add(card(make_trajectory, f"r{row}", question="How tall is the highest bar of this chart?"))
    strings = bundle.to_json()["strings"]
    assert strings.count("How tall is the highest bar of this chart?") == 1
    assert len(strings) == len(set(strings))
    assert bundle.bytes < 50 * 200


def test_a_very_long_text_keeps_its_head_and_tail_and_says_how_much_is_missing(make_trajectory) -> None:
    seen = card(make_trajectory, "r0", observation="a" * 5_000 + "b" * 5_000).turns[0].observation
    assert seen.startswith("a" * 4_000 + "\n[... 4000 characters left out here ...]\n")
    assert seen.endswith("b" * 2_000)
    assert len(seen) < 6_100


def test_control_characters_and_changes_of_direction_are_replaced() -> None:
    assert clean("a\u202eb\x00c\ud83dd\ne\tf") == "a\ufffdb\ufffdc\ufffdd\ne\tf"
    assert clean(None) == ""


def test_json_cannot_leave_the_script_element_that_holds_it() -> None:
    text = json_in_html({"a": "</script><!--&amp;"})
    assert "<" not in text
    assert ">" not in text
    assert json.loads(text) == {"a": "</script><!--&amp;"}


def test_a_photograph_becomes_a_small_webp_and_a_drawing_stays_as_it_is() -> None:
    noise = np.random.default_rng(0).integers(0, 256, (600, 900, 3), dtype=np.uint8)
    photo = thumbnail(load_picture(Image.fromarray(noise)))
    drawing = thumbnail(load_picture(Image.new("RGB", (400, 300), "white")))
    assert photo.startswith("data:image/webp;base64,")
    assert len(photo) < 120_000
    assert drawing.startswith("data:image/png;base64,")
    import base64

    assert Image.open(io.BytesIO(base64.b64decode(photo.partition(",")[2]))).size == (360, 240)
    assert Image.open(io.BytesIO(base64.b64decode(drawing.partition(",")[2]))).size == (400, 300)


def test_pictures_after_the_first_that_does_not_fit_are_left_out() -> None:
    made = {"a": "x" * 97, "b": "y" * 97, "d": "z"}
    assert within(["a", "c", "b", "d"], made, 150) == ["x" * 97, None, None, None]
    assert within(["a", "c", "b", "d"], made, 1_000) == ["x" * 97, None, "y" * 97, "z"]
