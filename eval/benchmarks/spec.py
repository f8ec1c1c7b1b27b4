"""A benchmark as data: the schema of `configs/benchmarks/*.yaml`.

The one idea: what differs between benchmarks is which columns mean what, how answers are scored and over which
groups the mean is taken. All of it is written here, so a new benchmark is a file and no code. A field is read
from the first of its alternatives that a row has: a column's name, or a Jinja2 template over columns.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from eval.yaml_config import Strict
from registry.names import name_fault, nearest
from registry.templates import read_template
from rewards import benchmarks as rule_names

PROGRAM_RULE = "humaneval_v"
"""The one rule that runs the answer; all others are functions of `rewards`."""


def _name(value: str) -> str:
    fault = name_fault(value)
    if fault or "/" in value:
        raise ValueError(fault or f"the name {value!r} holds '/'")
    return value


def _some(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _alternatives(value: tuple[str, ...]) -> tuple[str, ...]:
    for one in value:
        fault = read_template(one).fault if "{{" in one or "{%" in one else None
        if fault:
            raise ValueError(f"the template {one!r:.80}: {fault}")
        if not one.strip():
            raise ValueError("names an empty column")
    return value


def _rule(value: str) -> str:
    if value != PROGRAM_RULE and value not in rule_names():
        near = nearest(value, [*rule_names(), PROGRAM_RULE], 1)
        raise ValueError(f"unknown rule {value!r}" + (f"; did you mean {near[0]!r}?" if near else ""))
    return value


def _on(value: Any) -> Any:
    return {"true": True, "false": False}.get(value, value) if isinstance(value, str) else value


Switch = Annotated[bool, BeforeValidator(_on)]
Names = Annotated[tuple[str, ...], BeforeValidator(_some)]
Columns = Annotated[tuple[str, ...], BeforeValidator(_some), Field(min_length=1), AfterValidator(_alternatives)]
Rule = Annotated[str, AfterValidator(_rule)]


class Hub(Strict):
    """Where the data set lies on the hub. revision: a branch or commit; `main` moves, a commit does not."""

    id: str = Field(pattern=r"^[\w.-]+/[\w.-]+$")
    config: str | None = None
    split: str
    revision: str = "main"


class Generator(Strict):
    """Rows that are drawn instead of read."""

    name: Literal["embedded"]
    split: str = "test"
    seed: int = 0


class Answer(Strict):
    """The right answer. kind: `text` as it stands, or any of a list; `option` the letter or text of an option;
    `index` the number of the option, from 0; `program` a test script that the answer, a program, must pass."""

    columns: Columns
    kind: Literal["text", "option", "index", "program"] = "text"
    solution: Names = ()
    """`program`: columns with a program that passes."""
    before: Names = ()
    """`program`: columns with the code that stands before the answer, such as the function's signature."""


class Choices(Strict):
    """The options: a column that holds their list, columns that hold one each, or lettered lines of the question,
    which are cut out of it."""

    columns: Names = ()
    each: Names = ()
    lettered: Switch = False
    optional: Switch = False
    """Rows may have none; they are open questions then."""

    @model_validator(mode="after")
    def _somewhere(self) -> Choices:
        if not (self.columns or self.each or self.lettered):
            raise ValueError("give 'columns', 'each' or 'lettered'")
        return self


class Images(Strict):
    """The pictures, in order. archive: a zip file beside the data that holds them by the names in the column."""

    columns: Columns
    base64: Switch = False
    """Cells are base64 text (one picture), or a JSON list of such texts."""
    archive: str | None = None
    folders: tuple[str, ...] = ("", "images", "imgs")
    """Folders beside the data where relative paths are looked up."""


class Group(Strict):
    """A label of a row. values: other names for some of its values. missing: the label where no column has one."""

    columns: Columns
    values: dict[str, str] = Field(default_factory=dict)
    missing: str = "unstated"


class QuestionKey(Strict):
    """Which rows ask one question (rotated options, several wordings): those with the same value in `columns`, or those
    that are the same in all of `same`, whatever their answer. Intervals and comparisons then draw questions, not rows.
    """

    columns: Names = ()
    same: tuple[Literal["question", "options", "pictures"], ...] = ()
    """`options`: in any order."""

    @model_validator(mode="after")
    def _one_way(self) -> QuestionKey:
        if bool(self.columns) == bool(self.same):
            raise ValueError("give either 'columns' or 'same'")
        return self


class Scorer(Strict):
    """official: the published rule. lenient: one that also takes what the published one misjudges for its form
    alone. source: where the published rule was read. differs: what is not as published, and why. judge: the published
    procedure asks a model where its rule reads nothing in an answer; done only where an evaluation names one."""

    official: Rule
    lenient: Rule | None = None
    judge: Switch = Field(default=False, exclude_if=lambda value: not value)
    source: str
    differs: str = ""


class Metrics(Strict):
    """How values become figures. by: groups that are shown. headline: `micro`, the mean over rows, or `macro`, the mean
    inside each value of `over` and then the mean of those. macro_over: further macro means that are shown."""

    by: Names = ()
    headline: Literal["micro", "macro"] = "micro"
    over: str | None = None
    macro_over: Names = ()

    @model_validator(mode="after")
    def _over_what(self) -> Metrics:
        if (self.headline == "macro") != (self.over is not None):
            raise ValueError("'over' names the group of a macro headline, and belongs to that alone")
        return self


class Benchmark(Strict):
    """One benchmark.

    rows: how many its split holds, as published; None where that is not known. group: the label that scorers and
    reports see first. files: patterns of the data's file names in a local copy, before those made of the split's name.
    """

    name: Annotated[str, AfterValidator(_name)]
    title: str
    aliases: Names = ()
    about: str = ""
    hub: Hub | None = None
    generator: Generator | None = None
    licence: str
    rows: int | None = Field(default=None, ge=1)
    files: Names = ()
    id: Names = ()
    question: Columns = ("question",)
    answer: Answer = Answer(columns=("answer",))
    choices: Choices | None = None
    images: Images = Images(columns=("image",))
    groups: dict[str, Group] = Field(default_factory=dict)
    group: str | None = None
    where: dict[str, Names] = Field(default_factory=dict)
    """Keeps only rows whose group has one of these values."""
    question_key: QuestionKey | None = Field(default=None, exclude_if=lambda value: value is None)
    scorer: Scorer
    metrics: Metrics = Metrics()

    @model_validator(mode="after")
    def _fits_together(self) -> Benchmark:
        if self.hub is not None and self.generator is not None:
            raise ValueError("'hub' and 'generator' exclude each other")
        if self.generator is not None and self.rows is None:
            raise ValueError("a generator needs 'rows', for it never ends")
        used = {"group": (self.group,), "metrics.by": self.metrics.by, "metrics.over": (self.metrics.over,),
                "metrics.macro_over": self.metrics.macro_over, "where": tuple(self.where)}  # fmt: skip
        for key, names in used.items():
            for name in names:
                if name is not None and self.generator is None and name not in self.groups:
                    near = nearest(name, self.groups, 1)
                    hint = f"; did you mean {near[0]!r}?" if near else ""
                    raise ValueError(f"{key} names the group {name!r}, which 'groups' does not hold{hint}")
        if (self.answer.kind == "program") != (self.scorer.official == PROGRAM_RULE):
            raise ValueError(f"an answer of kind 'program' and the rule {PROGRAM_RULE!r} belong together")
        if self.answer.kind == "program" and self.scorer.judge:
            raise ValueError("scorer.judge is for answers in words; programs are run")
        if self.answer.kind == "index" and self.choices is None:
            raise ValueError("an answer of kind 'index' needs 'choices'")
        return self
