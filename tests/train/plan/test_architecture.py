"""Counts that follow from config.json alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from registry.errors import UserFault
from train.config import TrainConfig, load_config
from train.plan.find_model import architecture_of
from train.plan.tokens import image_tokens

EMBEDDED = Path(__file__).parents[3] / "configs" / "train" / "embedded.yaml"
QWEN = "Qwen/Qwen3-VL-4B-Thinking"


def _qwen(**changes):
    return architecture_of(TrainConfig(**{"policy": QWEN, **changes}))


def test_the_4b_policy_has_the_parameters_that_its_hub_page_states():
    shape = _qwen()
    assert shape.parameters == 4_437_815_808
    assert shape.text_parameters == 4_022_468_096  # Qwen3-4B
    assert shape.vision.parameters == 415_347_712
    assert shape.kv_per_token * 2 == 147_456  # 144 KiB a token in 16 bit


def test_the_tiny_policy_is_counted_as_its_saved_weights_are():
    assert architecture_of(load_config(EMBEDDED)).parameters == 1_241_536  # train.json of a run: "parameters"


def test_a_folder_that_is_not_downloaded_yet_is_known_by_its_name():
    assert _qwen(policy="models/Qwen3-VL-4B-Thinking").parameters == 4_437_815_808


def test_a_config_json_is_read_with_the_pixel_limits_beside_it(tmp_path: Path):
    text = dict(
        vocab_size=1000, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, head_dim=16,
    )  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps({"text_config": text, "tie_word_embeddings": False}))
    (tmp_path / "preprocessor_config.json").write_text('{"size": {"shortest_edge": 4096, "longest_edge": 262144}}')
    shape = architecture_of(TrainConfig(), str(tmp_path / "config.json"))
    # two vocabulary matrices, and per layer: q and o 64x64, k and v 64x32, three 64x128, norms 2x16 and 2x64
    assert shape.parameters == 2 * 64_000 + 2 * (8192 + 4096 + 24_576 + 32 + 128) + 64
    assert (shape.min_pixels, shape.max_pixels, shape.vision) == (4096, 262144, None)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "not JSON"),
        ("[]", "not a JSON object"),
        ('{"num_attention_heads": 4}', "hidden_size is missing"),
        ('{"num_attention_heads": 4, "hidden_size": "64"}', "hidden_size is '64', not a number"),
        ('{"text_config": {"num_experts": 8}}', "mixture of experts"),
    ],
)
def test_a_config_json_that_cannot_be_planned_is_refused(tmp_path: Path, text: str, said: str):
    path = tmp_path / "config.json"
    path.write_text(text)
    with pytest.raises(UserFault, match=said) as fault:
        architecture_of(TrainConfig(), str(path))
    assert str(path) in str(fault.value)


def test_an_unknown_policy_is_refused_with_the_way_to_name_its_config():
    with pytest.raises(UserFault, match=r"--model FOLDER/config\.json"):
        _qwen(policy="./nowhere/some-model")


def test_picture_tokens_are_patches_of_32_within_the_pixel_limits():
    shape = _qwen()
    assert image_tokens(1024, 768, shape) == 768  # 32 x 24
    assert image_tokens(1024, 768, shape, max_pixels=262_144) == 234  # 18 x 13
    assert image_tokens(100, 100, shape) == 64  # enlarged to 65,536 pixels
    assert image_tokens(8000, 6000, shape) == 16_170  # 147 x 110, below 16,777,216 pixels
