"""Asks the judge again about answers that it left ungraded.

The one idea: the answer is in the journal, so nothing but the verdict is missing; no episode runs again.
"""

from __future__ import annotations

import asyncio
from dataclasses import asdict

from eval.facts import UNGRADED, Key
from eval.journal import Journal
from eval.judge import Judge
from eval.phases import StartPhase
from eval.saved import task_of_record
from registry.errors import UserFault


async def judge_again(journal: Journal, judge: Judge, *, concurrency: int, start_phase: StartPhase) -> int:
    """Returns how many got their verdict; each is written the moment it is there. What is still ungraded stays as it
    is. Raises UserFault where the journal cannot be written."""
    waiting = [key for key, fact in sorted(journal.facts.items()) if fact.judged == UNGRADED]
    if not waiting or not judge.asks_a_model:
        return 0
    advance = start_phase("judge", len(waiting))
    keys = iter(waiting)
    graded = 0

    async def worker() -> None:
        nonlocal graded
        for key in keys:
            graded += await _one(journal, judge, key)
            advance()

    workers = [asyncio.create_task(worker()) for _ in range(min(concurrency, len(waiting)))]
    try:
        await asyncio.gather(*workers)
    finally:
        for one in workers:
            one.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
    return graded


async def _one(journal: Journal, judge: Judge, key: Key) -> bool:
    record = await asyncio.to_thread(journal.read, key)
    trajectory = record["trajectory"]
    try:
        found = await judge.grade(task_of_record(trajectory), trajectory.get("answer"))
    except UserFault:  # its right answer no longer fits the rule: the run that scored it knew another one
        return False
    if found.verdict is None:
        return False
    journal.append(
        arm=record["arm"],
        split=record["split"],
        score=asdict(found.verdict.official),
        lenient=asdict(found.verdict.lenient) if found.verdict.differ else None,
        groups=record.get("groups"),
        cluster=record.get("cluster"),
        judge=found.note,
        row_digest=record.get("row_digest"),
        trajectory=trajectory,
    )
    return True
