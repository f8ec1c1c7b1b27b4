"""From a task to what a Hugging Face vision-language model reads: ids and pixels.

The one idea: there is one way from a question and its pictures to prompt ids. Training, cold start and in-process
evaluation all come through here, so a policy never meets a prompt that it was not trained on. Needs a transformers
processor, imports nothing heavy itself.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from experts.images import Picture
from orchestrator.prompt import messages
from orchestrator.task import Task


class ProcessorTokenizer:
    """A transformers tokenizer as `tokens.Tokenizer`: nothing added, nothing left out, nothing cleaned up."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer

    def encode(self, text: str) -> list[int]:
        return list(self._tokenizer.encode(text, add_special_tokens=False))

    def decode(self, ids: Sequence[int]) -> str:
        return self._tokenizer.decode(list(ids), skip_special_tokens=False, clean_up_tokenization_spaces=False)


@dataclass(frozen=True)
class EncodedPrompt:
    """ids: prompt ids, image placeholders expanded. images: the Pillow images, in order, for an engine."""

    ids: tuple[int, ...]
    images: tuple[Any, ...]


class PromptEncoder:
    """Encodes tasks with one processor; pixels are worked out once a picture."""

    def __init__(self, processor: Any, *, pictures_kept: int = 4096) -> None:
        self.processor = processor
        self.tokenizer = ProcessorTokenizer(processor.tokenizer)
        self._kept = pictures_kept
        self._vision: OrderedDict[str, Mapping[str, Any]] = OrderedDict()
        convert = processor.tokenizer.convert_tokens_to_ids
        self.image_token: str = processor.image_token
        self.image_token_id = int(convert(self.image_token))
        # Ids that stand for pixels: an engine must never sample them.
        names = (self.image_token, getattr(processor, "video_token", None))
        self.placeholder_ids = tuple(int(convert(name)) for name in names if name)
        ends = [convert("</search>"), convert("</answer>"), processor.tokenizer.eos_token_id]
        unknown = processor.tokenizer.unk_token_id
        # A tag that is no single token is found in the text instead (stop strings).
        self.stop_ids: tuple[int, ...] = tuple(int(i) for i in ends if i is not None and i != unknown)

    def vision(self, picture: Picture) -> Mapping[str, Any]:
        """`pixel_values` [patches, values] and `image_grid_thw` [1, 3] of a picture."""
        if picture.sha256 in self._vision:
            self._vision.move_to_end(picture.sha256)
            return self._vision[picture.sha256]
        vision = dict(self.processor.image_processor(images=[picture.pil()], return_tensors="pt"))
        self._vision[picture.sha256] = vision
        if len(self._vision) > self._kept:
            self._vision.popitem(last=False)
        return vision

    def encode_task(self, task: Task, system: str | None = None) -> EncodedPrompt:
        """The prompt of a task: its ids, and its images for an engine."""
        return EncodedPrompt(self.prompt_ids(task, system), tuple(p.pil() for p in task.pictures))

    def prompt_ids(self, task: Task, system: str | None = None) -> tuple[int, ...]:
        """Ids of chat template and generation prompt, with one run of placeholders a picture."""
        text: str = self.processor.apply_chat_template(
            messages(task, system=system), tokenize=False, add_generation_prompt=True
        )
        parts = text.split(self.image_token)
        if len(parts) != len(task.pictures) + 1:
            raise ValueError(
                f"row {task.row_id}: the chat template renders {len(parts) - 1} image placeholders for "
                f"{len(task.pictures)} pictures"
            )
        merge = int(self.processor.image_processor.merge_size) ** 2
        pieces = [parts[0]]
        for picture, rest in zip(task.pictures, parts[1:], strict=True):
            grid = self.vision(picture)["image_grid_thw"]
            pieces += [self.image_token * (int(grid.prod()) // merge), rest]
        return tuple(self.tokenizer.encode("".join(pieces)))
