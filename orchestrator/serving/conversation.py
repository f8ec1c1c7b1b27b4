"""A chat completion request, read: the conversation so far and the tools that may be called.

The one idea: everything here comes from outside and is checked once, here; behind this border a `Conversation`
holds plain bounded values. What would change the meaning of a reply and is not supported is refused by name;
settings of sampling are accepted and have no effect, because harnesses send them to every model.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from experts.images import ImageFault, Picture, load_picture
from orchestrator.serving.limits import ServingLimits

ROLES = ("system", "developer", "user", "assistant", "tool")
_LONGEST_NAME = 128  # characters of a tool's name


class RequestFault(Exception):
    """A request that cannot be taken; `param` is the field, `code` one of OpenAI's."""

    def __init__(
        self, message: str, param: str | None = None, code: str = "invalid_request", status: int = 400
    ) -> None:
        super().__init__(message)
        self.message, self.param, self.code, self.status = message, param, code, status


@dataclass(frozen=True)
class Message:
    """One message. calls: an assistant's, as {"name", "arguments"} with the arguments' JSON text as it came.
    call_id: which call a tool's message answers. pictures: how many images it holds."""

    role: str
    text: str
    calls: tuple[Mapping[str, str], ...] = ()
    call_id: str = ""
    pictures: int = 0


@dataclass(frozen=True)
class ToolSpec:
    """A function that may be called; `parameters` is its JSON schema as it came."""

    name: str
    description: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True)
class Conversation:
    """A request that was taken. choice: `auto`, `none`, `required`, or the name of the one tool to call.
    parallel: several calls in one step are wanted. seed: the request's own. digest: hex, of all of it but the seed."""

    model: str
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...]
    choice: str
    parallel: bool
    seed: int | None
    digest: str
    pictures: tuple[Picture, ...] = field(default=(), repr=False)

    @property
    def callable_tools(self) -> tuple[ToolSpec, ...]:
        """The tools of which a call may come back now."""
        return () if self.choice == "none" else self.tools


def read_body(body: bytes) -> dict[str, Any]:
    """The JSON object of a request's body. Raises RequestFault."""
    try:
        data = json.loads(body, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise RequestFault(f"the body is not JSON: {str(error)[:200]}") from None
    if not isinstance(data, dict):
        raise RequestFault("the body must be a JSON object")
    return data


def read_conversation(data: Mapping[str, Any], limits: ServingLimits) -> Conversation:
    """The request as a Conversation. Decodes its pictures, so call it in a thread. Raises RequestFault."""
    _refuse(data)
    raw = _list(data.get("messages"), "messages", limits.messages)
    if not raw:
        raise RequestFault("messages is empty", "messages")
    pictures: list[Picture] = []
    messages = tuple(_message(item, f"messages[{i}]", pictures, limits) for i, item in enumerate(raw))
    raw_tools = _list(data.get("tools"), "tools", limits.tools)
    tools = tuple(_tool(item, f"tools[{i}]") for i, item in enumerate(raw_tools))
    names = [tool.name for tool in tools]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise RequestFault(f"two tools have the name {twice[0]!r}", "tools")
    seed = data.get("seed")
    if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int) or not -(2**63) <= seed < 2**63):
        raise RequestFault("seed must be a whole number of 64 bits", "seed")
    choice, parallel = _choice(data.get("tool_choice"), names), data.get("parallel_tool_calls") is not False
    content = [raw, raw_tools, choice, parallel]
    digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
    return Conversation(
        _text(data.get("model"), "model"), messages, tools, choice, parallel, seed, digest, tuple(pictures)
    )


def _refuse(data: Mapping[str, Any]) -> None:
    """Raises RequestFault for what is not supported and would change the reply's meaning."""
    if data.get("stream"):
        raise RequestFault("streaming is not supported; send the request without `stream`", "stream", "unsupported")
    if data.get("n") not in (None, 1):
        raise RequestFault("one choice a request; send it again with another `seed`", "n", "unsupported")
    for name in ("functions", "function_call", "logprobs", "audio"):
        if data.get(name):
            use = "; use `tools` and `tool_choice`" if name.startswith("function") else ""
            raise RequestFault(f"`{name}` is not supported{use}", name, "unsupported")
    form = data.get("response_format")
    if form is not None and (not isinstance(form, dict) or form.get("type") != "text"):
        raise RequestFault("only the response format `text` is supported", "response_format", "unsupported")


def _message(item: Any, where: str, pictures: list[Picture], limits: ServingLimits) -> Message:
    if not isinstance(item, dict) or item.get("role") not in ROLES:
        raise RequestFault(f"{where} needs a role, one of {', '.join(ROLES)}", where)
    role, before = item["role"], len(pictures)
    text = _content(item.get("content"), f"{where}.content", pictures, limits)
    calls: tuple[Mapping[str, str], ...] = ()
    if role == "assistant":
        raw = _list(item.get("tool_calls"), f"{where}.tool_calls", limits.tools)
        calls = tuple(_call(call, f"{where}.tool_calls[{i}]") for i, call in enumerate(raw))
    call_id = _text(item.get("tool_call_id") or "", f"{where}.tool_call_id") if role == "tool" else ""
    return Message(role, text, calls, call_id, len(pictures) - before)


def _content(content: Any, where: str, pictures: list[Picture], limits: ServingLimits) -> str:
    if content is None:
        return ""
    if isinstance(content, str):
        return _text(content, where)
    texts: list[str] = []
    for i, part in enumerate(_list(content, where, limits.messages)):
        kind = part.get("type") if isinstance(part, dict) else None
        if kind in ("text", "refusal"):
            texts.append(_text(part.get(kind), f"{where}[{i}].{kind}"))
        elif kind == "image_url":
            pictures.append(_picture(part.get("image_url"), f"{where}[{i}].image_url"))
            if len(pictures) > limits.pictures:
                raise RequestFault(f"more than {limits.pictures} pictures", where)
        else:
            raise RequestFault(f"{where}[{i}] must be a part of type text or image_url", where)
    return "\n".join(texts)


def _picture(value: Any, where: str) -> Picture:
    url = value.get("url") if isinstance(value, dict) else value
    if not isinstance(url, str) or not url[:5].lower() == "data:":
        raise RequestFault(f"{where} must be a data URL; addresses and paths are never fetched", where)
    try:
        return load_picture(url, where=where)
    except ImageFault as fault:
        raise RequestFault(str(fault), where) from None


def _call(item: Any, where: str) -> Mapping[str, str]:
    function = item.get("function") if isinstance(item, dict) else None
    if not isinstance(function, dict):
        raise RequestFault(f"{where} must be a function call", where)
    arguments = function.get("arguments")
    if not isinstance(arguments, str):  # some harnesses put the object itself
        arguments = json.dumps(arguments)
    return {
        "id": _text(item.get("id") or "", f"{where}.id"),
        "name": _text(function.get("name"), f"{where}.function.name"),
        "arguments": _text(arguments, f"{where}.function.arguments"),
    }


def _tool(item: Any, where: str) -> ToolSpec:
    function = item.get("function") if isinstance(item, dict) else None
    if not isinstance(function, dict) or item.get("type", "function") != "function":
        raise RequestFault(f"{where} must be of type function", where, "unsupported")
    name = _text(function.get("name"), f"{where}.function.name").strip()
    if not 0 < len(name) <= _LONGEST_NAME or not name.isprintable():
        raise RequestFault(
            f"{where}.function.name must have 1 to {_LONGEST_NAME} printable characters", f"{where}.function.name"
        )
    parameters = function.get("parameters") or {}
    if not isinstance(parameters, dict):
        raise RequestFault(f"{where}.function.parameters must be a JSON schema, an object", where)
    return ToolSpec(name, _text(function.get("description") or "", f"{where}.function.description"), parameters)


def _choice(value: Any, names: list[str]) -> str:
    if value is None:
        return "auto"
    if isinstance(value, str) and value in ("auto", "none", "required"):
        return value
    function = value.get("function") if isinstance(value, dict) else None
    name = function.get("name") if isinstance(function, dict) else None
    if not isinstance(name, str) or name not in names:
        raise RequestFault("tool_choice must be auto, none, required, or name one of the tools", "tool_choice")
    return name


def _list(value: Any, where: str, most: int) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise RequestFault(f"{where} must be a list", where)
    if len(value) > most:
        raise RequestFault(f"{where} holds {len(value)} items, at most {most} are taken", where)
    return value


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str):
        raise RequestFault(f"{where} must be a text", where)
    return value.encode("utf-8", "replace").decode("utf-8")  # lone surrogates break servers


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON number")
