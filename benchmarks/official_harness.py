"""Whether our `official` rules judge as the public harnesses do: made answers, both verdicts, differences explained.

    python -m venv /tmp/harness && /tmp/harness/bin/pip install --no-deps lmms-eval ms-vlmeval
    /tmp/harness/bin/pip install latex2sympy2 pandas pyyaml requests
    nice -n 19 python benchmarks/official_harness.py --python /tmp/harness/bin/python --pairs 1000

The harnesses stay in an environment of their own; their rules run there (`harness_worker.py`) and answer line by
line. A difference that is meant has its sentence in `MEANT`; any other is listed, and the exit code is 1. 0: none;
3: skipped, there is no harness to compare with.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from made_answers import Made, made

from rewards import Score, score
from rewards.scorers.expression import evaluate
from rewards.scorers.mathvision import dig_out

WORKER = Path(__file__).with_name("harness_worker.py")
MOST_SECONDS = 1800
SKIPPED = 3
Meant = Callable[[Made, bool, Score], bool]
_WIDE = re.compile("[\uff01-\uff5e]")


def _bare(one: Made, theirs: bool, ours: Score) -> bool:
    return re.search(r"answer is \*?\*?\(?[0-9]", one.answer) is None and not theirs


def _dug_out(one: Made, theirs: bool, ours: Score) -> bool:
    return theirs and len(one.answer) > 1


def _small(one: Made, theirs: bool, ours: Score) -> bool:
    return not theirs and one.answer.strip() in "abcd"


MEANT: dict[tuple[str, str], list[tuple[str, Meant]]] = {
    ("microvqa", "lmms-eval"): [("an answer tag says 'the answer is' itself, and options have letters here", _bare)],
    ("mathvision", "lmms-eval"): [
        ("our bounded grammar reads a value whole or not at all; the LaTeX parser reads the part that it knows",
         lambda one, theirs, ours: theirs and evaluate(dig_out(one.answer)) is None),
        ("a fraction's second part without braces is a value to us, a product to the LaTeX parser",
         lambda one, theirs, ours: not theirs and re.search(r"frac\{[^}]*\}\d", one.answer) is not None),
    ],
    ("erqa", "lmms-eval"): [
        ("ours is VLMEvalKit's equality; lmms-eval digs a letter out of prose", _dug_out),
        ("VLMEvalKit takes a small letter, lmms-eval does not", _small),
    ],
    ("hrbench", "ms-vlmeval"): [
        ("VLMEvalKit wants the letter among the last four words",
         lambda one, theirs, ours: len(one.answer.split()) > 4),
        ("VLMEvalKit looks for no option's text in long answers",
         lambda one, theirs, ours: len(one.answer) > 2 * sum(map(len, one.choices or ()))),
    ],
    ("ocrbench", "lmms-eval"): [
        ("lmms-eval folds full-width characters; the authors' rule does not",
         lambda one, theirs, ours: _WIDE.search(one.gold + one.answer) is not None or "\u3000" in one.answer),
    ],
}  # fmt: skip


@dataclass
class Compared:
    """One rule against one harness. differences: each pair on which they disagree, with its reason, None where there is
    none. failed: the harness itself raised an error; no verdict to compare."""

    rule: str
    harness: str
    pairs: int = 0
    agree: int = 0
    right: int = 0
    failed: int = 0
    differences: list[dict[str, Any]] = field(default_factory=list)


class Harness:
    """The worker's end of the line."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        first = self._read()
        self.versions: dict[str, str] = first["versions"]
        self.rules: list[tuple[str, str]] = [(rule, harness) for rule, harness in first["rules"]]
        self.missing: dict[str, str] = first["missing"]

    def ask(self, rule: str, harness: str, one: Made) -> dict[str, Any]:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"rule": rule, "harness": harness, **asdict(one)}) + "\n")
        self._process.stdin.flush()
        return self._read()

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline(1 << 20)
        if not line:
            raise SystemExit(f"the harness's process ended (exit code {self._process.poll()})")
        return json.loads(line)


@contextmanager
def running(python: Path, seconds: float) -> Iterator[Harness]:
    """The worker in that Python; it is ended at the deadline, whatever it is doing."""
    process = subprocess.Popen(
        [str(python), str(WORKER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    deadline = threading.Timer(seconds, process.kill)
    deadline.start()
    try:
        yield Harness(process)
    finally:
        deadline.cancel()
        process.kill()
        process.wait()


def compare(harness: Harness, rule: str, name: str, pairs: int, seed: int) -> Compared:
    found = Compared(rule, name)
    for one in islice(made(rule, seed), pairs):
        reply = harness.ask(rule, name, one)
        found.pairs += 1
        if "error" in reply:
            found.failed += 1
            continue
        theirs = reply["right"]
        ours = score(f"{rule}_official", one.gold, one.answer, choices=one.choices, group=one.group)
        found.right += theirs
        if (ours.value == 1.0) == theirs:
            found.agree += 1
            continue
        reason = next((why for why, fits in MEANT.get((rule, name), []) if fits(one, theirs, ours)), None)
        told = {"harness": theirs, "ours": ours.value == 1.0, "why": ours.explanation, "reason": reason}
        found.differences.append({"rule": rule, "against": name, **asdict(one), **told})
    return found


def show(results: list[Compared], harness: Harness) -> None:
    print(", ".join(f"{name} {version}" for name, version in harness.versions.items()))
    for one in results:
        print(f"{one.rule:13} {one.harness:11} {one.agree:6} of {one.pairs - one.failed:6} agree, {one.right} right"
              + (f", {one.failed} times the harness failed" if one.failed else ""))  # fmt: skip
        for reason, times in Counter(each["reason"] for each in one.differences).items():
            example = next(each for each in one.differences if each["reason"] == reason)
            if reason is not None:
                print(f"    {times} x meant: {reason}; such as {example['answer']!r:.60}")
        for each in [each for each in one.differences if each["reason"] is None][:20]:
            print("    unexplained: " + json.dumps(each, ensure_ascii=False)[:400])
    for name, why in harness.missing.items():
        print(f"not compared: {name}: {why}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", type=Path, required=True, help="the Python of the environment with the harnesses")
    parser.add_argument("--pairs", type=int, default=1000, help="made answers per rule and harness")
    parser.add_argument("--rules", nargs="*", help="these rules alone")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=MOST_SECONDS, help="the harness is ended after this long")
    parser.add_argument("--json", type=Path, help="write the whole result here, every difference in it")
    args = parser.parse_args()
    if not args.python.is_file():
        print(
            f"skipped: no Python at {args.python}; the text at the top of this file says how to make one",
            file=sys.stderr,
        )
        return SKIPPED
    with running(args.python, args.seconds) as harness:
        if not harness.rules:
            print("skipped: that Python has neither lmms-eval nor ms-vlmeval", file=sys.stderr)
            return SKIPPED
        wanted = [key for key in harness.rules if not args.rules or key[0] in args.rules]
        results = [compare(harness, rule, name, args.pairs, args.seed) for rule, name in wanted]
    show(results, harness)
    if args.json is not None:
        record = {"versions": harness.versions, "missing": harness.missing, "results": [asdict(one) for one in results]}
        args.json.write_text(json.dumps(record, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    pairs, differences = sum(one.pairs for one in results), [each for one in results for each in one.differences]
    unexplained = sum(each["reason"] is None for each in differences)
    print(f"{pairs} pairs, {len(differences)} differences, {unexplained} of them unexplained")
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
