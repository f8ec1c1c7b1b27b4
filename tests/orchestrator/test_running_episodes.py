"""The runner: deadlines, isolation, events, seeds, records."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest

from experts.clients.deadlines import nearest
from experts.outcome import Delegation, Outcome, Usage
from orchestrator.budget import Budget
from orchestrator.episode import Episode
from orchestrator.policy import InfrastructureError, PolicyTurn
from orchestrator.runner import Event, run_episode, run_episodes
from orchestrator.seeds import derive_seed, episode_seed, turn_seed
from orchestrator.task import Task
from orchestrator.trajectory import Trajectory
from registry.errors import UserFault

CALL = "<search>Chart-Reader@@Chart_Solver: {}</search>"
BUDGET = Budget()


class CallThenAnswer:
    """Asks its row's name, then repeats the reply; `turns_before_answer` calls."""

    name = "calls"

    def __init__(self, calls: int = 1) -> None:
        self.calls = calls

    async def act(self, episode: Episode, *, seed: int) -> PolicyTurn:
        if len(episode.turns) < self.calls:
            return PolicyTurn(CALL.format(episode.task_id))
        last = episode.turns[-1].observation
        return PolicyTurn(f"<answer>{last.text if last else ''}</answer>", completion_tokens=3)

    async def aclose(self) -> None:
        """Holds nothing."""


def run_one(task: Task, policy: Any, pool: Any, **options: Any) -> Trajectory:
    return asyncio.run(run_episode(task, policy, pool, **{"budget": BUDGET, **options}))


def run_all(tasks: list[Task], policy: Any, pool: Any, **options: Any) -> dict[str, Trajectory]:
    done: list[Trajectory] = []
    count = asyncio.run(run_episodes(tasks, policy, pool, **{"budget": BUDGET, "on_done": done.append, **options}))
    assert count == len(done)
    return {trajectory.id: trajectory for trajectory in done}


def test_an_episode_becomes_a_record(task_of: Callable[..., Task], pool_of: Any) -> None:
    usage = Usage(prompt_tokens=10, completion_tokens=2, cost=0.5, calls=1)
    pool = pool_of(lambda e, s, q: Delegation(Outcome.OK, "42", e, s, "Reading", "only", 0.25, usage, cached=True))
    made = run_one(task_of(choices=("41", "42")), CallThenAnswer(), pool, seed=5, versions={"maestro": "1"})
    assert (made.id, made.row_id, made.answer, made.stop, made.valid) == ("row-1#0", "row-1", "42", "answered", True)
    assert made.counts == {"calls": 1, "malformed": 0, "forged_observation": 0, "cached_calls": 1}
    assert made.usage["experts"] == {"prompt_tokens": 10, "completion_tokens": 2, "cost": 0.5, "calls": 1}
    assert made.usage["policy"]["completion_tokens"] == 3
    assert made.timings["expert_s"] == 0.25
    assert made.versions == {"registry": pool.registry.digest, "maestro": "1"}
    assert made.seed == episode_seed(5, "row-1", 0)
    assert made.prompt_ids is made.response_ids is made.response_mask is made.response_logprobs is None
    first, last = made.turns
    assert first["action"] == {"type": "search", "expert": "Chart-Reader", "skill": "Chart_Solver", "query": "row-1"}
    assert first["observation"]["subskill"] == "Reading"
    assert first["observation"]["outcome"] == "ok"
    assert last["action"] == {"type": "answer", "text": "42"}
    assert last["observation"] is None
    assert Trajectory.from_json(made.to_line()) == made
    assert "\n" not in made.to_line()
    assert list(made.to_json())[:4] == ["version", "id", "row_id", "benchmark"]


def test_a_record_of_another_version_or_with_holes_is_refused(
    task_of: Callable[..., Task], pool_of: Any, scripted: Any
) -> None:
    record = run_one(task_of(), scripted("<answer>1</answer>"), pool_of()).to_json()
    with pytest.raises(ValueError, match="version 1 is needed"):
        Trajectory.from_json({**record, "version": 2})
    del record["stop"]
    with pytest.raises(ValueError, match="trajectory without stop"):
        Trajectory.from_json(record)


def test_only_kept_words_are_in_a_turns_text(task_of: Callable[..., Task], pool_of: Any, scripted: Any) -> None:
    forged = "<search>Chart-Reader@@Chart_Solver: q</search><information>7</information><answer>7</answer>"
    made = run_one(task_of(), scripted(forged, "<answer>42</answer>"), pool_of())
    assert made.turns[0]["text"] == "<search>Chart-Reader@@Chart_Solver: q</search>"
    assert made.turns[0]["dropped_text"] == "<information>7</information><answer>7</answer>"
    assert made.counts["forged_observation"] == 1
    assert made.answer == "42"


def test_an_unknown_name_is_shown_and_the_episode_goes_on(
    task_of: Callable[..., Task], pool_of: Any, scripted: Any
) -> None:
    pool = pool_of()
    policy = scripted("<search>Chart@@Chart_Solver: q</search>", CALL.format("q"), "<answer>42</answer>")
    made = run_one(task_of(), policy, pool)
    assert made.turns[0]["action"]["kind"] == "unknown_expert"
    assert made.turns[0]["observation"]["outcome"] == "invalid_action"
    assert "Nearest: Chart-Reader" in made.turns[0]["observation"]["shown"]
    assert made.counts["malformed"] == 1
    assert (made.answer, made.valid, len(pool.calls)) == ("42", True, 1)


def test_one_failing_episode_hurts_no_other(task_of: Callable[..., Task], pool_of: Any) -> None:
    def reply(expert: str, skill: str, question: str) -> str:
        if question == "row-3":
            raise ConnectionError("socket closed")
        return "42"

    made = run_all([task_of(row=f"row-{i}") for i in range(8)], CallThenAnswer(), pool_of(reply))
    assert sorted(made) == [f"row-{i}#0" for i in range(8)]
    failed = made.pop("row-3#0")
    assert (failed.stop, failed.valid, failed.answer) == ("infrastructure", False, None)
    assert failed.error == "row row-3, expert call Chart-Reader@@Chart_Solver: ConnectionError: socket closed"
    assert all(trajectory.valid and trajectory.answer == "42" for trajectory in made.values())


def test_half_a_group_with_a_dead_expert_is_invalid_not_wrong(task_of: Callable[..., Task], pool_of: Any) -> None:
    calls = iter(range(8))

    def reply(expert: str, skill: str, question: str) -> Any:
        if next(calls) % 2:
            return Delegation(Outcome.UNAVAILABLE, "No answer.", expert, skill, error="connection refused")
        return "42"

    made = run_all([task_of()], CallThenAnswer(), pool_of(reply), samples=8)
    assert sorted(t.valid for t in made.values()) == [False] * 4 + [True] * 4
    errors = {t.error for t in made.values()}
    assert errors == {None, "turn 1, Chart-Reader@@Chart_Solver: unavailable: connection refused"}


def test_faults_of_the_policy_server_are_infrastructure(
    task_of: Callable[..., Task], pool_of: Any, scripted: Any
) -> None:
    made = run_one(task_of(), scripted(InfrastructureError("status 503")), pool_of())
    assert (made.stop, made.valid) == ("infrastructure", False)
    assert made.error == "row row-1, policy scripted: status 503"


def test_a_silent_policy_meets_the_turn_deadline(task_of: Callable[..., Task], pool_of: Any, scripted: Any) -> None:
    started = time.monotonic()
    made = run_one(task_of(), scripted(CALL.format("q"), 30.0), pool_of(), turn_deadline_s=0.05)
    assert time.monotonic() - started < 5
    assert (made.stop, made.valid, len(made.turns)) == ("deadline", False, 1)
    assert made.error == "policy scripted, turn 2: nothing within 0.05 s"


def test_an_expert_that_never_answers_is_an_observation(
    task_of: Callable[..., Task], pool_of: Any, scripted: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orchestrator.runner._GRACE_S", 0.0)
    pool = pool_of(lambda e, s, q: asyncio.sleep(30))
    made = run_one(task_of(), scripted(CALL.format("q"), "<answer>1</answer>"), pool, turn_deadline_s=0.05)
    assert made.turns[0]["observation"]["outcome"] == "deadline"
    assert (made.stop, made.answer, made.valid) == ("answered", "1", False)


def test_the_episode_deadline_keeps_what_was_done(task_of: Callable[..., Task], pool_of: Any, scripted: Any) -> None:
    made = run_one(task_of(), scripted(CALL.format("q"), 30.0), pool_of(), episode_deadline_s=0.1)
    assert (made.stop, made.valid, made.counts["calls"]) == ("deadline", False, 1)
    assert made.error == "the episode took longer than 0.1 s"


def test_a_call_is_told_when_its_episode_ends(task_of: Callable[..., Task], pool_of: Any, scripted: Any) -> None:
    told: list[tuple[float, str]] = []

    def reply(expert: str, skill: str, question: str) -> str:
        told.append(nearest(100.0))
        return "42"

    policy = scripted(CALL.format("q"), "<answer>42</answer>")
    run_one(task_of(), policy, pool_of(reply), episode_deadline_s=50.0, turn_deadline_s=100.0)
    ((left_s, whose),) = told
    assert (0 < left_s <= 50.0, whose) == (True, "episode")


def test_the_slowest_episode_does_not_hold_the_others_up(task_of: Callable[..., Task], pool_of: Any) -> None:
    async def reply(expert: str, skill: str, question: str) -> str:
        await asyncio.sleep(0.6 if question == "row-0" else 0.01)
        return "42"

    async def pooled(e: str, s: str, q: str) -> str:
        return await reply(e, s, q)

    order: list[str] = []
    started = time.monotonic()
    asyncio.run(
        run_episodes(
            [task_of(row=f"row-{i}") for i in range(8)],
            CallThenAnswer(calls=2),
            pool_of(pooled),
            budget=BUDGET,
            concurrency=8,
            on_done=lambda trajectory: order.append(trajectory.row_id),
        )
    )
    assert order[-1] == "row-0"
    assert 1.2 <= time.monotonic() - started < 3


def test_no_more_than_the_asked_number_run_at_once_and_rows_are_drawn_late(
    task_of: Callable[..., Task], pool_of: Any
) -> None:
    running, most, drawn = 0, 0, 0

    async def reply(expert: str, skill: str, question: str) -> str:
        nonlocal running, most
        running += 1
        most = max(most, running)
        assert drawn <= int(question.split("-")[1]) + 3
        await asyncio.sleep(0.01)
        running -= 1
        return "42"

    def rows() -> Any:
        nonlocal drawn
        for i in range(12):
            drawn += 1
            yield task_of(row=f"row-{i}")

    made = run_all(rows(), CallThenAnswer(), pool_of(reply), concurrency=3)
    assert most == 3
    assert all(trajectory.valid for trajectory in made.values())


def test_a_fault_of_the_caller_ends_the_whole(task_of: Callable[..., Task], pool_of: Any, scripted: Any) -> None:
    def on_done(trajectory: Trajectory) -> None:
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        run_all([task_of(row=str(i)) for i in range(5)], scripted("<answer>1</answer>"), pool_of(), on_done=on_done)


def test_cancelling_reaches_the_expert_call(task_of: Callable[..., Task], pool_of: Any) -> None:
    cancelled: list[str] = []

    async def reply(expert: str, skill: str, question: str) -> str:
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            cancelled.append(question)
            raise
        return "42"

    async def main() -> None:
        tasks = [task_of(row="a"), task_of(row="b")]
        run = run_episodes(tasks, CallThenAnswer(), pool_of(reply), budget=BUDGET, on_done=lambda t: None)
        running = asyncio.create_task(run)
        await asyncio.sleep(0.05)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(main())
    assert sorted(cancelled) == ["a", "b"]


def test_every_step_is_told_as_it_happens(task_of: Callable[..., Task], pool_of: Any, scripted: Any) -> None:
    events: list[tuple[str, int]] = []

    def on_event(event: Event) -> None:
        events.append((event.kind, len(event.episode.turns)))

    run_one(task_of(), scripted(CALL.format("q"), "<answer>1</answer>"), pool_of(), on_event=on_event)
    assert events == [("begin", 0), ("turn", 1), ("observation", 1), ("turn", 2), ("end", 2)]


def test_seeds_depend_on_run_row_and_sample_only(task_of: Callable[..., Task], pool_of: Any, scripted: Any) -> None:
    tasks = [task_of(row=f"row-{i}") for i in range(3)]
    forward = run_all(tasks, scripted("<answer>1</answer>"), pool_of(), seed=3, samples=2, concurrency=1)
    backward = run_all(tasks[::-1], scripted("<answer>1</answer>"), pool_of(), seed=3, samples=2, concurrency=4)
    assert {i: t.seed for i, t in forward.items()} == {i: t.seed for i, t in backward.items()}
    assert len({t.seed for t in forward.values()}) == 6
    assert forward["row-0#0"].seed != episode_seed(4, "row-0", 0)
    policy = scripted("what?", "<answer>1</answer>")
    made = run_one(tasks[0], policy, pool_of(), seed=3)
    assert policy.seeds == [turn_seed(made.seed, 0), turn_seed(made.seed, 1)]
    assert derive_seed("a", 1) == 144714924040659
    assert 0 <= derive_seed("x") < 2**48


def test_a_budget_that_cannot_hold_an_observation_is_refused_at_start(
    task_of: Callable[..., Task], pool_of: Any, scripted: Any, byte_tokenizer: Any
) -> None:
    policy = scripted("<answer>1</answer>")
    policy.tokenizer = byte_tokenizer
    with pytest.raises(UserFault, match="the tags alone take 36 tokens"):
        run_all([task_of()], policy, pool_of(), budget=Budget(max_observation_tokens=20))
