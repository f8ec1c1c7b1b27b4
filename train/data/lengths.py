"""How many tokens a prompt takes, by the policy's own processor.

The one idea: the text is rendered by the chat template and counted by the tokenizer; what a picture takes follows from
its size alone, by the processor's own arithmetic, so no pixel is touched.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experts.images import Picture
from orchestrator.prompt import messages
from orchestrator.task import Task
from registry.errors import UserFault
from train.data.row import MixtureRow

_DESCRIBED_BY = ("preprocessor_config.json", "processor_config.json")


@dataclass(frozen=True)
class Length:
    """Tokens of a prompt. images: of each picture; text: all the rest, system prompt and template included."""

    text: int
    images: tuple[int, ...]

    @property
    def total(self) -> int:
        return self.text + sum(self.images)


class PromptLengths:
    """Measures rows as `orchestrator.encoding.PromptEncoder` encodes them."""

    def __init__(self, processor: Any, system: str | None) -> None:
        self._processor, self._system = processor, system
        self._merge = int(processor.image_processor.merge_size) ** 2

    def measure(self, row: MixtureRow, sizes: Sequence[tuple[int, int]]) -> Length:
        """sizes: (width, height) of each picture."""
        shown = tuple(Picture(b"", width, height, "", row.id) for width, height in sizes)
        task = Task(row.id, row.benchmark, row.group, row.question, shown, None, row.choices)
        text = self._processor.apply_chat_template(
            messages(task, system=self._system), tokenize=False, add_generation_prompt=True
        )
        ids = self._processor.tokenizer.encode(text, add_special_tokens=False)
        count = self._processor.image_processor.get_number_of_image_patches
        images = tuple(int(count(height, width, {})) // self._merge for width, height in sizes)
        return Length(len(ids) - len(sizes), images)  # the template writes one placeholder a picture


def load_lengths(name: str, system: str | None) -> PromptLengths:
    """The processor of a folder or hub id. Raises UserFault where it can't be loaded or can't count pictures."""
    folder = Path(name)
    if (folder.is_dir() or folder.is_absolute()) and not any((folder / file).is_file() for file in _DESCRIBED_BY):
        raise _unfit(name, f"no {' or '.join(_DESCRIBED_BY)}")
    from transformers import AutoProcessor

    try:
        processor = AutoProcessor.from_pretrained(name, trust_remote_code=False)
        processor.image_processor.get_number_of_image_patches(64, 64, {})
        processor.tokenizer.encode("")
    except Exception as error:  # the library and those below it raise as they like
        said = " ".join(str(error).split())[:300] or type(error).__name__
        raise _unfit(name, said) from error
    return PromptLengths(processor, system)


def _unfit(name: str, why: str) -> UserFault:
    return UserFault(
        f"no processor that counts text and pictures: {why}",
        where=f"processor: {name}",
        fix="give the policy's folder or hub id, or leave `processor` out",
    )
