"""How many answers a second each scoring rule judges on one core, and whether any text makes one of them fail.

    nice -n 19 python benchmarks/scorers.py                      # scores a second of processor time, rule by rule
    nice -n 19 python benchmarks/scorers.py --fuzz 2000000       # broken text over all rules in turn
    python benchmarks/scorers.py --profile hrbench               # where a rule's time goes

Speed is by processor time, so other programs on the machine count little; still, measure on a quiet one. Answers are
made (`made_answers.py`), each scored once, the best of three rounds with answers of their own. Exit code 1: a rule
below the goal, or a text that made a rule raise.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import pstats
import random
import sys
import time
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from made_answers import MAKERS, Made, bent, made

from rewards import benchmarks, score

GOAL = 20_000
MOST_FAILURES = 20
_LIKE = {
    "choice": "hrbench", "exact": "slake", "f1": "slake", "number": "chartqa", "integer": "tallyqa",
    "relaxed": "chartqa",
    "mathematics": "mathvision", "yes_no": "touching", "letter": "circled", "grid": "grid", "embedded": "tallyqa",
}  # fmt: skip
_TASKS = {"touching": "touching circles", "circled": "circled letter", "grid": "counting grid - word grids"}
_PIECES = (
    "<answer>", "</answer>", "<think>", "</think>", "<search>", "</search>", "\\boxed{", "\\frac{", "\\sqrt", "}",
    "{", "$", "^", "the answer is ", "答案：", "A", "b", "(C)", "D.", "12", "3.5", ",", "%", "1e999", "nan", "½", "−",
    "\u202e", "\u0000", "\ud800", "\n", "\t", "´", "😀", "ﷺ", "İ", "ſ", "\u0301", "١٢", "一", "百万", "（", "）",
    "'", '"', "\\", "```json\n", '{"answer": ', "is ", "=",
)  # fmt: skip


def answers_for(rule: str, seed: int, count: int) -> list[Made]:
    base = rule.removesuffix("_official")
    like = base if base in MAKERS else _LIKE[base]
    source = made("vlmsareblind" if like in _TASKS else like, seed)
    fitting = (one for one in source if like not in _TASKS or one.group == _TASKS[like])
    if base in ("number", "integer", "relaxed"):
        fitting = (one for one in fitting if _is_number(one.gold))
    return list(islice(fitting, count))


def _is_number(text: str) -> bool:
    return text.lstrip("-").replace(".", "", 1).isdecimal()


def judge(rule: str, one: Made) -> float:
    group = None if rule == "embedded" else one.group
    return score(rule, one.gold, one.answer, choices=one.choices, group=group).value


def rate(rule: str, count: int, seed: int) -> float:
    """Scores a second of processor time, the best of three rounds."""
    best = 0.0
    for turn in range(3):
        answers = answers_for(rule, seed + turn, count)
        started = time.process_time()
        for one in answers:
            judge(rule, one)
        best = max(best, count / max(time.process_time() - started, 1e-9))
    return best


def noise(rng: random.Random, one: Made) -> str:
    """Text that nobody would write, or nearly a right answer."""
    kind = rng.random()
    if kind < 0.4:
        return bent(bent(one.answer, rng), rng)
    if kind < 0.8:
        return "".join(rng.choices(_PIECES, k=rng.randint(0, 14)))
    if kind < 0.98:
        length = rng.randint(0, 30)
        codes = (
            rng.choice((rng.randrange(128), rng.randrange(0x3000), rng.randrange(0x110000))) for _ in range(length)
        )
        return "".join(map(chr, codes))
    return rng.choice(_PIECES) * rng.randint(1, 900)


def fuzz(count: int, seed: int) -> dict[str, Any]:
    """Scores `count` broken answers, spread evenly over the rules; the exceptions and the slowest single score."""
    rng = random.Random(seed)
    questions = {rule: answers_for(rule, seed, 500) for rule in benchmarks()}
    failures: list[dict[str, str]] = []
    failed, slowest, slow_rule = 0, 0.0, ""
    started, told = time.process_time(), time.monotonic()
    for number, rule in enumerate(islice(cycle(questions), count)):
        one = rng.choice(questions[rule])
        answer = noise(rng, one)
        before = time.process_time()
        try:
            value = judge(rule, Made(one.gold, answer, one.choices, one.group))
            if not 0.0 <= value <= 1.0:
                raise AssertionError(f"the value {value}")
        except Exception as error:  # any exception is what this looks for
            failed += 1
            if len(failures) < MOST_FAILURES:
                failures.append({"rule": rule, "gold": one.gold, "answer": repr(answer), "error": repr(error)[:200]})
        took = time.process_time() - before
        if took > slowest:
            slowest, slow_rule = took, rule
        if time.monotonic() - told > 30:
            told = time.monotonic()
            print(f"{number + 1} of {count}, {failed} failed", file=sys.stderr, flush=True)
    return {
        "answers": count, "rules": len(questions), "failed": failed, "failures": failures, "seed": seed,
        "slowest_ms": round(1000 * slowest, 2), "slowest_rule": slow_rule,
        "cpu_s": round(time.process_time() - started, 1),
    }  # fmt: skip


def profile(rule: str, count: int, seed: int) -> None:
    answers = answers_for(rule, seed, count)
    profiler = cProfile.Profile()
    profiler.enable()
    for one in answers:
        judge(rule, one)
    profiler.disable()
    pstats.Stats(profiler).sort_stats("tottime").print_stats(15)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--answers", type=int, default=5000, help="answers a round, for the speed")
    parser.add_argument("--fuzz", type=int, metavar="N", help="score N broken answers instead")
    parser.add_argument("--profile", metavar="RULE")
    parser.add_argument("--rules", nargs="*", help="the speed of these rules alone")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, help="write the result here as well")
    args = parser.parse_args()
    if args.profile:
        profile(args.profile, args.answers, args.seed)
        return 0
    if args.fuzz:
        found = fuzz(args.fuzz, args.seed)
        good = not found["failed"]
    else:
        rates = {rule: round(rate(rule, args.answers, args.seed)) for rule in args.rules or benchmarks()}
        found = {
            "goal": GOAL,
            "scores_a_second": rates,
            "below": [rule for rule, speed in rates.items() if speed < GOAL],
        }
        good = not found["below"]
    text = json.dumps(found, ensure_ascii=False, indent=1)
    print(text)
    if args.json is not None:
        args.json.write_text(text + "\n", encoding="utf-8")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
