"""Whatever a kill, a power cut or a bad disk leaves at a journal's end: what was whole is kept, and nothing twice."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from eval.journal import Journal
from registry.errors import UserFault

ROWS = ("a", "b", "c")
MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None  # a journal waits for the disk each time it is closed
RIGHT = {"value": 1.0, "answer": "42", "explanation": "equal"}
GARBAGE = st.one_of(
    st.binary(max_size=200),
    st.text('{}[]",:01\n\\ue null', max_size=80).map(str.encode),
    st.lists(st.sampled_from([b"\n", b"\x00" * 64, b"{}\n", b"[]\n", b'"x"\n', b"\xff\n", b'{"version":1}\n'])).map(
        b"".join
    ),
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
        max_leaves=8,
    ).map(lambda value: json.dumps(value).encode() + b"\n"),
)


@dataclass(frozen=True)
class Written:
    """A journal of three records as bytes, where each record ends (without its line end), and how to add one."""

    text: bytes
    ends: tuple[int, ...]
    append: Callable[[Journal, str], None]


@pytest.fixture(scope="session")
def written(make_trajectory, tmp_path_factory: pytest.TempPathFactory) -> Written:
    def append(journal: Journal, row: str) -> None:
        journal.append(arm="after", split="test", score=RIGHT, trajectory=make_trajectory(row))

    path = tmp_path_factory.mktemp("whole") / "journal.jsonl"
    with Journal(path) as journal:
        for row in ROWS:
            append(journal, row)
    text = path.read_bytes()
    lines = text.splitlines(keepends=True)
    return Written(text, tuple(sum(map(len, lines[: i + 1])) - 1 for i in range(len(lines))), append)


@given(cut=st.integers(0, 6000), garbage=GARBAGE)
@example(cut=10**6, garbage=b"[" * 100_000)
@example(cut=10**6, garbage=b"[" * 100_000 + b"\n")
@example(cut=10**6, garbage=b'{"version":1,"arm":"a","split":"t","score":null,"trajectory":{"turns":5}}\n')
@example(cut=10**6, garbage=b'{"version":1,"arm":"a","split":"t","score":{"value":NaN},"trajectory":{}}\n')
@settings(max_examples=80, deadline=None)
def test_any_cut_and_any_rubbish_behind_it_keep_what_was_whole(written: Written, cut: int, garbage: bytes) -> None:
    kept = [row for row, end in zip(ROWS, written.ends, strict=True) if end <= cut]
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        path = Path(folder) / "journal.jsonl"
        path.write_bytes(written.text[:cut] + garbage)
        with Journal(path, read_only=True) as seen:
            looked_at = list(seen.facts)
        assert path.read_bytes() == written.text[:cut] + garbage
        with Journal(path) as journal:
            found = [row for _, row, _ in journal.facts]
            assert list(journal.facts) == looked_at
            assert found[: len(kept)] == kept
            assert set(found) <= set(ROWS)
            written.append(journal, "new")
        with Journal(path) as again:
            assert again.repair is None
            assert [row for _, row, _ in again.facts] == [*found, "new"]
            assert again.read(("after", "new", 0))["score"] == RIGHT
        lines = [json.loads(line)["trajectory"]["row_id"] for line in path.read_bytes().splitlines()]
        assert lines == [*found, "new"]


def test_every_single_cut_keeps_the_records_before_it(tmp_path: Path, written: Written) -> None:
    path = tmp_path / "journal.jsonl"
    for cut in (0, 1, *(end + step for end in written.ends for step in (-1, 0, 1)), len(written.text)):
        path.write_bytes(written.text[:cut])
        with Journal(path) as journal:
            assert len(journal.facts) == sum(end <= cut for end in written.ends)


def test_more_than_half_a_line_is_moved_aside_and_not_thrown_away(tmp_path: Path, written: Written) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_bytes(written.text + b"not a record\nnor this\n")
    with Journal(path) as journal:
        assert journal.repair is not None
        assert (journal.repair.dropped_bytes, journal.repair.kept_in) == (22, tmp_path / "journal.jsonl.cut")
    assert (tmp_path / "journal.jsonl.cut").read_bytes() == b"not a record\nnor this\n"
    assert path.read_bytes() == written.text


def test_a_journal_of_another_version_is_refused_and_left_alone(tmp_path: Path, written: Written) -> None:
    path = tmp_path / "journal.jsonl"
    text = written.text.replace(b'{"version":1,"arm"', b'{"version":2,"arm"')
    path.write_bytes(text)
    with pytest.raises(UserFault, match=r"version 2, known is 1"):
        Journal(path)
    assert path.read_bytes() == text


def test_reading_neither_makes_a_journal_nor_waits_for_its_writer(tmp_path: Path, written: Written) -> None:
    path = tmp_path / "journal.jsonl"
    with pytest.raises(UserFault, match="cannot be read"):
        Journal(path, read_only=True)
    assert not path.exists()
    with Journal(path) as writer:
        written.append(writer, "a")
        with Journal(path, read_only=True) as reader:
            assert len(reader.facts) == 1
