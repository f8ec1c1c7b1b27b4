"""Experts that go down while rollouts run: who waits, who is tried, what is played again."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

from orchestrator.trajectory import Trajectory
from train.outage import MOST_REPLAYS, OutageGate, forget_pauses, lost_to_experts, pause_of


def played(outcome: str, *, expert: str = "A", cached: bool = False, valid: bool | None = None) -> Trajectory:
    """A rollout of one call that ended with `outcome`; "" is an answer without any call."""
    seen = {"outcome": outcome, "expert": expert, "cached": cached, "latency_s": 0.1}
    turns: list[dict[str, Any]] = [{"action": {"type": "answer", "text": "4"}, "observation": None}]
    if outcome:
        turns.insert(
            0, {"action": {"type": "search", "expert": expert, "skill": "S", "query": "q"}, "observation": seen}
        )
    ok = outcome in ("", "ok") if valid is None else valid
    return Trajectory(
        id="r#0", row_id="r", benchmark="b", group="g", question="q", answer="4" if ok else None, choices=None,
        ground_truth="4", pictures=[], policy="p", seed=1, sample=0, prompt_ids=None, response_ids=None,
        response_mask=None, response_logprobs=None, turns=turns, stop="answered" if ok else "infrastructure", valid=ok,
        error=None if ok else "A failed", counts={"calls": int(bool(outcome)), "malformed": 0}, usage={},
        timings={"total_s": 0.1, "policy_s": 0.05, "expert_s": 0.05},
    )  # fmt: skip


class World:
    """Experts that are up or down; counts how often a rollout was played."""

    def __init__(self, up: bool = True) -> None:
        self.up = up
        self.plays = 0

    async def once(self) -> Trajectory:
        self.plays += 1
        await asyncio.sleep(0)
        return played("ok" if self.up else "unavailable")


def gate_in(folder: Path, **settings: Any) -> OutageGate:
    return OutageGate(folder, **{"above": 0.5, "patience_s": 5.0, "probe_s": 0.01, **settings})


async def play_all(gate: OutageGate, world: World, count: int) -> list[Trajectory]:
    return list(await asyncio.gather(*(gate.play(world.once) for _ in range(count))))


def test_the_expert_that_failed_is_named_and_other_losses_are_not_its() -> None:
    assert lost_to_experts(played("timeout")) == "A: timeout"
    assert lost_to_experts(played("ok")) is None
    assert lost_to_experts(played("", valid=False)) is None  # the engine broke, no expert did


def test_a_few_lost_rollouts_come_back_lost_and_nobody_waits(tmp_path: Path) -> None:
    async def run() -> None:
        gate, world = gate_in(tmp_path), World()
        await play_all(gate, world, 10)
        world.up = False
        assert [t.valid for t in await play_all(gate, world, 3)] == [False] * 3
        assert (gate.paused, world.plays, pause_of(tmp_path)) == (False, 13, None)

    asyncio.run(run())


def test_while_experts_are_down_one_rollout_is_tried_and_all_come_through_afterwards(tmp_path: Path) -> None:
    async def run() -> None:
        gate, world = gate_in(tmp_path), World(up=False)
        batch = asyncio.create_task(play_all(gate, world, 32))
        await asyncio.sleep(0.3)
        pause = pause_of(tmp_path)
        assert gate.paused and pause is not None
        assert (pause.why, pause.given_up) == ("A: unavailable", False)
        assert pause.waiting >= 28
        tried = world.plays - 32
        assert 2 <= tried <= 32  # one every probe_s, not 28 at once
        world.up = True
        trajectories = await asyncio.wait_for(batch, 5)
        assert [t.valid for t in trajectories] == [True] * 32  # also those that were lost before the verdict
        assert (gate.paused, pause_of(tmp_path)) == (False, None)
        assert 0.3 <= gate.paused_s < 5

    asyncio.run(run())


def test_what_is_lost_before_the_outage_shows_waits_for_the_others_and_is_played_again(tmp_path: Path) -> None:
    async def run() -> None:
        gate, world = gate_in(tmp_path), World()
        await play_all(gate, world, 12)  # with these in the window it takes nine lost ones to tell an outage
        world.up = False
        gone = asyncio.Event()

        async def slow() -> Trajectory:  # on its way while the others fail
            await gone.wait()
            return await world.once()

        first = [asyncio.create_task(gate.play(world.once)) for _ in range(6)]
        late = [asyncio.create_task(gate.play(slow)) for _ in range(6)]
        await asyncio.sleep(0.05)
        assert not any(task.done() for task in first) and not gate.paused
        gone.set()
        await asyncio.sleep(0.05)
        assert gate.paused
        world.up = True
        assert [t.valid for t in await asyncio.wait_for(asyncio.gather(*first, *late), 5)] == [True] * 12

    asyncio.run(run())


def test_a_pause_does_not_end_because_another_expert_answers(tmp_path: Path) -> None:
    async def run() -> None:
        gate, down = gate_in(tmp_path), True

        async def of_a() -> Trajectory:
            await asyncio.sleep(0)
            return played("unavailable" if down else "ok", expert="A")

        async def of_b() -> Trajectory:
            await asyncio.sleep(0)
            return played("ok", expert="B")

        lost = [asyncio.create_task(gate.play(of_a)) for _ in range(6)]
        await asyncio.sleep(0.05)
        assert gate.paused
        assert (await asyncio.wait_for(gate.play(of_b), 5)).valid  # tried like all others, and through
        assert gate.paused and not any(task.done() for task in lost)
        down = False
        assert [t.valid for t in await asyncio.wait_for(asyncio.gather(*lost), 5)] == [True] * 6
        assert not gate.paused

    asyncio.run(run())


def test_a_pause_ends_when_nobody_asks_for_the_lost_expert_any_more(tmp_path: Path) -> None:
    async def run() -> None:
        gate = gate_in(tmp_path)
        asked = 0

        async def elsewhere_later() -> Trajectory:  # played again, the policy asks another expert
            nonlocal asked
            asked += 1
            await asyncio.sleep(0)
            return played("unavailable", expert="A") if asked <= 20 else played("ok", expert="B")

        batch = asyncio.gather(*(gate.play(elsewhere_later) for _ in range(20)))
        assert [t.valid for t in await asyncio.wait_for(batch, 5)] == [True] * 20
        assert not gate.paused

    asyncio.run(run())


def test_a_rollout_that_is_cancelled_holds_no_other_back(tmp_path: Path) -> None:
    async def run() -> None:
        gate, world = gate_in(tmp_path), World(up=False)

        async def stuck() -> Trajectory:
            await asyncio.sleep(60)
            return played("ok")

        hanging = asyncio.create_task(gate.play(stuck))
        lost = asyncio.create_task(gate.play(world.once))
        await asyncio.sleep(0.02)
        assert not lost.done()
        hanging.cancel()
        assert (await asyncio.wait_for(lost, 5)).valid is False

    asyncio.run(run())


def test_an_answer_from_the_cache_or_without_a_call_does_not_end_the_pause(tmp_path: Path) -> None:
    async def run() -> None:
        gate, world = gate_in(tmp_path), World(up=False)
        batch = asyncio.create_task(play_all(gate, world, 8))
        await asyncio.sleep(0.1)

        async def cached() -> Trajectory:
            return played("ok", cached=True)

        async def silent() -> Trajectory:
            return played("")

        assert (await gate.play(cached)).valid and (await gate.play(silent)).valid
        assert gate.paused
        world.up = True
        await asyncio.wait_for(batch, 5)

    asyncio.run(run())


def test_after_the_longest_wait_all_come_back_lost_and_the_file_says_so(tmp_path: Path) -> None:
    async def run() -> None:
        gate, world = gate_in(tmp_path, patience_s=0.1), World(up=False)
        trajectories = await asyncio.wait_for(play_all(gate, world, 12), 5)
        assert not any(t.valid for t in trajectories)
        pause = pause_of(tmp_path)
        assert pause is not None and pause.given_up

    asyncio.run(run())


def test_experts_that_come_and_go_do_not_hold_a_rollout_for_ever(tmp_path: Path) -> None:
    async def run() -> None:
        gate = gate_in(tmp_path)
        plays = 0

        async def flapping() -> Trajectory:  # up for whoever is on trial, down for the others
            nonlocal plays
            plays += 1
            return played("ok" if gate.paused and plays % 2 else "unavailable")

        await asyncio.wait_for(asyncio.gather(*(gate.play(flapping) for _ in range(8))), 5)
        assert plays < 8 * 2 * MOST_REPLAYS * 4

    asyncio.run(run())


def test_several_processes_are_one_pause_and_files_of_dead_ones_do_not_count(tmp_path: Path) -> None:
    for name, seconds, waiting in (("a", 5.0, 3), ("b", 9.0, 4), ("dead", 99.0, 50)):
        record = {"seconds": seconds, "why": f"{name}: timeout", "waiting": waiting, "given_up": False}
        (tmp_path / f"{name}.json").write_text(json.dumps(record))
    (tmp_path / "half.json").write_text('{"seconds": 1')
    os.utime(tmp_path / "dead.json", (1, 1))
    pause = pause_of(tmp_path)
    assert pause is not None
    assert (pause.seconds, pause.why, pause.waiting) == (9.0, "b: timeout", 7)
    forget_pauses(tmp_path)
    assert pause_of(tmp_path) is None
    assert pause_of(tmp_path / "none") is None


@pytest.mark.parametrize("outcome", ["refused", "empty_reply", "invalid_action"])
def test_what_is_no_fault_of_the_machinery_never_pauses(tmp_path: Path, outcome: str) -> None:
    async def run() -> None:
        gate = gate_in(tmp_path)

        async def once() -> Trajectory:
            return played(outcome, valid=True)

        await asyncio.gather(*(gate.play(once) for _ in range(16)))
        assert not gate.paused

    asyncio.run(run())
