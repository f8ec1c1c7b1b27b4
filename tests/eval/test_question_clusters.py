"""Several rows of one question (rotated options): intervals, comparisons and plans draw questions, not rows."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from made_hrbench import Kites
from PIL import Image

from eval.benchmarks.catalogue import find_benchmark
from eval.benchmarks.reader import Reading, read_items
from eval.facts import Facts
from eval.journal import Journal
from eval.metrics import summarise
from eval.own_figures import own_figures
from eval.redraw import redraw
from eval.statistics.bootstrap import interval
from eval.statistics.groups import groups
from eval.statistics.macro import macro_interval
from eval.statistics.paired import compare
from eval.statistics.power import detectable_difference_of_means, sample_size, sample_size_of_means
from registry.errors import UserFault

HEAD = "index\tquestion\tanswer\tcategory\tA\tB\tC\tD\tcycle_category\timage\n"
RIGHT = [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0]


def picture(colour: str) -> str:
    buffer = io.BytesIO()
    Image.new("RGB", (64, 48), colour).save(buffer, "PNG")
    return base64.b64encode(buffer.getvalue()).decode()


def rotated(make_facts, values: Sequence[float], rotations: int = 4, **details) -> list[Facts]:
    """Questions with these scores, each in so many rotations that all score the same."""
    return [
        make_facts(f"q{i}r{r}", value, cluster=f"q{i}", groups={"cycle": str(r), "category": "single"}, **details)
        for i, value in enumerate(values)
        for r in range(rotations)
    ]


def test_ten_questions_of_four_equal_rows_have_the_interval_of_ten_rows_not_of_forty(make_facts) -> None:
    ten = [make_facts(f"row-{i}", value) for i, value in enumerate(RIGHT)]
    forty = rotated(make_facts, RIGHT)
    found = summarise(forty)
    assert (found.n, found.questions, found.accuracy) == (40, 10, 0.6)
    assert found.ci95 == summarise(ten).ci95 == pytest.approx((0.3, 0.9))
    low, high = interval([(fact.value or 0.0, 1) for fact in forty], seed=0) or (0, 0)
    assert high - low == pytest.approx(0.3, abs=0.026)  # what forty independent rows would claim: half as wide


def test_ten_questions_all_right_are_as_sure_as_ten_rows(make_facts) -> None:
    # Wilson for 10 of 10: 10 / (10 + 3.8415) = 0.7225; for 40 of 40 it would be 0.9124.
    found = summarise(rotated(make_facts, [1.0] * 10))
    assert found.ci95 == pytest.approx((0.7225, 1.0), abs=1e-4)


def test_rows_without_a_key_are_questions_of_their_own(make_facts) -> None:
    found = summarise([make_facts(f"row-{i}", 1.0) for i in range(10)])
    assert (found.n, found.questions) == (10, 10)


def test_groups_count_rows_and_draw_questions(make_facts) -> None:
    [found] = groups(rotated(make_facts, [1.0] * 10), seed=0).values()
    assert found.n == 40
    assert found.ci95 == pytest.approx((0.7225, 1.0), abs=1e-4)


def test_rotations_draw_their_questions_together(make_facts) -> None:
    # All four means are the same in each resample, so their mean is as wide as one of them: 0.3 to 0.9. Drawn each for
    # itself they would even each other out to half of that.
    found = macro_interval(rotated(make_facts, RIGHT), seed=0, name=lambda fact: dict(fact.groups)["cycle"])
    assert found == pytest.approx((0.3, 0.9))


def test_rotations_that_are_all_right_are_as_sure_as_one_of_them(make_facts) -> None:
    found = macro_interval(rotated(make_facts, [1.0] * 10), seed=0, name=lambda fact: dict(fact.groups)["cycle"])
    assert found == pytest.approx((0.7225, 1.0), abs=1e-4)


def test_the_headline_over_unequal_rotations_has_an_interval_of_its_own(make_facts) -> None:
    # Rotation 0: 8 rows, half of them right; rotation 1: the 4 right ones among these alone. Micro 8/12, headline 0.75.
    facts = [
        make_facts(f"q{i}r{r}", float(i < 4), cluster=f"q{i}", groups={"cycle": str(r), "category": "single"})
        for i in range(8)
        for r in (0, 1)
        if r == 0 or i < 4
    ]
    found = own_figures(facts, find_benchmark("hrbench4k"), seed=0)
    assert found["average"] == 0.75
    # The mean is (k / 8 + 1) / 2 with k of 8 from the right half: 2.5 % and 97.5 % of the binomial are 1 and 7.
    assert found["average_ci95"] == pytest.approx((0.5625, 0.9375))


def test_a_headline_that_is_the_mean_has_the_interval_of_the_mean(make_facts) -> None:
    facts = [make_facts(f"row-{i}", value) for i, value in enumerate(RIGHT)]
    found = own_figures(facts, find_benchmark("embedded"), seed=0)
    assert (found["average"], found["average_ci95"]) == (0.6, summarise(facts).ci95)


def test_a_comparison_wins_loses_and_draws_questions(make_facts) -> None:
    before = rotated(make_facts, [0.0] * 6 + [1.0] * 4)
    after = rotated(make_facts, [1.0] * 3 + [0.0] * 3 + [1.0] * 4)
    found = compare(before, after, seed=0)
    rows = compare(
        [make_facts(f"r{i}", value) for i, value in enumerate([0.0] * 6 + [1.0] * 4)],
        [make_facts(f"r{i}", value) for i, value in enumerate([1.0] * 3 + [0.0] * 3 + [1.0] * 4)],
        seed=0,
    )
    assert found is not None and rows is not None
    assert (found.n, found.questions, rows.n, rows.questions) == (40, 10, 10, 10)
    assert (found.wins, found.losses, found.ties, found.discordant) == (3, 0, 7, 0.3)
    assert (found.difference, found.ci95, found.p) == (rows.difference, rows.ci95, rows.p)
    assert (found.mcnemar_p, rows.mcnemar_p) == (None, 0.25)
    assert found.questions_needed == rows.questions_needed == sample_size(0.3, 0.3)


def test_a_question_half_won_plans_with_its_mean_square(make_facts) -> None:
    # Ten questions of two rotations, each won in one of them: every gain is 0.5, so one question would do.
    before = [make_facts(f"q{i}r{r}", 0.0, cluster=f"q{i}") for i in range(10) for r in (0, 1)]
    after = [make_facts(f"q{i}r{r}", float(r), cluster=f"q{i}") for i in range(10) for r in (0, 1)]
    found = compare(before, after, seed=0)
    assert found is not None
    assert (found.wins, found.losses, found.difference) == (10, 0, 0.5)
    assert found.questions_needed == sample_size_of_means(0.5, 0.25) == 4  # (1.96 * 0.5 / 0.5)**2 = 3.84
    assert found.detectable == detectable_difference_of_means(10, 0.25)


def test_plans_over_means_are_those_over_shares_where_gains_are_whole() -> None:
    assert sample_size_of_means(0.1, 0.3) == sample_size(0.1, 0.3)
    with pytest.raises(ValueError, match=r"difference\*\*2 <= mean square"):
        sample_size_of_means(0.5, 0.2)
    assert detectable_difference_of_means(2, 0.25) is None
    assert detectable_difference_of_means(10, 0.0) is None


def test_hr_bench_rows_of_one_question_and_picture_carry_one_key(tmp_path: Path) -> None:
    one, other = picture("white"), picture("black")
    lines = [
        f"0\tWhich?\tA\tsingle\tred\tblue\tgreen\tgrey\t0\t{one}",
        f"1\tWhich?\tD\tsingle\tblue\tgreen\tgrey\tred\t1\t{one}",
        f"2\tWhich?\tA\tsingle\tred\tblue\tgreen\tgrey\t0\t{other}",
        f"3\tWhere?\tA\tcross\tred\tblue\tgreen\tgrey\t0\t{one}",
    ]
    (tmp_path / "hr_bench_4k.tsv").write_text(HEAD + "\n".join(lines) + "\n")
    keys = [item.cluster for item in read_items(find_benchmark("hrbench4k"), Reading(tmp_path))]
    assert None not in keys
    assert keys[0] == keys[1]
    assert len(set(keys)) == 3


def test_a_key_can_be_a_column_and_a_missing_one_is_told(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text('{"question": "q", "answer": "a", "about": 7}\n')
    yaml = "name: birds\ntitle: Birds\nlicence: mine\nscorer: {official: exact, source: made}\n"
    (tmp_path / "birds.yaml").write_text(f"{yaml}question_key: {{columns: about}}\n")
    reading = Reading(tmp_path / "rows.jsonl", text_only=True)
    [item] = read_items(find_benchmark(str(tmp_path / "birds.yaml")), reading)
    assert item.cluster == "7"
    (tmp_path / "birds.yaml").write_text(f"{yaml}question_key: {{columns: abuot}}\n")
    with pytest.raises(UserFault, match="no column 'abuot' for the question's key"):
        list(read_items(find_benchmark(str(tmp_path / "birds.yaml")), reading))


@pytest.mark.parametrize("key", ["{}", "{columns: a, same: [question]}", "{same: [answer]}"])
def test_a_key_that_says_nothing_or_two_things_is_refused(tmp_path: Path, key: str) -> None:
    yaml = "name: birds\ntitle: Birds\nlicence: mine\nscorer: {official: exact, source: made}\n"
    (tmp_path / "birds.yaml").write_text(f"{yaml}question_key: {key}\n")
    with pytest.raises(UserFault, match=r"birds\.yaml:5: question_key"):
        find_benchmark(str(tmp_path / "birds.yaml"))


def test_the_key_is_in_the_journal_and_one_without_it_is_still_read(tmp_path: Path, make_trajectory) -> None:
    score = {"value": 1.0, "answer": "42", "explanation": ""}
    with Journal(tmp_path / "journal.jsonl") as journal:
        journal.append(arm="after", split="test", score=score, trajectory=make_trajectory("old"))
        journal.append(arm="after", split="test", score=score, trajectory=make_trajectory("new"), cluster="q7")
    with Journal(tmp_path / "journal.jsonl") as journal:
        found = {fact.row_id: (fact.cluster, fact.question) for fact in journal.facts.values()}
    assert found == {"old": (None, "old"), "new": ("q7", "q7")}


def test_results_drawn_from_a_journal_without_keys_have_them_from_the_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    kites = Kites(tmp_path, ["B", "B", "B", "D"])  # three rows that ask one question, and another one
    found = kites.start(None).results["baselines"]["parrot"]
    assert (found["n"], found["questions"], found["accuracy"]) == (4, 2, 0.75)
    journal = kites.run / "journal.jsonl"
    records = [json.loads(line) for line in journal.read_text().splitlines()]
    assert len({record.pop("cluster") for record in records}) == 2
    journal.write_text("".join(json.dumps(record) + "\n" for record in records))
    again = redraw(kites.run).results["baselines"]["parrot"]
    assert (again["questions"], again["ci95"]) == (2, found["ci95"])
