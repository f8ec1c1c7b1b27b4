"""The page of a training: what the report shows, in the style of an evaluation's report.

The one idea: `train` knows the run and `eval.report` the page; neither knows the other, so they meet here.
"""

from __future__ import annotations

import base64
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from train.rollout_log import RolloutRecord
    from train.run_view import RunView

LIMIT = 12_000_000  # bytes of cards and of pictures, each
PLACES = 9  # steps whose rollouts are shown
OF_EACH = 24  # rollouts of each
WINDOW = 10

ROWS: tuple[tuple[str, str, str], ...] = (
    ("reward", "reward", "+.3f"),
    ("accuracy", "answer part (accuracy)", ".3f"),
    ("format", "format part", "+.3f"),
    ("validation.accuracy", "accuracy, validation (first and last)", ".3f"),
    ("malformed", "malformed rollouts", ".1%"),
    ("calls", "calls an episode", ".2f"),
    ("several_calls", "episodes with more than one call", ".1%"),
    ("turns", "turns an episode", ".2f"),
    ("copied", "sub-question = question", ".1%"),
    ("entropy", "entropy (nats a token)", ".3f"),
    ("kl", "KL from the policy before RL", ".4f"),
    ("prob_gap", "largest |p_actor - p_rollout|", ".1e"),
    ("grad_norm", "gradient norm", ".3f"),
    ("clip_fraction", "clipped tokens", ".2%"),
    ("prompt_tokens", "prompt tokens", ".1f"),
    ("policy_tokens", "tokens of the policy", ".1f"),
    ("response_tokens", "response tokens, observations included", ".1f"),
    ("cut_turns", "rollouts with a cut turn", ".1%"),
    ("cut_observations", "shortened observations", ".1%"),
    ("invalid", "lost rollouts", ".1%"),
    ("expert_failures", "calls without an answer", ".1%"),
    ("groups_all_right", "groups all right", ".1%"),
    ("groups_all_wrong", "groups all wrong", ".1%"),
    ("groups_flat", "flat groups", ".1%"),
    ("groups_excluded", "excluded groups", ".1%"),
    ("seconds", "seconds a step", ".1f"),
    ("seconds_gen", "of these, rollouts", ".1f"),
    ("seconds_update", "of these, update", ".1f"),
    ("seconds_sync", "of these, weights to the engine", ".2f"),
    ("seconds_paused", "of these, waiting for experts", ".1f"),
    ("tokens_a_second", "tokens a second", ".0f"),
    ("memory_gb", "GPU or process memory, GB", ".1f"),
)


def render_training(view: RunView, thumbnails: dict[str, str] | None = None) -> str:
    """The page as text. thumbnails: data URLs by SHA-256 that are known from an earlier page; new ones are added.

    Raises UserFault where the run has no step yet.
    """
    from eval.report.bundle import Bundle
    from eval.report.overview import filters
    from eval.report.page import render_page
    from eval.report.thumbnails import within
    from registry.errors import UserFault

    if not view.history:
        raise UserFault("no training step is recorded yet", where=str(view.root), fix="wait for the first step")
    places, records = _rollouts(view)
    bundle = Bundle(LIMIT)
    for record in records:
        if not bundle.add(_card(record)):
            break
    known = {} if thumbnails is None else thumbnails
    _make_thumbnails(view, records, bundle.pictures, known)
    pictures = within(bundle.pictures, known, LIMIT)
    data = bundle.to_json()
    page = {
        **_page(view),
        "kept": len(bundle.cards),
        "places": places,
        "full": bundle.full,
        "limit_mb": 2 * LIMIT / 1e6,
        "pictures_missing": sum(url is None for url in pictures),
        "filters": {name: options for name, options in filters(data["cards"], data["strings"]).items() if options},
        "filter_names": {"arm": "step", "family": "group", "group": "source"},
    }
    return render_page("training.html.jinja", page, {**data, "pictures": pictures})


def _page(view: RunView) -> dict[str, Any]:
    summary = _summary(view)
    return {
        "title": f"Training {view.name}",
        "subtitle": f"step {view.step} of {view.steps}, {view.state}; seed {view.config.get('seed')}; {view.root}",
        "step": view.step,
        "pause": None if view.pause is None else f"{view.pause.why}, for {view.pause.seconds:.0f} s",
        "alarms": [
            {"name": r.alarm.name, "text": r.alarm.text, "fatal": r.alarm.fatal, "times": r.times, "last": r.last}
            for r in view.alarms
        ],
        "tiles": _tiles(view),
        "curves": _curves(view),
        "numbers": numbers(view.history),
        "pairs": _pairs(view.history),
        "groups": [*_means(view.history, "accuracy_by_source"), *_means(view.history, "accuracy_by_group")],
        "experts": _experts(view.history[-WINDOW:]),
        "settings": list(_flat(view.config)),
        "made_with": {"seed": view.config.get("seed"), **(summary.get("versions") or {})},
    }


def _summary(view: RunView) -> dict[str, Any]:
    from train.paths import RunPaths
    from train.run_view import read_json

    return read_json(RunPaths(view.root).summary) or {}


def _tiles(view: RunView) -> list[dict[str, str]]:
    from train.curves import ends, series

    steps = min(WINDOW, len(view.history))

    def means(key: str, form: str) -> tuple[str, str]:
        found = ends(view.history, key, WINDOW)
        if found is None:
            return "–", "not recorded"
        return format(found[1], form), f"mean of the last {steps} steps; {found[0]:{form}} of the first {steps}"

    tiles = [
        {"label": label, "value": value, "note": note}
        for label, (value, note) in (
            ("reward", means("reward", "+.3f")),
            ("accuracy of rollouts", means("accuracy", ".3f")),
            ("entropy", means("entropy", ".3f")),
            ("malformed rollouts", means("malformed", ".1%")),
            ("calls an episode", means("calls", ".2f")),
            ("seconds a step", means("seconds", ".1f")),
        )
    ]
    seen = series(view.history, "validation.accuracy")
    if seen:
        step, value = max(seen, key=lambda one: (one[1], one[0]))
        note = f"best {value:.3f}, step {step}"
        tiles.insert(1, {"label": "validation accuracy", "value": f"{seen[-1][1]:.3f}", "note": note})
    hours = sum(record.get("seconds") or 0.0 for record in view.history) / 3600
    tiles.append({"label": "time in steps", "value": f"{hours:.2f} h", "note": f"{len(view.history)} steps"})
    return tiles


def numbers(history: Sequence[dict[str, Any]]) -> list[tuple[str, str, str, str]]:
    """(metric, first ten, last ten, newest) of all that is known; of a validation its first and last value."""
    from train.curves import ends

    found = []
    for key, name, form in ROWS:
        known = ends(history, key, WINDOW)
        if known is not None:
            first, last, now = ("–" if value is None else format(value, form) for value in known)
            found.append((name, first, last, now))
    return found


def _pairs(history: Sequence[dict[str, Any]]) -> list[tuple[str, str, str]]:
    first, last = (_shares(part) for part in (history[:WINDOW], history[-WINDOW:]))
    top = sorted(last, key=lambda pair: -last[pair])[:20]
    return [(pair, f"{first.get(pair, 0):.1%}", f"{last[pair]:.1%}") for pair in top]


def _shares(part: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    counts: dict[str, int] = {}
    for record in part:
        for pair, count in (record.get("pairs") or {}).items():
            counts[pair] = counts.get(pair, 0) + count
    total = max(1, sum(counts.values()))
    return {pair: count / total for pair, count in counts.items()}


def _means(history: Sequence[dict[str, Any]], key: str) -> list[tuple[str, float | None, float | None]]:
    names = sorted({name for record in history for name in record.get(key) or {}})
    if len(names) < 2:
        return []

    def mean(part: Iterable[dict[str, Any]], name: str) -> float | None:
        values = [v for record in part if (v := (record.get(key) or {}).get(name)) is not None]
        return _mean(values) if values else None

    return [(name, mean(history[:WINDOW], name), mean(history[-WINDOW:], name)) for name in names]


def _experts(part: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for record in part:
        for name, own in (record.get("experts") or {}).items():
            found.setdefault(name, []).append(own)

    def mean(own: Sequence[dict[str, Any]], key: str) -> float | None:
        values = [one[key] for one in own if one.get(key) is not None]
        return _mean(values) if values else None

    return [
        {
            "name": name,
            **{key: sum(one[key] for one in own) for key in ("calls", "failed", "cached")},
            "p50": mean(own, "seconds_p50"),
            "p95": mean(own, "seconds_p95"),
        }
        for name, own in sorted(found.items())
    ]


def _curves(view: RunView) -> str:
    from train.curves import draw_curves

    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "curves.png"
        draw_curves(view.history, out, f"GRPO: {view.name}, seed {view.config.get('seed')}")
        return "data:image/png;base64," + base64.b64encode(out.read_bytes()).decode()


def _rollouts(view: RunView) -> tuple[int, list[RolloutRecord]]:
    """Rollouts to show, newest step first, and of how many steps they are; the newest validation is among them."""
    from train.paths import RunPaths
    from train.samples import sampled, spread, steps_in

    path = RunPaths(view.root).rollouts
    wanted = [("train", step) for step in spread([r["step"] for r in view.history], PLACES)]
    wanted += [("validation", step) for step in steps_in(path, "validation")[-1:]]
    found = sampled(path, wanted, OF_EACH)
    order = sorted(found, key=lambda place: (-place[1], place[0]))
    return len(found), [record for place in order for record in found[place]]


def _card(record: RolloutRecord) -> Any:
    from eval.facts import facts_of
    from eval.report.cards import card_of

    name = f"step {record.step}" if record.split == "train" else f"validation, step {record.step}"
    value = None if record.answer is None else min(1.0, max(0.0, record.answer))
    facts = facts_of(name, record.split, value, record.trajectory or {})
    told = {
        "arm": name,
        "trajectory": record.trajectory,
        "score": None if record.answer is None else {"explanation": f"{record.answer:g}"},
        "groups": {} if record.source is None else {"source": record.source},
    }
    return card_of(told, facts, _reward(record))


def _reward(record: RolloutRecord) -> str:
    if record.reward is None:
        return "none: the rollout was lost and is left out of the update"
    named = (("answer", record.answer), ("format", record.format))
    parts = ", ".join(f"{name} {value:g}" for name, value in named if value is not None)
    return f"{record.reward:+g} ({parts})"


def _make_thumbnails(
    view: RunView, records: Sequence[RolloutRecord], wanted: Sequence[str], known: dict[str, str]
) -> None:
    from eval.report.thumbnails import thumbnail
    from train.paths import RunPaths
    from train.samples import pictures_of

    paths, data = RunPaths(view.root), view.config.get("data") or {}
    files = [Path(f) for key in ("train_files", "validation_files") for f in data.get(key) or ()]
    files += [file for file in (paths.train_rows, paths.validation_rows) if file.exists()]
    for sha256, picture in pictures_of(files, records, known).items():
        if sha256 in wanted:
            known[sha256] = thumbnail(picture)


def _flat(config: Mapping[str, Any], prefix: str = "") -> Iterable[tuple[str, str]]:
    for key, value in config.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield prefix + key, str(value)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
