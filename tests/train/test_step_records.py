"""From rollout lines and verl's log to step records: reading, counting, following, drawing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure
from PIL import Image

from train.curves import draw_curves, read_metrics
from train.paths import RunPaths
from train.rollout_log import latest, read_records
from train.step_metrics import group_statistics, rollout_metrics, step_metrics
from train.watch import ExpertsDown, Follower, PauseWatch, last_lines


def test_a_record_survives_its_line(record_of, tmp_path: Path) -> None:
    record = record_of(pairs=("A@@S", "B@@T"), group="Фигуры", trajectory={"id": "r1#0", "text": "左肺\n"})
    (tmp_path / "rollouts").write_text(record.line(), encoding="utf-8")
    assert read_records(tmp_path / "rollouts")[0] == [record]
    assert record.line().count("\n") == 1


def test_a_half_written_last_line_is_left_for_later(record_of, tmp_path: Path) -> None:
    path = tmp_path / "rollouts"
    first, second = record_of(sample=0).line(), record_of(sample=1, group="左肺").line().encode()
    path.write_bytes(first.encode() + second[:-20])
    records, offset = read_records(path)
    assert ([r.sample for r in records], offset) == ([0], len(first))
    path.write_bytes(first.encode() + second)
    records, offset = read_records(path, offset)
    assert ([r.sample for r in records], offset) == ([1], len(first) + len(second))
    assert read_records(path, offset) == ([], offset)


def test_a_line_that_a_killed_writer_left_is_passed_over(record_of, tmp_path: Path) -> None:
    path = tmp_path / "rollouts"
    path.write_text(record_of().line()[:40] + "\n" + record_of(sample=3).line())
    assert [r.sample for r in read_records(path)[0]] == [3]


def test_no_file_is_no_record(tmp_path: Path) -> None:
    assert read_records(tmp_path / "none", 5) == ([], 5)


def test_of_a_repeated_step_the_highest_attempt_counts(record_of) -> None:
    records = [
        record_of(step=2, attempt=1), record_of(step=1, attempt=1), record_of(step=2, attempt=2, sample=5),
        record_of(step=3, attempt=2), record_of(step=2, attempt=3, split="validation"),
    ]  # fmt: skip
    assert [(step, [(r.attempt, r.sample) for r in group]) for step, group in latest(records)] == [
        (1, [(1, 0)]), (2, [(2, 5)]), (3, [(2, 0)]),
    ]  # fmt: skip
    assert [step for step, _ in latest(records, "validation")] == [2]


def test_failed_rollouts_stay_out_of_reward_and_accuracy(record_of) -> None:
    lost = {"valid": False, "reward": None, "answer": None, "format": None}
    records = [
        record_of(), record_of(reward=-1.0, answer=0.0, format=-1.0, malformed=1, calls=0, copied=0, pairs=()),
        record_of(**lost), record_of(**lost),
    ]  # fmt: skip
    got = rollout_metrics(records)
    assert {k: got[k] for k in ("rollouts", "invalid", "reward", "accuracy", "format")} == {
        "rollouts": 4, "invalid": 2, "reward": 0.0, "accuracy": 0.5, "format": -0.5,
    }  # fmt: skip
    assert (got["malformed"], got["copied"], got["calls"], got["pairs"]) == (0.25, 1.0, 0.75, {"A@@S": 3})
    assert got["accuracy_by_group"] == {"bars": 0.5}


def test_without_a_valid_rollout_means_are_unknown_not_zero(record_of) -> None:
    got = rollout_metrics([record_of(valid=False, reward=None, answer=None, format=None, calls=0, copied=0)])
    assert (got["reward"], got["accuracy"], got["copied"]) == (None, None, None)
    assert (got["groups"], got["groups_excluded"], got["groups_flat"]) == (1, 1, 0)
    assert rollout_metrics([])["reward"] is None


def test_flat_groups_are_counted_and_why(record_of) -> None:
    def group(row: str, *rewards_and_answers: tuple[float, float]) -> list[Any]:
        return [record_of(row=row, reward=r, answer=a) for r, a in rewards_and_answers]

    records = [
        *group("right", (1.0, 1.0), (1.0, 1.0)),
        *group("wrong", (-1.0, 0.0), (-1.0, 0.0)),
        *group("flat", (0.0, 1.0), (0.0, 0.0)),
        *group("teaches", (1.0, 1.0), (0.0, 0.0)),
    ]
    assert group_statistics(records) == {
        "groups": 4, "groups_all_right": 1, "groups_all_wrong": 1, "groups_flat": 3, "groups_excluded": 0,
    }  # fmt: skip


def test_a_group_with_one_valid_rollout_is_excluded_and_not_flat(record_of) -> None:
    lost = {"valid": False, "reward": None, "answer": None, "format": None}
    counts = group_statistics([record_of(), record_of(**lost), record_of(row="r2"), record_of(row="r2", **lost)])
    assert (counts["groups"], counts["groups_excluded"], counts["groups_flat"]) == (2, 2, 0)


def test_experts_are_counted_by_name_and_the_cache_has_no_latency(record_of) -> None:
    records = [
        record_of(experts=(("A", "ok", 0.2, False), ("B", "timeout", 30.0, False)), source="slake", turns=3),
        record_of(experts=(("A", "ok", 0.0, True), ("A", "ok", 0.4, False)), source="chartqa", turns=3, answer=0.0),
        record_of(experts=(("C", "invalid_action", 0.0, False),), source="chartqa", turns=2, waited_s=7.5),
    ]
    got = rollout_metrics(records)
    assert got["expert_failures"] == 0.2
    assert got["experts"]["A"] == {"calls": 3, "failed": 0, "cached": 1, "seconds_p50": 0.2, "seconds_p95": 0.4}
    assert (got["experts"]["B"]["failed"], got["experts"]["C"]["failed"]) == (1, 0)
    assert got["outcomes"] == {"ok": 3, "timeout": 1, "invalid_action": 1}
    assert got["accuracy_by_source"] == {"chartqa": 0.5, "slake": 1.0}
    assert (got["turns"], got["seconds_paused"]) == (8 / 3, 7.5)


def test_truncations_and_several_calls_are_shares(record_of) -> None:
    call = ("A", "ok", 0.1, False)
    records = [
        record_of(calls=2, cut_turns=0, cut_observations=1, experts=(call, call), stop="answered"),
        record_of(calls=1, cut_turns=2, cut_observations=0, experts=(call, call), stop="budget_exhausted"),
    ]
    got = rollout_metrics(records)
    assert (got["several_calls"], got["cut_turns"], got["cut_observations"]) == (0.5, 0.5, 0.25)
    assert got["stops"] == {"answered": 1, "budget_exhausted": 1}


def test_records_of_an_older_run_are_read_and_leave_new_numbers_unknown(record_of, tmp_path: Path) -> None:
    old = json.loads(record_of().line())
    for name in ("source", "turns", "prompt_tokens", "response_tokens", "cut_turns", "cut_observations", "experts",
                 "policy_s", "expert_s", "waited_s", "error"):  # fmt: skip
        del old[name]
    (tmp_path / "rollouts").write_text(json.dumps(old) + "\n" + json.dumps({**old, "of_tomorrow": 1}) + "\n")
    records, _ = read_records(tmp_path / "rollouts")
    assert [r.source for r in records] == [None, None]
    got = rollout_metrics(records)
    assert (got["turns"], got["cut_turns"], got["cut_observations"], got["seconds_paused"]) == (None,) * 4
    assert "experts" not in got


def test_rows_of_two_files_with_one_id_are_two_groups(record_of) -> None:
    assert group_statistics([record_of(index=0, reward=0.0), record_of(index=1)])["groups"] == 2


def test_verls_numbers_come_under_our_names_and_its_nulls_as_unknown(record_of) -> None:
    verl = {"actor/entropy_loss": 0.5, "timing_s/step": 6, "actor/grad_norm": None, "actor/other": 1.0}
    got = step_metrics(4, [record_of()], verl)
    assert (got["step"], got["entropy"], got["seconds"], got["grad_norm"]) == (4, 0.5, 6.0, None)
    assert "prob_gap" not in got


@pytest.fixture
def paths(tmp_path: Path) -> RunPaths:
    (tmp_path / "logs").mkdir()
    return RunPaths.at(tmp_path)


def verl_line(step: int, **data: Any) -> str:
    return json.dumps({"step": step, "data": {"training/global_step": step, "actor/entropy_loss": 0.5, **data}}) + "\n"


def add(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


def test_a_step_is_told_once_when_its_line_is_whole(paths: RunPaths, record_of) -> None:
    follower, log = Follower(paths, 1, 1), paths.verl_metrics(1)
    assert follower.poll() == []
    add(paths.rollouts, record_of().line())
    line = verl_line(1)
    add(log, line[:25])
    assert follower.poll() == []
    add(log, line[25:])
    [record] = follower.poll()
    assert (record["step"], record["rollouts"], record["reward"], record["entropy"]) == (1, 1, 1.0, 0.5)
    assert follower.poll() == []
    assert read_metrics(paths.metrics) == [record]


def test_rollouts_that_come_in_pieces_are_all_counted(paths: RunPaths, record_of) -> None:
    follower = Follower(paths, 1, 1)
    first, second = record_of().line(), record_of(sample=1, reward=0.0, answer=0.0).line()
    add(paths.rollouts, first + second[:30])
    assert follower.poll() == []
    add(paths.rollouts, second[30:] + record_of(step=2).line())
    add(paths.verl_metrics(1), verl_line(1) + verl_line(2))
    assert [(r["step"], r["rollouts"], r["accuracy"]) for r in follower.poll()] == [(1, 2, 0.5), (2, 1, 1.0)]


def test_validation_rollouts_are_told_apart(paths: RunPaths, record_of) -> None:
    follower = Follower(paths, 1, 1)
    add(paths.rollouts, record_of().line() + record_of(split="validation", answer=0.0, reward=0.0).line())
    add(paths.verl_metrics(1), verl_line(1))
    [record] = follower.poll()
    assert record["accuracy"] == 1.0
    assert record["validation"] == {
        "rollouts": 1, "invalid": 0, "accuracy": 0.0, "reward": 0.0, "format": 0.0, "malformed": 0.0, "copied": 1.0,
        "calls": 1.0, "accuracy_by_group": {"bars": 0.0}, "accuracy_by_source": {},
    }  # fmt: skip


def test_a_resumed_run_writes_the_steps_after_its_checkpoint_anew(paths: RunPaths, record_of) -> None:
    first = Follower(paths, 1, 1)
    add(paths.rollouts, "".join(record_of(step=s, reward=0.0).line() for s in (1, 2, 3)) + '{"step":4,"att')
    add(paths.verl_metrics(1), verl_line(1) + verl_line(2) + verl_line(3))
    assert [r["step"] for r in first.poll()] == [1, 2, 3]
    second = Follower(paths, 2, 3)  # the checkpoint was written at step 2
    assert [r["step"] for r in second.history] == [1, 2]
    assert [r["step"] for r in read_metrics(paths.metrics)] == [1, 2]
    add(paths.rollouts, "\n" + record_of(step=3, attempt=2).line())
    add(paths.verl_metrics(2), verl_line(3))
    assert [(r["step"], r["reward"], r["rollouts"]) for r in second.poll()] == [(3, 1.0, 1)]
    assert [(r["step"], r["reward"]) for r in read_metrics(paths.metrics)] == [(1, 0.0), (2, 0.0), (3, 1.0)]


def test_a_step_that_reached_its_checkpoint_but_not_the_log_is_told_from_its_rollouts(
    paths: RunPaths, record_of
) -> None:
    paths.rollouts.parent.mkdir(parents=True, exist_ok=True)
    paths.rollouts.write_text(record_of(step=1, reward=1.0).line() + record_of(step=2, reward=1.0).line())
    follower = Follower(paths, 2, 2)  # killed between the checkpoint of step 1 and its line in the log
    assert [(r["step"], r["rollouts"], r["reward"]) for r in follower.history] == [(1, 1, 1.0)]
    assert [r["step"] for r in read_metrics(paths.metrics)] == [1]


def test_lines_of_verl_that_are_broken_or_no_steps_are_passed_over(paths: RunPaths, record_of) -> None:
    follower = Follower(paths, 1, 1)
    add(paths.verl_metrics(1), '{"step":0,"data":{"val/acc":1}}\n{"step":1,"da\n' + verl_line(2))
    assert [r["step"] for r in follower.poll()] == [2]


def test_the_end_of_a_log(tmp_path: Path) -> None:
    path = tmp_path / "log"
    assert last_lines(path) == "(no log)"
    path.write_bytes(b"".join(b"line %d \xff\n" % i for i in range(5000)))
    assert last_lines(path, 2) == "line 4998 \ufffd\nline 4999 \ufffd"


def test_half_a_metrics_line_is_left_out_and_the_last_of_a_step_counts(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"step": 2, "reward": 1}\n{"step": 1}\n{"step": 2, "reward": 0}\n{"step": 3, "rew')
    assert read_metrics(path) == [{"step": 1}, {"step": 2, "reward": 0}]
    assert read_metrics(tmp_path / "none") == []


def test_curves_are_a_png_also_of_records_with_gaps(tmp_path: Path) -> None:
    records: list[dict[str, Any]] = [
        {"step": i, "reward": None if i == 3 else i / 10, "entropy": float("nan"), "pairs": {"A@@S_x": i}}
        for i in range(1, 12)
    ]
    del records[4]["pairs"]
    out = tmp_path / "new" / "curves.png"
    draw_curves(records, out, "GRPO")
    with Image.open(out) as image:
        assert (image.format, image.size) == ("PNG", (1320, 1034))
    assert [p.name for p in out.parent.iterdir()] == ["curves.png"]


def test_an_axis_of_shares_starts_at_zero_and_the_names_of_pairs_stand_below_the_axes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[Figure] = []

    class Kept(Figure):
        def savefig(self, *args: Any, **kwargs: Any) -> None:
            drawn.append(self)
            super().savefig(*args, **kwargs)

    monkeypatch.setattr("matplotlib.figure.Figure", Kept)
    records = [
        {"step": s, "rollouts": 128, "invalid": int(s == 2), "pairs": {f"Expert-{i}@@Skill": 9 - i for i in range(8)}}
        for s in range(1, 6)
    ]
    draw_curves(records, tmp_path / "curves.png", "GRPO")
    axes = {axis.get_title(): axis for axis in drawn[0].axes}
    assert axes["without an answer (share)"].get_ylim() == (0.0, 0.05)
    pairs = axes["most used pairs (share of calls)"]
    assert pairs.get_ylim()[0] == 0.0
    legend = pairs.get_legend()
    assert legend is not None and legend.get_window_extent().y1 < pairs.get_window_extent().y0


@pytest.mark.filterwarnings("error")
def test_curves_of_no_step_at_all_are_empty_panels(tmp_path: Path) -> None:
    draw_curves([], tmp_path / "curves.png", "GRPO")
    assert (tmp_path / "curves.png").stat().st_size > 1000


def test_a_pause_is_told_once_and_so_is_its_end(tmp_path: Path) -> None:
    told: list[str] = []
    watch = PauseWatch(tmp_path / "pauses", told.append)
    assert watch.poll() is False
    file = tmp_path / "pauses" / "host-1.json"
    file.parent.mkdir()
    file.write_text('{"seconds": 4.0, "why": "A: unavailable", "waiting": 3, "given_up": false}')
    assert (watch.poll(), watch.poll()) == (True, True)
    file.unlink()
    assert watch.poll() is False
    assert told == [
        "paused: experts are down (A: unavailable); rollouts wait, one at a time is tried",
        "goes on after a pause of 4 s: the experts are back",
    ]


def test_workers_that_gave_up_end_the_job(tmp_path: Path) -> None:
    (tmp_path / "host-1.json").write_text('{"seconds": 61, "why": "A: timeout", "waiting": 0, "given_up": true}')
    with pytest.raises(ExpertsDown, match=r"experts were down for 61 s \(A: timeout\)"):
        PauseWatch(tmp_path, print).poll()
