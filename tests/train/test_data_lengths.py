"""Token counts without pixels are those of the prompts that training encodes."""

from __future__ import annotations

from pathlib import Path

import pytest

from experts.images import load_picture
from orchestrator.encoding import PromptEncoder
from orchestrator.task import Task
from registry.errors import UserFault
from tests.train.made_mixture import photo
from train.data.lengths import load_lengths
from train.data.row import MixtureRow


def test_a_prompt_is_as_long_as_the_one_that_training_encodes(tiny_policy: Path) -> None:
    lengths = load_lengths(str(tiny_policy), "You delegate.")
    pictures = tuple(load_picture(photo(i, size)) for i, size in enumerate([(96, 64), (300, 41)]))
    row = MixtureRow("r", "chartqa", "How many circles <image> are there?", (), "2", ("1", "2"), "", "train", {})
    task = Task("r", "chartqa", "", row.question, pictures, "2", row.choices)
    measured = lengths.measure(row, [(p.width, p.height) for p in pictures])
    encoder = PromptEncoder(lengths._processor)
    assert measured.total == len(encoder.prompt_ids(task, "You delegate."))
    assert len(measured.images) == 2
    assert min(measured.images) >= 1


def test_a_folder_without_a_processor_is_one_message(tmp_path: Path) -> None:
    with pytest.raises(UserFault, match="no processor that counts text and pictures") as fault:
        load_lengths(str(tmp_path), None)
    assert fault.value.where == f"processor: {tmp_path}"
