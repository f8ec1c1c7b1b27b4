"""The public harnesses' own code as a small service: one question a line in, its verdict a line out.

Run by `official_harness.py` inside the Python that has the harnesses installed; needs no package of ours. Only the
modules that hold the rules are run, not their packages' start-up, and what those modules import besides (image
libraries, model clients) is stood in for where it is not installed: the rules do not use it.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.metadata
import importlib.util
import json
import re
import signal
import sys
import types
from collections.abc import Callable
from contextlib import redirect_stdout, suppress
from pathlib import Path
from typing import Any

SECONDS_A_QUESTION = 5
Verdict = Callable[[dict[str, Any]], bool]
_PACKAGES = {
    "lmms-eval": ("lmms_eval", "lmms_eval.tasks"),
    "ms-vlmeval": ("vlmeval", "vlmeval.dataset", "vlmeval.dataset.utils", "vlmeval.utils"),
}
_ALWAYS_ABSENT = {
    "vlmeval.smp", "vlmeval.smp.file", "vlmeval.smp.log", "vlmeval.dataset.image_vqa",
    "vlmeval.dataset.utils.judge_util", "vlmeval.dataset.utils.multiple_choice", "vlmeval.dataset.utils.spatial457",
    "lmms_eval.verifiers", "lmms_eval.verifiers.extractors", "lmms_eval.verifiers.openai",
    "lmms_eval.tasks._task_utils.file_utils",
}  # fmt: skip
_NEEDED = ("latex2sympy2", "pandas", "sympy", "numpy")
"""What the rules do use: without it a rule is said to be missing rather than judged by a stand-in."""
_FIRST = (*_NEEDED, "requests", "yaml")
"""Imported before the stand-ins are there, for these packages try out what else is installed."""
_dumped: list[Any] = []


class _Meta(type):
    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Anything


class Anything(metaclass=_Meta):
    """Stands in for whatever an absent module would give."""

    def __init__(self, *args: Any, **named: Any) -> None: ...

    def __call__(self, *args: Any, **named: Any) -> Any:
        return self

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Anything()


class _StandIns(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Last on the path: finds every module that nothing else found."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        top = name.partition(".")[0]
        if (
            top in _NEEDED
            or top in sys.stdlib_module_names
            or name.startswith(("lmms_eval.tasks.", "vlmeval.dataset."))
        ):
            return None if name not in _ALWAYS_ABSENT else importlib.machinery.ModuleSpec(name, self, is_package=True)
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: Any) -> types.ModuleType:
        return _stand_in(spec.name)

    def exec_module(self, module: types.ModuleType) -> None: ...


def _stand_in(name: str) -> types.ModuleType:
    module = types.ModuleType(name)
    module.__path__ = []  # type: ignore[attr-defined]
    module.__getattr__ = lambda attribute: _attribute(attribute)  # type: ignore[method-assign]
    return module


def _attribute(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    known = {"load": lambda data: data, "dump": lambda data, path: _dumped.append(data), "tqdm": lambda rows: rows}
    return known.get(name, Anything)


def prepare() -> dict[str, str]:
    """Makes the harnesses' modules importable without their start-up; the versions of those that are installed."""
    versions: dict[str, str] = {}
    for distribution, packages in _PACKAGES.items():
        try:
            versions[distribution] = importlib.metadata.version(distribution)
        except importlib.metadata.PackageNotFoundError:
            continue
        found = importlib.util.find_spec(packages[0])
        root = Path(str(found.origin)).parent if found is not None else Path()
        for name in packages:
            shell = types.ModuleType(name)
            shell.__path__ = [str(root.joinpath(*name.split(".")[1:]))]  # type: ignore[attr-defined]
            sys.modules[name] = shell
    for name in (*_ALWAYS_ABSENT, "tqdm", "loguru"):
        sys.modules[name] = _stand_in(name)
    for name in _FIRST:
        with suppress(ImportError):
            importlib.import_module(name)
    sys.meta_path.append(_StandIns())
    return versions


def _lmms(task: str, module: str = "utils") -> Any:
    return importlib.import_module(f"lmms_eval.tasks.{task}.{module}")


def _lettered(asked: dict[str, Any]) -> dict[str, str]:
    return {"ABCDEFGH"[place]: text for place, text in enumerate(asked["choices"])}


def _geometry3k() -> Verdict:
    rule = _lmms("geometry3k").geometry3k_process_results
    return lambda q: rule({"choices": q["choices"], "ground_truth": q["gold"]}, [q["answer"]])["exact_match"] == 1.0


def _hrbench(reads: Any) -> Verdict:
    return lambda q: str(reads(q["answer"].strip(), _lettered(q))).lower() == q["gold"].lower()


def _erqa_lmms() -> Verdict:
    rule = _lmms("erqa").erqa_process_results
    row = {"question_id": 0, "question_type": ""}
    return lambda q: rule({**row, "answer": q["gold"]}, [q["answer"]])["erqa_acc"]["is_correct"]


def _erqa_vlm() -> Verdict:
    table = importlib.import_module("pandas").DataFrame
    rule = importlib.import_module("vlmeval.dataset.erqa").ERQADataset.evaluate

    def judge(q: dict[str, Any]) -> bool:
        _dumped.clear()
        rule(None, table([{"index": 0, "category": "c", "prediction": q["answer"], "answer": q["gold"]}]))
        return bool(_dumped[0]["correct"].iloc[0])

    return judge


def _ocr_vlm() -> Verdict:
    table = importlib.import_module("pandas").DataFrame
    rule = importlib.import_module("vlmeval.dataset.utils.ocrbench").OCRBench_eval

    def judge(q: dict[str, Any]) -> bool:
        _dumped.clear()
        rule(table([{"prediction": q["answer"], "answer": repr([q["gold"]]), "category": q["group"]}]))
        return _dumped[0]["Final Score"] == 1

    return judge


def _ocr_lmms() -> Verdict:
    rule = _lmms("ocrbench").ocrbench_process_results

    def judge(q: dict[str, Any]) -> bool:
        source = "HME100k" if q["group"].startswith("Handwritten") else "other"
        row = {"answer": [q["gold"]], "dataset": source, "question_type": q["group"]}
        return rule(row, [q["answer"]])["ocrbench_accuracy"]["score"] == 1

    return judge


def _mathvision() -> Verdict:
    importlib.import_module("latex2sympy2")
    rule = _lmms("mathvision").mathvision_process_results

    def judge(q: dict[str, Any]) -> bool:
        row = {"answer": q["gold"], "options": q["choices"] or []}
        return rule(row, [q["answer"]])["mathvision_standard_eval"]["scores"][0]

    return judge


def _microvqa() -> Verdict:
    rule = _lmms("microvqa").process_results
    return lambda q: rule({"correct_index": "ABCDEFGH".index(q["gold"])}, [q["answer"]])["accuracy"] == 1.0


def _slake() -> Verdict:
    words = _lmms("slake").normalize_answer
    return lambda q: words(q["answer"]) == words(q["gold"])


def _tallyqa() -> Verdict:
    read = importlib.import_module("vlmeval.dataset.utils.tallyqa").extract_count_from_prediction
    return lambda q: read(q["answer"]) == int(q["gold"])


def _blind() -> Verdict:
    rule = _lmms("vlmsareblind").vlmsareblind_process_results
    return lambda q: rule({"task": q["group"], "groundtruth": q["gold"]}, [q["answer"]])["accuracy"] == 1.0


def _chartqa_lmms() -> Verdict:
    rule = _lmms("chartqa").relaxed_correctness
    return lambda q: rule(q["answer"], q["gold"])


def _chartqa_vlm() -> Verdict:
    rule = importlib.import_module("vlmeval.dataset.utils.vqa_eval").relaxed_correctness
    return lambda q: rule(q["gold"], q["answer"])


def _vstar() -> Verdict:
    read = _lmms("vstar_bench").extract_answer_letter
    return lambda q: read(q["answer"]) == q["gold"]


RULES: dict[tuple[str, str], Callable[[], Verdict]] = {
    ("chartqa", "lmms-eval"): _chartqa_lmms,
    ("chartqa", "ms-vlmeval"): _chartqa_vlm,
    ("erqa", "lmms-eval"): _erqa_lmms,
    ("erqa", "ms-vlmeval"): _erqa_vlm,
    ("geometry3k", "lmms-eval"): _geometry3k,
    ("hrbench", "lmms-eval"): lambda: _hrbench(_lmms("hrbench", "hrbench_evals").HRBenchEval("").can_infer),
    ("hrbench", "ms-vlmeval"): lambda: _hrbench(importlib.import_module("vlmeval.utils.matching_util").can_infer),
    ("mathvision", "lmms-eval"): _mathvision,
    ("microvqa", "lmms-eval"): _microvqa,
    ("ocrbench", "lmms-eval"): _ocr_lmms,
    ("ocrbench", "ms-vlmeval"): _ocr_vlm,
    ("slake", "lmms-eval"): _slake,
    ("tallyqa", "ms-vlmeval"): _tallyqa,
    ("vlmsareblind", "lmms-eval"): _blind,
    ("vstar", "lmms-eval"): _vstar,
}


def _out_of_time(*_: Any) -> None:
    raise TimeoutError(f"no verdict within {SECONDS_A_QUESTION} s")


def main() -> None:
    out = sys.stdout
    versions = prepare()
    rules: dict[tuple[str, str], Verdict] = {}
    missing: dict[str, str] = {}
    with redirect_stdout(sys.stderr):
        for key, load in RULES.items():
            try:
                if key[1] not in versions:
                    raise ImportError(f"{key[1]} is not installed")
                rules[key] = load()
            except Exception as error:  # whatever a harness raises while it is loaded is told, and the others go on
                missing[" ".join(key)] = re.sub(r"\s+", " ", f"{type(error).__name__}: {error}")[:200]
    print(json.dumps({"versions": versions, "rules": list(rules), "missing": missing}), file=out, flush=True)
    signal.signal(signal.SIGALRM, _out_of_time)
    for line in sys.stdin:
        asked = json.loads(line)
        signal.alarm(SECONDS_A_QUESTION)
        try:
            with redirect_stdout(sys.stderr):
                said: dict[str, Any] = {"right": bool(rules[asked["rule"], asked["harness"]](asked))}
        except Exception as error:  # the harness failed on this answer
            said = {"error": f"{type(error).__name__}: {error}"[:200]}
        finally:
            signal.alarm(0)
        print(json.dumps(said), file=out, flush=True)


if __name__ == "__main__":
    main()
