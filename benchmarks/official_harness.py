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

from rewards import score

WORKER = Path(__file__).with_name("harness_worker.py")
MOST_SECONDS = 1800
SKIPPED = 3
Meant = Callable[[Made, bool], bool]
_WIDE = re.compile("[\uff01-\uff5e]")


def _bare(one: Made, theirs: bool) -> bool:
    return re.search(r"answer is \*?\*?\(?[0-9]", one.answer) is None and not theirs


def _dug_out(one: Made, theirs: bool) -> bool:
    return theirs and len(one.answer) > 1


def _small(one: Made, theirs: bool) -> bool:
    return not theirs and one.answer.strip() in "abcd"


MEANT: dict[tuple[str, str], list[tuple[str, Meant]]] = {
    ("microvqa", "lmms-eval"): [("an answer tag says 'the answer is' itself, and options have letters here", _bare)],
    ("mathvision", "lmms-eval"): [
        ("our bounded grammar reads a value whole or not at all; the LaTeX parser reads the part that it knows",
         lambda one, theirs: theirs),
    ],
    ("erqa", "lmms-eval"): [
        ("ours is VLMEvalKit's equality; lmms-eval digs a letter out of prose", _dug_out),
        ("VLMEvalKit takes a small letter, lmms-eval does not", _small),
    ],
    ("hrbench", "ms-vlmeval"): [
        ("VLMEvalKit wants the letter among the last four words", lambda one, theirs: len(one.answer.split()) > 4),
        ("VLMEvalKit looks for no option's text in long answers",
         lambda one, theirs: len(one.answer) > 2 * sum(map(len, one.choices or ()))),
    ],
    ("ocrbench", "lmms-eval"): [
        ("lmms-eval folds full-width characters; the authors' rule does not",
         lambda one, theirs: _WIDE.search(one.gold + one.answer) is not None or "\u3000" in one.answer),
    ],
}  # fmt: skip


@dataclass
class Compared:
    """One rule against one harness. meant: reason -> how often, with an example. unexplained: up to 20 examples.
    failed: the harness itself raised an error; no verdict to compare."""

    rule: str
    harness: str
    pairs: int = 0
    agree: int = 0
    right: int = 0
    failed: int = 0
    meant: dict[str, dict[str, Any]] = field(default_factory=dict)
    unexplained: list[dict[str, Any]] = field(default_factory=list)
    differ: int = 0


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
        found.differ += 1
        example = {**asdict(one), "harness": theirs, "ours": ours.value == 1.0, "why": ours.explanation}
        reason = next((why for why, fits in MEANT.get((rule, name), []) if fits(one, theirs)), None)
        if reason is not None:
            found.meant.setdefault(reason, {"times": 0, "example": example})["times"] += 1
        elif len(found.unexplained) < 20:
            found.unexplained.append(example)
    return found


def show(results: list[Compared], harness: Harness) -> None:
    print(", ".join(f"{name} {version}" for name, version in harness.versions.items()))
    for one in results:
        print(f"{one.rule:13} {one.harness:11} {one.agree:6} of {one.pairs - one.failed:6} agree, {one.right} right"
              + (f", {one.failed} times the harness failed" if one.failed else ""))  # fmt: skip
        for reason, what in one.meant.items():
            print(f"    {what['times']} x meant: {reason}; such as {what['example']['answer']!r:.60}")
        for example in one.unexplained:
            print("    unexplained: " + json.dumps(example, ensure_ascii=False)[:400])
    for name, why in harness.missing.items():
        print(f"not compared: {name}: {why}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", type=Path, required=True, help="the Python of the environment with the harnesses")
    parser.add_argument("--pairs", type=int, default=1000, help="made answers per rule and harness")
    parser.add_argument("--rules", nargs="*", help="these rules alone")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=MOST_SECONDS, help="the harness is ended after this long")
    parser.add_argument("--json", type=Path, help="write the whole result here")
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
    counts = Counter({"pairs": sum(one.pairs for one in results), "differ": sum(one.differ for one in results)})
    unexplained = sum(one.differ - sum(what["times"] for what in one.meant.values()) for one in results)
    print(f"{counts['pairs']} pairs, {counts['differ']} differences, {unexplained} of them unexplained")
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
