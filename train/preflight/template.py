"""Whether tokenizer and chat template keep what an episode has said.

One idea: ids only grow. Inline observations need a template that renders the prompt and leaves the assistant's turn
open; as chat turns they need one whose own rendering of the whole talk is what was accumulated turn by turn, or whoever
renders it later shows the policy something that it was not trained on.
"""

from __future__ import annotations

from typing import Any

from orchestrator.turn_frame import frame_of
from registry.errors import UserFault
from train.preflight.site import Site

_QUESTION = "Which bar is the highest?"
_THOUGHTS = ("the chart shows towns", "the reply names one of them")
_CALLS = (
    "<search> Reader@@Chart_Skill: read the bars </search>",
    "<search> Reader@@Chart_Skill: read the highest </search>",
)
_REPLIES = ("<information> Kalomi 12, Sona 7 </information>", "<information> Kalomi: 12 Höhe, 左 </information>")
_INLINE = "set protocol.observations=inline, which never renders a turn again"


def check(site: Site) -> str:
    """Raises UserFault naming the first token that differs; NotYet before the tiny policy is built."""
    prompt = prompt_text(site.processor, site.system)
    check_tokenizer(site.processor.tokenizer)
    if site.config.protocol.observations == "inline":
        return "turns are appended as ids and never rendered again; the template leaves the assistant's turn open"
    check_turns(site.processor, site.processor.tokenizer, prompt)
    return "two turns with thoughts, rendered anew, are the ids that were accumulated"


def prompt_text(processor: Any, system: str | None) -> str:
    """The template's rendering of a question with one picture. Raises UserFault where it loses a part, or closes the
    assistant's turn."""
    chat = _prompt(system)
    text, again = (_render(processor, messages) for messages in (chat, [*chat, _message("assistant", "MAESTRO-TURN")]))
    lost = [name for name, part in (("question", _QUESTION), ("system prompt", system)) if part and part not in text]
    if lost:
        raise UserFault(f"the chat template drops the {' and the '.join(lost)}", fix="use the policy's own template")
    pictures = text.count(getattr(processor, "image_token", "<|image_pad|>"))
    if pictures != 1:
        raise UserFault(
            f"the chat template renders {pictures} image placeholders for one picture",
            fix="use a template for content parts of type image",
        )
    if _render(processor, chat, open_turn=False) == text:
        raise UserFault(
            "the chat template opens no assistant's turn (add_generation_prompt changes nothing)",
            fix="use the policy's own template",
        )
    if "MAESTRO-TURN" not in again:
        raise UserFault("the chat template drops the assistant's turn", fix="use the policy's own template")
    return text


def check_tokenizer(tokenizer: Any) -> None:
    """Ids of a piece are that piece, wherever it stands. Raises UserFault where encoding adds or loses something."""
    for piece in (*_CALLS, *_REPLIES, " 12", "\n"):
        ids = tokenizer.encode(piece, add_special_tokens=False)
        back = tokenizer.decode(ids, skip_special_tokens=False, clean_up_tokenization_spaces=False)
        # a closing tag may take the blank before it along
        if back.replace(" </", "</") != piece.replace(" </", "</"):
            raise UserFault(
                f"the tokenizer changes text: {piece!r} comes back as {back!r}",
                fix="use the tokenizer that belongs to the policy",
            )


def check_turns(processor: Any, tokenizer: Any, prompt: str) -> None:
    """Two turns with thoughts and observations as chat turns. Raises UserFault naming the first differing token."""
    frame = frame_of(processor)
    opened = prompt.rstrip().endswith("<think>")  # some templates begin the thought themselves
    chat, text = _prompt(None), _render(processor, _prompt(None))
    for number, (thought, call, reply) in enumerate(zip(_THOUGHTS, _CALLS, _REPLIES, strict=True), 1):
        whole = f"<think>\n{thought}\n</think>\n\n{call}"
        turn = whole.removeprefix("<think>\n") if opened else whole
        text += turn + frame.around(reply, turn)
        chat += [_message("assistant", whole), _message("user", reply)]
        rendered = _render(processor, chat)
        kept, anew = (tokenizer.encode(one, add_special_tokens=False) for one in (text, rendered))
        if kept == anew:
            continue
        at = next((n for n, (a, b) in enumerate(zip(kept, anew, strict=False)) if a != b), min(len(kept), len(anew)))
        dropped = [one for one in _THOUGHTS[:number] if one not in rendered]
        why = "the chat template drops earlier thinking" if dropped else "the chat template changes earlier turns"
        raise UserFault(
            f"{why}: after turn {number}, token {at} is {_shown(tokenizer, kept, at)} in the episode and "
            f"{_shown(tokenizer, anew, at)} in the template's rendering",
            where="chat template of the policy",
            fix=f"{_INLINE}, or use a template that keeps all turns",
        )


def _shown(tokenizer: Any, ids: list[int], at: int) -> str:
    return repr(tokenizer.decode(ids[at : at + 4])) if at < len(ids) else "the end"


def _render(processor: Any, chat: list[dict[str, Any]], *, open_turn: bool = True) -> str:
    try:
        return str(processor.apply_chat_template(chat, tokenize=False, add_generation_prompt=open_turn))
    except Exception as error:  # templates are programs of their authors
        raise UserFault(
            f"the chat template cannot render {'a talk' if len(chat) > 2 else 'a prompt'}: "
            f"{type(error).__name__}: {' '.join(str(error).split())[:300]}",
            where="chat template of the policy",
            fix="use the policy's own template",
        ) from error


def _prompt(system: str | None) -> list[dict[str, Any]]:
    head = [{"role": "system", "content": system}] if system else []
    return [*head, {"role": "user", "content": [{"type": "image"}, {"type": "text", "text": _QUESTION}]}]


def _message(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "content": [{"type": "text", "text": text}]}
