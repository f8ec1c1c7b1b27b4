"""Facts of many trajectories: given back whole, in little memory."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eval.facts import Facts
from eval.facts_table import FactsTable

FACTS = Facts(
    arm="after", row_id="a", sample=0, split="test", group="counting", valid=True, value=1.0, vote="42", error=None,
    failure=None, stop="answered", turns=2, calls=1, copied_calls=1, malformed_turns=0, forged=0, cached_calls=0,
    pairs=("Counter@@Counting",), policy_prompt_tokens=700, policy_completion_tokens=40, expert_prompt_tokens=90,
    expert_completion_tokens=4, expert_requests=1, cost=0.25, latency_s=1.5, policy_s=1.0, expert_s=0.5, lenient=1.0,
    groups=(("half", "first"),), cluster=None, judged=None, row_digest="0123456789abcdef",
)  # fmt: skip


def test_facts_come_back_in_the_order_of_their_first_appearance() -> None:
    table = FactsTable()
    for row, note in (("b", 0), ("a", 70), ("b", 140)):
        table.put(replace(FACTS, row_id=row, value=note / 140), note)
    assert list(table) == [("after", "b", 0), ("after", "a", 0)]
    assert [facts.value for facts in table.values()] == [1.0, 0.5]
    assert (len(table), table.note(("after", "b", 0)), table.note(("after", "a", 0))) == (2, 140, 70)


def test_what_the_table_lacks_is_missing_by_its_own_name() -> None:
    table = FactsTable()
    table.put(FACTS, 0)
    assert table.get(("before", "a", 0)) is None
    assert ("after", "a", 1) not in table
    with pytest.raises(KeyError, match="'after', 'c', 0"):
        table.note(("after", "c", 0))


@settings(max_examples=100)
@given(
    row=st.text(st.characters(), max_size=12),
    vote=st.none() | st.text(st.characters(), max_size=12),
    pairs=st.lists(st.sampled_from(["A@@Count", "B@@Read"]), max_size=3).map(tuple),
    tokens=st.integers(0, 1 << 70),
    seconds=st.floats(0, 1e9),
    value=st.none() | st.floats(0, 1),
)
def test_any_facts_come_back_equal(row, vote, pairs, tokens, seconds, value) -> None:
    asked = replace(
        FACTS, row_id=row, vote=vote, pairs=pairs, policy_prompt_tokens=tokens, latency_s=seconds, value=value,
        valid=value is not None, cluster=vote, error=vote,
    )  # fmt: skip
    table = FactsTable()
    table.put(FACTS, 5)
    table.put(asked, 1 << 40)
    assert (table[asked.key], table.note(asked.key)) == (asked, 1 << 40)


def test_a_row_takes_a_few_hundred_bytes() -> None:
    table = FactsTable()
    tracemalloc.start()
    try:
        for number in range(4000):
            seconds = number * 1.1
            table.put(
                replace(FACTS, row_id=f"row-{number:06d}", latency_s=seconds, row_digest=f"{number:016x}"), number
            )
        taken = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert taken / 4000 < 480
