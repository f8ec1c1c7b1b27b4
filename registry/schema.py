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
from registry.markers import CHAT_NAMES, INSTRUCTION_NAMES, PROTOCOL_NAMES
from registry.names import name_fault, normalise
from registry.scalars import Plain, lossless

_TARGET = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*(:[A-Za-z_]\w*)?|[A-Za-z_][\w.-]*")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_CONTROL_TEXT = re.compile(
    rf"</?\s*(?:{PROTOCOL_NAMES}|{CHAT_NAMES})\b[^>]*>|<\|[^|<>]*\|>|\[/?(?:{INSTRUCTION_NAMES})\]", re.IGNORECASE
)

_LAUNCHERS_OPTIONS = (
    "--model", "--served-model-name", "--host", "--port", "--uds", "--api-key", "--tensor-parallel-size", "-tp",
    "--max-model-len", "--gpu-memory-utilization", "--limit-mm-per-prompt", "--trust-remote-code",
    "--allowed-local-media-path", "--allowed-media-domains", "--config", "--disable-uvicorn-access-log",
)  # fmt: skip


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


def _extra_args(value: tuple[str, ...]) -> tuple[str, ...]:
    for word in value:
        option = re.split("[=.]", word, maxsplit=1)[0].replace("_", "-")
        # The start of an option's name may stand for it on a command line.
        if len(option) > 2 and any(known.startswith(option) for known in _LAUNCHERS_OPTIONS):
            raise ValueError(f"{option} is set by the launcher from the registry's own fields; leave it out")
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
    """How an expert samples: temperature 0 is greedy; `max_tokens` bounds one reply.

    reasoning_tail_chars: characters of the end of its reasoning that stand in for an answer it left empty; 0 leaves
    the reply empty.
    """

    temperature: float = Field(default=0.0, ge=0)
    top_p: float = Field(default=1.0, gt=0, le=1)
    max_tokens: int = Field(default=512, ge=1)
    # Left out of the content where it is off, so that registries without it keep their digests.
    reasoning_tail_chars: int = Field(default=0, ge=0, exclude_if=lambda value: value == 0)


class Limits(Part):
    """What one call may use: tokens, images, seconds, calls at once, bytes of the reply's body.

    hedge_after_s: seconds without an answer after which a second request goes to another replica; none is sent
    without it.
    """

    context_tokens: int = Field(default=8192, ge=1)
    max_images: int = Field(default=1, ge=0)
    max_output_tokens: int = Field(default=1024, ge=1)
    timeout_s: float = Field(default=60.0, gt=0)
    max_concurrency: int = Field(default=8, ge=1)
    max_reply_bytes: int = Field(default=262_144, ge=1)
    # Left out of the content where it is off, so that registries without it keep their digests.
    hedge_after_s: MaybeNumber = Field(default=None, exclude_if=lambda value: value is None)

    @model_validator(mode="after")
    def _fits(self) -> Limits:
        if self.hedge_after_s is not None and self.hedge_after_s >= self.timeout_s:
            raise ValueError(
                f"hedge_after_s ({self.hedge_after_s:g}) is not below timeout_s ({self.timeout_s:g}), "
                "so that no second request would ever be sent"
            )
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


class Serving(Part):
    """How a launcher serves a model with vLLM. Has no say in what is answered, and nothing here is needed.

    launch: `auto` starts a model whose replicas are on this machine (or not named), `always` also others.
    source: folder or hub id of the weights where it is not `backend.model`. replicas: copies to start.
    bytes_per_parameter: 2 is bfloat16. kv_kib_per_token: KiB of cache for one token over all layers.
    contexts: requests of full length whose cache must fit at once. gpu_memory_gb: GiB on each of its GPUs,
    in place of all these estimates. extra_args: words added to the command line of `vllm serve`.
    """

    launch: Literal["auto", "always", "never"] = "auto"
    source: MaybeText = None
    replicas: int = Field(default=1, ge=1, le=64)
    tensor_parallel: int = Field(default=1, ge=1, le=64)
    bytes_per_parameter: float = Field(default=2.0, gt=0, le=8)
    kv_kib_per_token: MaybeNumber = None
    contexts: float = Field(default=2.0, ge=1)
    gpu_memory_gb: MaybeNumber = None
    extra_args: Annotated[tuple[Text, ...], AfterValidator(_extra_args)] = ()


class Expert(Part):
    """A frozen model or program that answers questions about images.

    `revision` and `deterministic` govern caching: only deterministic experts' replies are kept, per
    revision. deadline_s: seconds for a whole delegation to it, all its calls included; callers may allow less.
    """

    name: Name
    aliases: tuple[Name, ...] = ()
    description: Description
    backend: Backend
    sampling: Sampling = Sampling()
    limits: Limits = Limits()
    parameters_b: MaybeNumber = None
    price: Price = Price()
    serving: Serving = Field(default=Serving(), exclude_if=lambda value: value == Serving())
    revision: Text = "1"
    deterministic: bool = False
    deadline_s: MaybeNumber = Field(default=None, exclude_if=lambda value: value is None)


class Resize(Part):
    """How a served model's processor resizes pictures: both sides become multiples of `factor` and their product
    stays within `min_pixels` and `max_pixels`. The defaults are those of Qwen2.5-VL checkpoints; a server that
    was started with other limits needs them written here as well."""

    factor: int = Field(default=28, ge=1, le=4096)
    min_pixels: int = Field(default=3136, ge=1)
    max_pixels: int = Field(default=12_845_056, ge=1)

    @model_validator(mode="after")
    def _a_range(self) -> Resize:
        if self.max_pixels < max(self.min_pixels, self.factor**2):
            raise ValueError(
                f"max_pixels ({self.max_pixels}) is less than min_pixels ({self.min_pixels}) or "
                f"factor x factor ({self.factor**2})"
            )
        return self


class Tool(Part):
    """A fixed perception step (reading text, boxes, a crop) that procedures use by name.

    What follows `deterministic` is for served tools alone. prompt: Jinja2 template of what the model is asked,
    in place of ours. reads: what its reply means, a text, boxes around things, or which part to enlarge.
    box_format: its coordinates are pixels, thousandths of the picture's sides (Qwen3-VL), or pixels of the
    picture after `resize` (Qwen2.5-VL). max_boxes: how many are kept. zoom_rounds: how often it may look closer.
    A program's results are kept unless `deterministic` is false, a served tool's only where it is true.
    """

    name: Name
    aliases: tuple[Name, ...] = ()
    description: Description
    backend: Backend
    limits: Limits = Limits()
    parameters_b: MaybeNumber = Field(default=None, exclude_if=lambda value: value is None)
    serving: Serving = Field(default=Serving(), exclude_if=lambda value: value == Serving())
    revision: Text = "1"
    deterministic: bool = True
    prompt: MaybeText = Field(default=None, exclude_if=lambda value: value is None)
    reads: Literal["text", "boxes", "zoom"] = Field(default="text", exclude_if=lambda value: value == "text")
    box_format: Literal["pixel", "norm1000", "resized"] = Field(
        default="pixel", exclude_if=lambda value: value == "pixel"
    )
    resize: Resize = Field(default=Resize(), exclude_if=lambda value: value == Resize())
    max_boxes: int = Field(default=200, ge=1, le=5000, exclude_if=lambda value: value == 200)
    zoom_rounds: int = Field(default=1, ge=1, le=5, exclude_if=lambda value: value == 1)

    @model_validator(mode="before")
    @classmethod
    def _servers_promise_nothing(cls, given: Any) -> Any:
        if not isinstance(given, dict) or "deterministic" in given:
            return given
        backend = given.get("backend")
        kind = backend.get("type") if isinstance(backend, dict) else getattr(backend, "type", None)
        return {**given, "deterministic": kind != "openai"}


class Step(Part):
    """One step of a procedure: use a tool, or ask the expert that the policy chose.

    `ask`, `system` and the values of `args` are Jinja2 templates, `when` is a Jinja2 expression. `images`
    names the pictures that go along; None means the question's own. `save` names the result for later
    steps. An `optional` tool may fail: its result is then empty, and the record of the call tells why.
    """

    tool: MaybeText = None
    ask: MaybeText = None
    when: MaybeText = None
    save: MaybeText = None
    args: Annotated[dict[str, str], AfterValidator(_arguments)] = Field(default_factory=lambda: freeze({}))
    images: tuple[str, ...] | None = None
    system: MaybeText = None
    optional: bool = False

    @model_validator(mode="after")
    def _one_kind(self) -> Step:
        if (self.tool is None) == (self.ask is None):
            raise ValueError("a step has exactly one of 'tool' and 'ask'")
        if self.tool is None and self.args:
            raise ValueError("'args' belong to a tool step; write the text into 'ask'")
        if self.tool is not None and self.system is not None:
            raise ValueError("'system' belongs to an ask step")
        if self.tool is None and self.optional:
            raise ValueError("'optional' belongs to a tool step; without the expert's reply there is no answer")
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
    expert. In doubt the `default` subskill is taken (when not given: the first). deadline_s: seconds for a whole
    delegation under it (the longer of its and the expert's counts); callers may allow less.
    """

    name: Name
    aliases: tuple[Name, ...] = ()
    description: Description
    routing: Literal["auto", "keyword", "classify"] = "auto"
    default: MaybeText = None
    subskills: tuple[Subskill, ...] = Field(min_length=1)
    deadline_s: MaybeNumber = Field(default=None, exclude_if=lambda value: value is None)

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
