"""Shards run by several workers at once: how many there are, restarts, progress of all together, and their ends."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from eval.engines.events import Began, Died, Event, Finished, Progressed, Refused
from eval.engines.plan import begun, make_plan
from eval.engines.progress import Board, Counter
from eval.engines.restarts import Restarts
from eval.engines.supervisor import Supervisor
from eval.merge_target import check_target
from eval.shard import Shard
from maestro.cli.evaluate_engine import Engine, check_engine
from registry.errors import UserFault

FIRST, SECOND = Shard(1, 2), Shard(2, 2)


@dataclass
class ScriptedCrew:
    """A crew whose workers do what is written: one list of events a start of a shard; a clock of whole polls."""

    scripts: dict[Shard, list[list[Event]]]
    interrupt_at: float | None = None
    now: float = 0.0
    started: list[tuple[float, Shard]] = field(default_factory=list)
    stops: int = 0
    waiting: list[Event] = field(default_factory=list)

    def start(self, shard: Shard) -> None:
        self.started.append((self.now, shard))
        self.waiting += self.scripts[shard].pop(0)

    def poll(self, seconds: float) -> list[Event]:
        self.now += seconds
        if self.interrupt_at is not None and self.now >= self.interrupt_at:
            raise KeyboardInterrupt
        events, self.waiting = self.waiting, []
        return events

    def stop(self) -> None:
        self.stops += 1


class Told:
    """A supervisor over a crew, and all that it told and showed."""

    def __init__(self, crew: ScriptedCrew, **options: object) -> None:
        self.lines: list[str] = []
        self.warnings: list[str] = []
        self.shown: list[tuple[str, int, int | None]] = []
        self.supervisor = Supervisor(
            [FIRST, SECOND],
            crew,
            show=lambda *seen: self.shown.append(seen),
            tell=self.lines.append,
            warn=self.warnings.append,
            clock=lambda: crew.now,
            **options,  # type: ignore[arg-type]
        )


def test_a_new_run_is_divided_as_asked_or_by_nodes(tmp_path: Path) -> None:
    assert make_plan(tmp_path / "x", None, nodes=3).shards == (Shard(1, 3), Shard(2, 3), Shard(3, 3))
    plan = make_plan(tmp_path / "x", 2, nodes=3)
    assert plan.folders == [tmp_path / "x-shard-1-of-2", tmp_path / "x-shard-2-of-2"]


def test_a_run_goes_on_in_the_shards_in_which_it_was_begun(tmp_path: Path) -> None:
    for name in ("x-shard-1-of-4", "x-shard-3-of-4", "xy-shard-1-of-7", "x-shard-a-of-2"):
        (tmp_path / name).mkdir()
    assert begun(tmp_path / "x") == {4}
    assert len(make_plan(tmp_path / "x", None, nodes=2).shards) == 4
    with pytest.raises(UserFault, match="was begun in 4 shards, not in 3"):
        make_plan(tmp_path / "x", 3, nodes=2)
    (tmp_path / "x-shard-1-of-2").mkdir()
    with pytest.raises(UserFault, match="begun more than once, in 2, 4 shards"):
        make_plan(tmp_path / "x", None, nodes=2)
    assert len(make_plan(tmp_path / "x", 2, nodes=8).shards) == 2


def test_more_shards_than_there_can_be_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserFault, match="can't have 10001 shards"):
        make_plan(tmp_path / "x", 10_001, nodes=1)


def test_a_shard_waits_longer_after_each_death_and_is_given_up_after_the_last() -> None:
    restarts = Restarts(3)
    assert [restarts.after_death(FIRST) for _ in range(4)] == [2.0, 4.0, 8.0, None]
    assert restarts.after_death(SECOND) == 2.0
    patient = Restarts(9)
    assert [patient.after_death(FIRST) for _ in range(6)][-2:] == [30.0, 30.0]


def test_phases_are_counted_where_they_run() -> None:
    counter = Counter()
    step = counter.start_phase("rows", 2)
    step()
    again = counter.start_phase("rows", 3)
    again()
    counter.start_phase("arm", None)()
    assert counter.read() == {"rows": (2, 5), "arm": (1, None)}


def test_the_progress_of_all_shards_is_their_sum_and_never_runs_backwards() -> None:
    board = Board([FIRST, SECOND])
    board.update(FIRST, {"rows": (1, 1), "arm": (4, 10)})
    board.update(SECOND, {"rows": (1, 1), "arm": (2, 10)})
    assert board.total() == {"rows": (2, 2), "arm": (6, 20)}
    board.restart(FIRST)  # its journal holds 4 of 10
    assert board.total() == {"rows": (2, 2), "arm": (6, 14)}
    board.update(FIRST, {"arm": (1, 6)})
    assert board.total()["arm"] == (7, 20)
    board.update(SECOND, {"arm": (3, None)})
    assert board.total()["arm"] == (8, None)


def test_all_shards_are_run_and_shown_as_one() -> None:
    crew = ScriptedCrew(
        {
            FIRST: [[Began(FIRST, "a"), Progressed(FIRST, {"arm": (3, 3)}), Finished(FIRST, 3, 0)]],
            SECOND: [[Began(SECOND, "b"), Progressed(SECOND, {"arm": (2, 2)}), Finished(SECOND, 2, 7)]],
        }
    )
    told = Told(crew)
    finished = told.supervisor.run()
    assert {shard: (one.ran, one.repaired_bytes) for shard, one in finished.items()} == {FIRST: (3, 0), SECOND: (2, 7)}
    assert told.lines == ["shard 1/2 runs on a", "shard 2/2 runs on b"]
    assert told.shown == [("arm", 5, 5)]
    assert crew.stops == 1


def test_a_dead_shard_starts_again_after_a_pause() -> None:
    crew = ScriptedCrew(
        {
            FIRST: [[Began(FIRST, "a"), Died(FIRST, "the node is gone")], [Began(FIRST, "b"), Finished(FIRST, 1, 0)]],
            SECOND: [[Began(SECOND, "b"), Finished(SECOND, 2, 0)]],
        }
    )
    told = Told(crew)
    assert set(told.supervisor.run()) == {FIRST, SECOND}
    assert crew.started == [(0.0, FIRST), (0.0, SECOND), (3.0, FIRST)]
    assert told.lines[1] == "shard 1/2 died (the node is gone); it goes on in 2 s, restart 1 of 3"


def test_a_shard_that_dies_again_and_again_is_given_up_and_the_others_end() -> None:
    crew = ScriptedCrew(
        {
            FIRST: [[Began(FIRST, "a"), Died(FIRST, "killed for memory")] for _ in range(3)],
            SECOND: [[Began(SECOND, "b"), Finished(SECOND, 2, 0)]],
        }
    )
    told = Told(crew, restarts=Restarts(2))
    with pytest.raises(UserFault) as caught:
        told.supervisor.run()
    assert "1 of 2 shards are not finished:\n  1/2: died 3 times, at last: killed for memory" in caught.value.what
    assert len(crew.started) == 4
    assert crew.stops == 1


def test_what_a_user_must_mend_is_told_once_for_all_shards_and_not_tried_again() -> None:
    fault = UserFault("no checkpoint", where="policy", fix="train one")
    crew = ScriptedCrew({shard: [[Began(shard, "a"), Refused(shard, fault)]] for shard in (FIRST, SECOND)})
    with pytest.raises(UserFault) as caught:
        Told(crew).supervisor.run()
    assert caught.value.what.splitlines()[:2] == ["2 of 2 shards are not finished:", "  1/2, 2/2: no checkpoint"]
    assert len(crew.started) == 2


@pytest.mark.parametrize("interrupt_at", [1.0, 3.0])
def test_an_interrupt_leaves_no_worker(interrupt_at: float) -> None:
    crew = ScriptedCrew({FIRST: [[Began(FIRST, "a")]], SECOND: [[Began(SECOND, "a")]]}, interrupt_at=interrupt_at)
    with pytest.raises(KeyboardInterrupt):
        Told(crew).supervisor.run()
    assert crew.stops == 1


def test_a_cluster_that_takes_no_shard_is_not_waited_for_without_end() -> None:
    crew = ScriptedCrew({FIRST: [[]], SECOND: [[]]})
    with pytest.raises(UserFault, match="no node has taken a shard for 60 s"):
        Told(crew, patience_s=60.0).supervisor.run()
    assert crew.now == pytest.approx(61.0)
    assert crew.stops == 1


def test_shards_may_wait_for_a_cpu_as_long_as_another_runs() -> None:
    class OneAtATime(ScriptedCrew):
        def poll(self, seconds: float) -> list[Event]:
            events = super().poll(seconds)
            if self.now > 500:
                events += [Finished(FIRST, 1, 0), Began(SECOND, "a"), Finished(SECOND, 1, 0)]
            return events

    crew = OneAtATime({FIRST: [[Began(FIRST, "a")]], SECOND: [[]]})
    assert set(Told(crew, patience_s=60.0).supervisor.run()) == {FIRST, SECOND}


@pytest.mark.parametrize(
    ("engine", "shard", "shards", "address", "says"),
    [
        (Engine.RAY, "1/2", None, None, "--engine ray runs all shards"),
        (Engine.HERE, None, 2, None, "--shards needs an engine"),
        (Engine.HERE, None, None, "auto", "--ray-address needs an engine"),
    ],
)
def test_options_that_do_not_go_together_are_refused(
    engine: Engine, shard: str | None, shards: int | None, address: str | None, says: str
) -> None:
    with pytest.raises(UserFault, match=says):
        check_engine(engine, shard, shards, address)


def test_a_run_made_without_an_engine_is_not_written_over(tmp_path: Path) -> None:
    (tmp_path / "journal.jsonl").write_text("")
    with pytest.raises(UserFault, match=r"was not merged from shards.*\n.*\n.*go on there without --engine"):
        check_target(tmp_path, anew=True)
    (tmp_path / "journal.jsonl").unlink()
    check_target(tmp_path, anew=True)


def test_what_several_shards_warn_of_is_told_once() -> None:
    old = "this run was begun with other versions (then -> now): numpy 1 -> 2"
    other = "this run was begun with other versions (then -> now): ray 1 -> 2"
    first = [Began(FIRST, "a"), Progressed(FIRST, {}, [old]), Progressed(FIRST, {}, [old]), Finished(FIRST, 1, 0)]
    second = [Began(SECOND, "b"), Progressed(SECOND, {}, [old, other]), Finished(SECOND, 1, 0)]
    told = Told(ScriptedCrew({FIRST: [first], SECOND: [second]}))
    told.supervisor.run()
    assert told.warnings == [old, other]
    assert told.lines == ["shard 1/2 runs on a", "shard 2/2 runs on b"]
