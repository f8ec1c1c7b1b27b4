"""What a registry holds, as frozen typed objects.

The one idea: everything that can be called is data. An expert is a frozen model or program behind a
backend; a Level-1 skill is what the policy names; its Level-2 subskills each carry a procedure, that is an
ordered list of steps which use a tool or ask the expert. Fields that are not listed here are refused.

Units: tokens for lengths, seconds for times, bytes for replies, billions for parameters, money per million
tokens.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from registry.frozen import freeze
from registry.names import name_fault, normalise
from registry.scalars import Plain, lossless

_TARGET = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*(:[A-Za-z_]\w*)?|[A-Za-z_][\w.-]*")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_CONTROL_TEXT = re.compile(
    r"</?\s*(think|search|information|answer|image|video)\b[^>]*>|<\|[^|<>]*\|>", re.IGNORECASE
)


def _name(value: str) -> str:
    fault = name_fault(value)
    if fault:
        raise ValueError(fault)
    return value.strip()


def _description(value: str) -> str:
    text = " ".join(value.split())
    if not text:
        raise ValueError("is empty; say in one sentence what it is good at")
    control = _CONTROL_TEXT.search(text)
    if control:
        raise ValueError(f"holds {control.group()!r}, which would act in the policy's prompt")
    return text


def _filled(value: str) -> str:
    if not value.strip():
        raise ValueError("is empty")
    return value


def _url(value: str) -> str:
    try:
        parts = urlsplit(value)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        valid = False
    if not valid:
        raise ValueError(f"must be a URL such as 'http://host:8000/v1', not {value!r}")
    return value.rstrip("/")


def _environment_name(value: str) -> str:
    if not _VARIABLE.fullmatch(value):
        raise ValueError("must be the name of an environment variable; never write a key into a registry")
    return value


def _target(value: str) -> str:
    if not _TARGET.fullmatch(value):
        raise ValueError(f"must be 'package.module:Class' or the name of an entry point, not {value!r}")
    return value


def _unset(value: Any) -> Any:
    # YAML's ways to say "nothing", where nothing is allowed; quoted they are text.
    return None if isinstance(value, Plain) and value in ("null", "~") else value


def _arguments(value: dict[str, str]) -> dict[str, str]:
    for name in value:
        if not _VARIABLE.fullmatch(name):
            raise ValueError(f"the argument {name!r} is not a plain name (letters, digits, '_')")
    return freeze(value)


Name = Annotated[str, AfterValidator(_name)]
Description = Annotated[str, AfterValidator(_description)]
Text = Annotated[str, AfterValidator(_filled)]
MaybeText = Annotated[Text | None, BeforeValidator(_unset)]
MaybeNumber = Annotated[Annotated[float, Field(gt=0)] | None, BeforeValidator(_unset)]


class Part(BaseModel):
    """Base of all parts: frozen, unknown fields refused, no NaN."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Replica(Part):
    """One server that answers for an expert; `weight` is its share of the load."""

    url: Annotated[str, AfterValidator(_url)]
    weight: float = Field(default=1.0, gt=0)


class OpenAIBackend(Part):
    """Any OpenAI-compatible server. `trust_remote_code` lets a launcher run the model's own code."""

    type: Literal["openai"]
    model: Text
    replicas: tuple[Replica, ...] = Field(min_length=1)
    api_key_env: Annotated[
        Annotated[str, AfterValidator(_environment_name)] | None, BeforeValidator(_unset)
    ] = None
    trust_remote_code: bool = False


class PythonBackend(Part):
    """A program in this process: `package.module:Class` or an entry point; `options` go to `__init__`."""

    type: Literal["python"]
    target: Annotated[str, AfterValidator(_target)]
    options: Annotated[dict[str, Any], BeforeValidator(lossless), AfterValidator(freeze)] = Field(
        default_factory=lambda: freeze({})
    )


Backend = Annotated[OpenAIBackend | PythonBackend, Field(discriminator="type")]


class Sampling(Part):
    """How an expert samples: temperature 0 is greedy; `max_tokens` bounds one reply."""

    temperature: float = Field(default=0.0, ge=0)
    top_p: float = Field(default=1.0, gt=0, le=1)
    max_tokens: int = Field(default=512, ge=1)


class Limits(Part):
    """What one call may use: tokens, images, seconds, calls at once, bytes of the reply's body."""

    context_tokens: int = Field(default=8192, ge=1)
    max_images: int = Field(default=1, ge=0)
    max_output_tokens: int = Field(default=1024, ge=1)
    timeout_s: float = Field(default=60.0, gt=0)
    max_concurrency: int = Field(default=8, ge=1)
    max_reply_bytes: int = Field(default=262_144, ge=1)

    @model_validator(mode="after")
    def _fits(self) -> Limits:
        if self.max_output_tokens >= self.context_tokens:
            raise ValueError(
                f"max_output_tokens ({self.max_output_tokens}) leaves no room for a prompt "
                f"within context_tokens ({self.context_tokens})"
            )
        return self


class Price(Part):
    """Money per million tokens; 0 for models of one's own."""

    input_per_mtok: float = Field(default=0.0, ge=0)
    output_per_mtok: float = Field(default=0.0, ge=0)


class Expert(Part):
    """A frozen model or program that answers questions about images.

    `revision` and `deterministic` govern caching: only deterministic experts' replies are kept, per
    revision.
    """

    name: Name
    aliases: tuple[Name, ...] = ()
    description: Description
    backend: Backend
    sampling: Sampling = Sampling()
    limits: Limits = Limits()
    parameters_b: MaybeNumber = None
    price: Price = Price()
    revision: Text = "1"
    deterministic: bool = False


class Tool(Part):
    """A fixed perception step (reading text, boxes, a crop) that procedures use by name."""

    name: Name
    aliases: tuple[Name, ...] = ()
    description: Description
    backend: Backend
    limits: Limits = Limits()
    revision: Text = "1"
    deterministic: bool = True


class Step(Part):
    """One step of a procedure: use a tool, or ask the expert that the policy chose.

    `ask`, `system` and the values of `args` are Jinja2 templates, `when` is a Jinja2 expression. `images`
    names the pictures that go along; None means the question's own. `save` names the result for later
    steps.
    """

    tool: MaybeText = None
    ask: MaybeText = None
    when: MaybeText = None
    save: MaybeText = None
    args: Annotated[dict[str, str], AfterValidator(_arguments)] = Field(default_factory=lambda: freeze({}))
    images: tuple[str, ...] | None = None
    system: MaybeText = None

    @model_validator(mode="after")
    def _one_kind(self) -> Step:
        if (self.tool is None) == (self.ask is None):
            raise ValueError("a step has exactly one of 'tool' and 'ask'")
        if self.tool is None and self.args:
            raise ValueError("'args' belong to a tool step; write the text into 'ask'")
        if self.tool is not None and self.system is not None:
            raise ValueError("'system' belongs to an ask step")
        return self


class Repair(Part):
    """A bounded loop after the steps: while `when` holds, at most `rounds` times, run `steps`."""

    when: Text
    rounds: int = Field(ge=1, le=5)
    steps: tuple[Step, ...] = Field(min_length=1)


class Procedure(Part):
    """How a subskill works. `answer` is a template; without it the answer is the text of the last ask."""

    steps: tuple[Step, ...] = Field(min_length=1)
    repair: Annotated[Repair | None, BeforeValidator(_unset)] = None
    answer: MaybeText = None


class Subskill(Part):
    """A Level-2 skill: keywords that lead to it, and its procedure."""

    name: Name
    aliases: tuple[Name, ...] = ()
    description: Description
    keywords: tuple[Text, ...] = ()
    procedure: Procedure


class Skill(Part):
    """A Level-1 skill: what the policy names. `routing` says how the subskill is chosen.

    `keyword`: by the question's words; `classify`: the expert is asked; `auto`: keywords first, then the
    expert. In doubt the `default` subskill is taken (when not given: the first).
    """

    name: Name
    aliases: tuple[Name, ...] = ()
    description: Description
    routing: Literal["auto", "keyword", "classify"] = "auto"
    default: MaybeText = None
    subskills: tuple[Subskill, ...] = Field(min_length=1)

    def default_subskill(self) -> Subskill:
        """The subskill taken in doubt."""
        found = None if self.default is None else self.find(self.default)
        return self.subskills[0] if found is None else found

    def find(self, name: str) -> Subskill | None:
        """The subskill of that name or alias after normalisation, or None."""
        wanted = normalise(name)
        for subskill in self.subskills:
            if wanted in map(normalise, (subskill.name, *subskill.aliases)):
                return subskill
        return None
