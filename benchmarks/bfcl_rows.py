"""BFCL's own checker on answers that came through `maestro serve`, on the real rows in ../shared/data, without a model.

    python benchmarks/bfcl_rows.py --harness /path/to/bfcl-venv/bin/python --out /tmp/bfcl

A scripted expert knows the gold calls of each row. Every third single-turn row is spoilt on purpose, so that the
checker has something to refuse. Prints, for each category, what BFCL counted right beside what should be right; exit
code 1 where they differ. See docs/agentic.md for the harness's environment.
"""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

from agentic_server import ROOT, serving, started, write_registry


def main() -> int:
    harness, rows, out = started(__doc__, "bfcl-eval", "bfcl_v4")
    if not rows:
        return 2
    offline = [row for row in rows if row["category"] != "web_search"]
    print(f"{len(offline)} rows; {len(rows) - len(offline)} left out: their tools search the web")
    script, expected, ids = plan(offline, parameters(harness))
    registry = write_registry(out, script)
    (out / "test_case_ids_to_generate.json").write_text(json.dumps(ids))
    with serving(registry, out, "--pair", "Scripted@@Function_Calling", "--concurrency", "8") as url:
        environment = {**os.environ, "MAESTRO_URL": url, "BFCL_PROJECT_ROOT": str(out)}
        adapter = [str(harness), "-m", "eval.agentic.bfcl_adapter"]
        generate = ["generate", "--model", "maestro-FC", "--run-ids", "--num-threads", "8", "-o"]
        subprocess.run([*adapter, *generate], env=environment, cwd=ROOT, check=True, timeout=1800)
    evaluate = ["evaluate", "--model", "maestro-FC", "--partial-eval", "--test-category", ",".join(ids)]
    subprocess.run([*adapter, *evaluate], env=environment, cwd=ROOT, check=True, timeout=1800)
    return report(out, expected)


def parameters(harness: Path) -> dict[str, list[str]]:
    """The parameters of each function of BFCL's multi-turn classes, in order: gold calls give some by position."""
    code = "import bfcl_eval; print(next(iter(bfcl_eval.__path__)))"
    folder = subprocess.run([str(harness), "-c", code], capture_output=True, text=True, check=True, timeout=300)
    docs = sorted((Path(folder.stdout.strip()) / "data" / "multi_turn_func_doc").glob("*.json"))
    known = [json.loads(line) for doc in docs for line in doc.read_text(encoding="utf-8").splitlines() if line.strip()]
    return {one["name"]: list(one["parameters"]["properties"]) for one in known}


def plan(
    rows: list[dict[str, Any]], names: dict[str, list[str]]
) -> tuple[dict[str, Any], dict[str, int], dict[str, list[str]]]:
    """The expert's script, how many rows of each category should be right, and BFCL's ids by category."""
    scenarios, expected, ids = [], defaultdict(int), defaultdict(list)
    spoilable = 0
    for row in rows:
        category = row["category"]
        ids[category].append(row["id"].removeprefix("bfcl_"))
        find = next(m["content"] for m in row["question"][0] if m["role"] == "user")
        if "irrelevance" in category:
            turns = [["None of the functions fits this request."]]
        elif category.startswith("multi_turn"):
            turns = [
                [calls([parsed(call, names) for call in turn]), "Done."] if turn else ["Done."]
                for turn in row["answer"]
            ]
        else:
            gold = [
                (name.replace(".", "_"), arguments(given)) for call in row["answer"] for name, given in call.items()
            ]
            spoilable += 1
            if spoilable % 3 == 0:
                gold[0] = (gold[0][0], {**gold[0][1], "never_asked_for": 1})
                expected[category] -= 1
            turns = [[calls(gold)]]
        expected[category] += 1
        scenarios.append({"find": find, "turns": turns})
    return {"scenarios": scenarios}, dict(expected), dict(ids)


def calls(made: list[tuple[str, dict[str, Any]]]) -> str:
    return json.dumps({"tool_calls": [{"name": name, "arguments": given} for name, given in made]})


def arguments(options: dict[str, list[Any]]) -> dict[str, Any]:
    """One accepted value for each parameter; one that may be left out is."""
    return {name: plain(values[0]) for name, values in options.items() if "" not in values}


def plain(value: Any) -> Any:
    if isinstance(value, dict):
        return arguments(value)
    return [plain(item) for item in value] if isinstance(value, list) else value


def parsed(call: str, names: dict[str, list[str]]) -> tuple[str, dict[str, Any]]:
    """`f(1, x=2)` as (name, arguments)."""
    node = ast.parse(call, mode="eval").body
    assert isinstance(node, ast.Call)
    name = ast.unparse(node.func)
    by_position = dict(zip(names.get(name, []), map(ast.literal_eval, node.args), strict=False))
    return name, by_position | {str(word.arg): ast.literal_eval(word.value) for word in node.keywords}


def report(out: Path, expected: dict[str, int]) -> int:
    wrong = 0
    print(f"{'category':<22} {'rows':>4} {'right by BFCL':>14} {'expected':>9}")
    for category, right in sorted(expected.items()):
        found = list(out.glob(f"score/maestro-FC/**/BFCL_v4_{category}_score.json"))
        head = json.loads(found[0].read_text(encoding="utf-8").splitlines()[0]) if found else {}
        counted = head.get("correct_count")
        wrong += counted != right
        print(f"{category:<22} {head.get('total_count', '-'):>4} {counted!s:>14} {right:>9}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
