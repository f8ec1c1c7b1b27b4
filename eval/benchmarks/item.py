"""One record as a benchmark's YAML reads it: question, options, gold answer, pictures and labels.

The one idea: a record that can't be asked or scored is one `RowFault` that says which row and why.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from eval.benchmarks.fields import Record, is_there, read_field
from eval.benchmarks.listed import read_list
from eval.benchmarks.options import cut_options, right_option
from eval.benchmarks.pictures import Pictures
from eval.benchmarks.program import join_program
from eval.benchmarks.question_key import question_key
from eval.benchmarks.row import Row
from eval.benchmarks.scoring import misfit
from eval.benchmarks.spec import Benchmark
from eval.benchmarks.tally import RowFault
from experts.images import ImageFault, Picture
from orchestrator.task import Task
from registry.errors import UserFault

_PLACEHOLDER = re.compile(r"<image(\d{0,2})>")
_SEVERAL_BLANKS = re.compile(r"\n[ \t]*\n[ \t\n]*")


@dataclass(frozen=True)
class Item:
    """One row, ready to be asked. `groups`: its labels, by which metrics are taken (name of the group to label).
    `cluster`: the question that it asks together with other rows; None: a question of its own."""

    row: Row
    pictures: tuple[Picture, ...] = field(repr=False)
    groups: Mapping[str, str]
    cluster: str | None = None

    def task(self) -> Task:
        """What the runner takes; no picture is decoded again."""
        row = self.row
        return Task(
            row_id=row.id,
            benchmark=row.benchmark,
            group=row.group,
            question=row.question,
            pictures=self.pictures,
            ground_truth=tuple(row.extra["answers"]) if "answers" in row.extra else row.answer,
            choices=row.choices,
        )


def item_of(benchmark: Benchmark, record: Record, number: int, where: str, pictures: Pictures | None) -> Item | None:
    """One record as an item; None where `where` in the YAML leaves it out. `number`, from 0, stands in for a missing
    id. Without `pictures` none are read. Raises RowFault."""
    try:
        groups = {
            name: _label(read_field(record, group.columns), group.values, group.missing)
            for name, group in benchmark.groups.items()
        }
        if any(groups[name] not in wanted for name, wanted in benchmark.where.items()):
            return None
        question = read_field(record, benchmark.question)
        identity = read_field(record, benchmark.id)
    except UserFault as fault:
        raise RowFault("unreadable", fault.what, where=where) from None
    if question is None:
        raise RowFault("no question", "", where=where)
    question, choices = _options(benchmark, record, str(question), where)
    answer, extra = _gold(benchmark, record, choices, where)
    group = groups[benchmark.group] if benchmark.group else ""
    unfit = misfit(benchmark, extra.get("answers", [answer]), choices=choices, group=group)
    if unfit is not None:
        raise RowFault(
            "gold answer does not fit the rule",
            unfit,
            where=where,
            fix="mend the answer, or name another rule as 'scorer' in the benchmark's YAML",
        )
    shown = _pictures(pictures, record, where)
    row = Row(
        id=f"{benchmark.name}/{number if identity is None else identity}",
        benchmark=benchmark.name,
        question=_without_placeholders(question, shown, where),
        pictures=tuple(picture.png for picture in shown or ()),
        answer=answer,
        choices=choices,
        group=group,
        split=benchmark.hub.split if benchmark.hub else "test",
        extra=extra,
    )
    try:
        cluster = question_key(benchmark.question_key, record, row, shown)
    except UserFault as fault:
        raise RowFault("unreadable", fault.what, where=where) from None
    return Item(row=row, pictures=shown or (), groups=MappingProxyType(groups), cluster=cluster)


def _label(value: Any, values: Mapping[str, str], missing: str) -> str:
    if not is_there(value):
        return missing
    text = " ".join(str(value).split())
    for written, label in values.items():
        if written.casefold() == text.casefold():
            return label
    return text


def _options(benchmark: Benchmark, record: Record, question: str, where: str) -> tuple[str, tuple[str, ...] | None]:
    spec = benchmark.choices
    if spec is None:
        return question, None
    found: tuple[str, ...] | None = None
    if spec.columns and (listed := read_field(record, spec.columns)) is not None:
        found = _listed(listed, where)
    if found is None and spec.each:
        found = tuple(str(record[name]).strip() for name in spec.each if is_there(record.get(name))) or None
    if spec.lettered:
        rest, cut = cut_options(question)
        if cut is not None and (found is None or len(found) == len(cut)):
            question, found = rest, found or cut
    if found is not None and not 2 <= len(found) <= 26:
        raise RowFault("bad options", f"{len(found)} of them, expected 2 to 26", where=where)
    if found is None and not spec.optional:
        raise RowFault("bad options", "the row has none", where=where)
    return question, found


def _listed(value: Any, where: str) -> tuple[str, ...]:
    if isinstance(value, str):
        try:
            value = read_list(value)
        except ValueError:
            raise RowFault("bad options", f"no list: {value!r:.80}", where=where) from None
    items = list(value.values()) if isinstance(value, dict) else list(value) if hasattr(value, "__iter__") else None
    if items is None or not all(isinstance(item, str | int | float) and is_there(item) for item in items):
        raise RowFault("bad options", f"no list of texts: {value!r:.80}", where=where)
    return tuple(str(item).strip() for item in items)


def _gold(
    benchmark: Benchmark, record: Record, choices: tuple[str, ...] | None, where: str
) -> tuple[str, dict[str, Any]]:
    spec = benchmark.answer
    try:
        value = read_field(record, spec.columns)
        if value is None:
            raise RowFault("no gold answer", "", where=where, fix="a row without one can't be scored")
        if spec.kind == "program":
            solution = read_field(record, spec.solution)
            gold = join_program(str(read_field(record, spec.before) or ""), str(value))
            return gold, {} if solution is None else {"solution": str(solution)}
        if spec.kind == "index" or (spec.kind == "option" and choices is not None):
            return right_option(value, choices, is_index=spec.kind == "index"), {}
        several = isinstance(value, list | tuple) or hasattr(value, "ravel")
        answers = [str(one) for one in value if is_there(one) and str(one).strip()] if several else [str(value)]
    except ValueError as fault:
        raise RowFault("bad gold answer", str(fault), where=where) from None
    except UserFault as fault:
        if isinstance(fault, RowFault):
            raise
        raise RowFault("unreadable", fault.what, where=where) from None
    if not answers or not all(answer.strip() for answer in answers):
        raise RowFault("no gold answer", "", where=where, fix="a row without one can't be scored")
    return answers[0], {"answers": answers} if len(answers) > 1 else {}


def _pictures(pictures: Pictures | None, record: Record, where: str) -> tuple[Picture, ...] | None:
    """None where pictures are not read at all."""
    if pictures is None:
        return None
    try:
        found = pictures.read(record, where)
    except ImageFault as fault:
        raise RowFault("bad image", fault.what, where=fault.where or where, fix=fault.fix) from None
    if not found:
        raise RowFault("no image", "", where=where, fix="give the images, or read the rows without any (--text-only)")
    return found


def _without_placeholders(question: str, pictures: tuple[Picture, ...] | None, where: str) -> str:
    """Pictures stand before the question; what the text says of their places is kept in words where there are
    several. Raises RowFault when the text has more bare `<image>` than the row has pictures."""
    bare = question.count("<image>")
    if pictures is not None and bare > len(pictures):
        raise RowFault("too few images", f"the question asks for {bare}, the row has {len(pictures)}", where=where)
    several = pictures is not None and len(pictures) > 1
    count = 0

    def words(mark: re.Match[str]) -> str:
        nonlocal count
        count += not mark[1]
        return f"(image {mark[1] or count})" if several else ""

    return _SEVERAL_BLANKS.sub("\n\n", _PLACEHOLDER.sub(words, question)).strip()
