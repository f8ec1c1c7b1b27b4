"""The training config: strict, and clear about what is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import BaseModel

from registry.errors import UserFault
from train.config import TrainConfig, describe, load_config

EMBEDDED = Path(__file__).parents[2] / "configs" / "train" / "embedded.yaml"


@pytest.fixture
def written(tmp_path: Path):
    def _write(text: str) -> Path:
        path = tmp_path / "train.yaml"
        path.write_text(text, encoding="utf-8")
        return path

    return _write


def fault_of(path: Path, *overrides: str) -> str:
    with pytest.raises(UserFault) as caught:
        load_config(path, overrides)
    return str(caught.value)


def test_the_embedded_config_loads() -> None:
    config = load_config(EMBEDDED)
    assert (config.platform, config.grpo.samples, config.protocol.horizon) == ("cpu", 8, 4)


def test_overrides_reach_nested_keys_and_keep_types(written) -> None:
    path = written("name: a\ngrpo:\n")
    config = load_config(path, ["grpo.steps=3", "grpo.rate=1e-5", "seed=4", "registry=[a.yaml, b]", "resume=never"])
    assert (config.grpo.steps, config.grpo.rate, config.seed) == (3, 1e-5, 4)
    assert (config.registry, config.resume) == (("a.yaml", "b"), "never")


def test_verls_own_keys_keep_their_dots(written) -> None:
    config = load_config(written("verl: {trainer.nnodes: 2}"), ["verl.trainer.logger=[console]", "verl.+a.b=1.5"])
    assert config.verl == {"trainer.nnodes": 2, "trainer.logger": ["console"], "+a.b": 1.5}


def test_an_empty_file_is_the_default_run(written) -> None:
    assert load_config(written("")) == TrainConfig.model_validate({})


def test_an_unknown_key_is_refused_with_the_nearest_one(written) -> None:
    assert fault_of(written("grpo:\n  setps: 3\n")).startswith("grpo.setps: unknown key (did you mean 'steps'?)")
    assert "protocl: unknown key (did you mean 'protocol'?)" in fault_of(written("protocl: {}\n"))
    assert "grpo.promts: unknown key (did you mean 'prompts'?)" in fault_of(written(""), "grpo.promts=3")


def test_all_faults_are_told_at_once_with_the_file(written) -> None:
    path = written("seed: -1\ngrpo: {samples: 1}\n")
    text = fault_of(path)
    assert "seed: Input should be greater than or equal to 0" in text
    assert "grpo.samples: Input should be greater than or equal to 2" in text  # a group of one has no baseline
    assert f"where: {path}" in text


@pytest.mark.parametrize(
    ("override", "says"),
    [
        ("grpo.steps", "override 'grpo.steps' is not key=value"),
        ("=3", "override '=3' is not key=value"),
        ("seed.sub=3", "override 'seed.sub=3': 'seed' holds a value, not a section"),
        ("grpo.steps=[", "override 'grpo.steps=[': the value is not valid YAML"),
        ("verl.trainer.logger=[", "override 'verl.trainer.logger=[': the value is not valid YAML"),
        ("grpo.steps=many", "grpo.steps: Input should be a valid integer"),
    ],
)
def test_a_bad_override_is_named(written, override: str, says: str) -> None:
    assert says in fault_of(written("seed: 0"), override)


def test_verl_settings_that_are_no_mapping_are_refused(written) -> None:
    assert "'verl' holds a value, not a section" in fault_of(written("verl: 3"), "verl.a.b=1")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("seed: 1\nseed: 2\n", "train.yaml:2: "),
        ("grpo:\n\tsteps: 3\n", "train.yaml:2: "),
        ("grpo: {steps: 3\n", "not a valid config"),
        ("- a\n- b\n", "the config must be a mapping of keys to values"),
    ],
    ids=["repeated key", "tab", "open brace", "a list"],
)
def test_faulty_yaml_is_refused_with_its_place(written, text: str, says: str) -> None:
    assert says in fault_of(written(text))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    assert fault_of(tmp_path / "no.yaml").startswith("cannot read the config: No such file or directory")


def test_lengths_that_cannot_hold_together_are_refused_with_the_sum(written) -> None:
    path = written("protocol: {max_turn_tokens: 100, max_observation_tokens: 80, max_trajectory_tokens: 160}")
    assert (
        "one turn (100), one observation (80) and a token to go on with make 181 tokens, "
        "more than max_trajectory_tokens (160)" in fault_of(path)
    )


def test_a_turn_and_an_observation_need_one_token_more_to_go_on(written) -> None:
    lengths = "max_turn_tokens: 100, max_observation_tokens: 60"
    assert "161" in fault_of(written(f"protocol: {{{lengths}, max_trajectory_tokens: 160}}"))
    load_config(written(f"protocol: {{{lengths}, max_trajectory_tokens: 161}}"))


def test_fewer_rows_than_one_step_needs_are_refused_with_both_numbers(written) -> None:
    text = fault_of(written("data: {train_rows: 8}"), "grpo.prompts=16")
    assert "train_rows (8) must hold at least one step of grpo.prompts (16)" in text
    load_config(written("data: {train_rows: 8, train_files: [rows.parquet]}"))


def test_describe_lists_every_key_once_with_a_meaning() -> None:
    def keys(model: type[BaseModel], prefix: str = "") -> list[str]:
        found = []
        for name, field in model.model_fields.items():
            inner = field.annotation
            if isinstance(inner, type) and issubclass(inner, BaseModel):
                found += keys(inner, f"{prefix}{name}.")
            else:
                found.append(prefix + name)
        return found

    rows = describe(TrainConfig.model_validate({}))
    assert [key for key, _, _ in rows] == keys(TrainConfig)
    assert all(meaning for _, _, meaning in rows)
    meaning = "auto: go on from the newest checkpoint; never: begin anew; or a folder: begin from another run's"
    assert ("resume", "auto", meaning) in rows
    assert ("grpo.samples", "8", "trajectories a prompt: the group size G") in rows


@pytest.mark.parametrize("value", ["[" * 20_000, "2024-99-99", "!!timestamp x", "!!int x", "{[1]: 2}", "[1"])
def test_an_override_that_is_no_yaml_is_refused(written, value: str) -> None:
    assert "the value is not valid YAML" in fault_of(written(""), f"name={value}")


def test_an_endless_config_is_refused() -> None:
    assert "the config is larger than 4194304 bytes" in fault_of(Path("/dev/zero"))
