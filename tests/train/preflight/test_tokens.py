"""The preflight of special tokens: none is kept that stands for pixels, none can be written by foreign text."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from registry.errors import UserFault
from train.config import TrainConfig
from train.preflight.site import Site
from train.preflight.tokens import check, check_sampled, check_written, pictures_of


def test_the_tiny_policys_picture_tokens_are_refused_and_foreign_text_cannot_write_any(tiny_policy: Path) -> None:
    said = check(Site(TrainConfig.model_validate({"policy": str(tiny_policy)})))
    assert said == (
        "4 ids stand for pictures: a rollout that samples one is left out; 8 special tokens cannot be written by "
        "questions and replies"
    )


def test_an_id_that_the_model_reads_as_a_picture_and_the_rollout_would_keep_is_refused(
    tiny_tokenizer: Any, tmp_path: Path
) -> None:
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"image_token_id": 6, "video_token_id": 77, "vision_start_token_id": None}))
    assert pictures_of(config) == {"image_token_id": 6, "video_token_id": 77}
    with pytest.raises(UserFault, match="keep ids that the model reads as pictures: video_token_id 77"):
        check_sampled(pictures_of(config), frozenset({6}), (2,), tiny_tokenizer)


def test_a_turn_without_an_end_is_refused(tiny_tokenizer: Any) -> None:
    endless = copy.deepcopy(tiny_tokenizer)
    endless.eos_token = None
    with pytest.raises(UserFault, match="names no end of a turn"):
        check_sampled({}, frozenset({6}), (2,), endless)


def test_an_id_that_is_a_picture_and_the_end_of_a_turn_is_refused(tiny_tokenizer: Any) -> None:
    end = tiny_tokenizer.eos_token_id
    with pytest.raises(UserFault, match="stand for pictures and end a turn"):
        check_sampled({"image_token_id": end}, frozenset({end}), (end,), tiny_tokenizer)


def test_a_special_token_in_plain_letters_is_refused(tiny_tokenizer: Any) -> None:
    plain = copy.deepcopy(tiny_tokenizer)
    plain.add_special_tokens({"additional_special_tokens": ["ENDOFTURN"]})
    with pytest.raises(UserFault, match="'ENDOFTURN' can be written by questions and replies"):
        check_written(plain)


def test_a_config_that_is_no_json_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(UserFault, match="the model's config cannot be read"):
        pictures_of(tmp_path / "config.json")
