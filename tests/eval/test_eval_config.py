"""The evaluation's configuration: strict, every fault named with its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from eval.config import load_eval_config
from eval.variants import budget_of, samples_of, variants
from registry.errors import UserFault

EMBEDDED = Path(__file__).parents[2] / "configs" / "eval" / "embedded.yaml"

SMALL = """\
benchmark: embedded
run: runs/x
rows: {test: 4, validation: 4}
policies:
  mine: {path: policy}
arms:
  after: {kind: policy, policy: mine}
  random: {kind: random_pair}
"""


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "eval.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_the_embedded_configuration_holds_every_arm_of_the_comparison() -> None:
    config = load_eval_config(EMBEDDED)
    kinds = [arm.kind for arm in config.arms.values()]
    assert list(config.arms)[:3] == ["before", "after", "direct"]
    assert {"policy", "direct", "random_pair", "best_single_pair", "keyword", "oracle"} <= set(kinds)
    assert (config.rows.test, config.rows.test_unseen) == (360, 120)


def test_an_override_replaces_one_value(tmp_path: Path) -> None:
    config = load_eval_config(
        write(tmp_path, SMALL), ["rows.test=60", "samples=4", "pass_at=[1,4]", "training=runs/demo"]
    )
    assert (config.rows.test, config.samples, config.pass_at) == (60, 4, (1, 4))
    assert config.checkpoint("mine") == Path("runs/demo/policy")


def test_an_unknown_key_is_refused_with_line_and_nearest_name(tmp_path: Path) -> None:
    path = write(tmp_path, SMALL + "sampels: 3\nbudget:\n  horizn: 2\n")
    with pytest.raises(UserFault) as caught:
        load_eval_config(path)
    text = str(caught.value)
    assert "2 faults" in text
    assert f"{path}:9: unknown key 'sampels' (did you mean 'samples'?)" in text
    assert f"{path}:11: unknown key 'budget.horizn' (did you mean 'horizon'?)" in text


def test_an_unknown_override_says_where_it_came_from(tmp_path: Path) -> None:
    with pytest.raises(UserFault, match=r"override rows\.tset=3: unknown key 'rows\.tset' \(did you mean 'test'\?\)"):
        load_eval_config(write(tmp_path, SMALL), ["rows.tset=3"])


def test_a_repeated_key_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserFault, match="repeated"):
        load_eval_config(write(tmp_path, SMALL + "seed: 1\nseed: 2\n"))


@pytest.mark.parametrize(
    ("override", "message"),
    [
        (
            "arms.after.policy=mina",
            "names the policy 'mina', which 'policies' does not hold; did you mean 'mine'",
        ),
        ('arms.random={"kind":"random_pair","policy":"mine"}', "takes no 'policy'"),
        ('arms.x={"kind":"policy"}', "needs 'policy'"),
        ("pass_at=[8]", "needs 1 <= k <= samples"),
        ('policies.mine={"server":"http://localhost:1"}', "needs 'model'"),
        ('policies.mine={"path":"a","server":"b"}', "give either"),
        ("rows.test=0", "greater than 0"),
        ("arms.after.temperatures=[1.0,1.0]", "different numbers"),
        ("seed", "not an override"),
    ],
)
def test_settings_that_cannot_work_are_refused(tmp_path: Path, override: str, message: str) -> None:
    with pytest.raises(UserFault) as caught:
        load_eval_config(write(tmp_path, SMALL), [override])
    assert message in str(caught.value)


def test_limits_that_contradict_each_other_are_refused_with_the_sum(tmp_path: Path) -> None:
    budget = "budget: {max_turn_tokens: 100, max_observation_tokens: 60, max_trajectory_tokens: 120}\n"
    with pytest.raises(UserFault, match=r"161 > max_trajectory_tokens 120"):
        load_eval_config(write(tmp_path, SMALL + budget))


def test_settings_that_change_no_result_are_not_part_of_the_identity(tmp_path: Path) -> None:
    path = write(tmp_path, SMALL)
    plain = load_eval_config(path).identity()
    assert (
        plain
        == load_eval_config(
            path, ["concurrency=1", "run=elsewhere", "cache=c", "deadlines.call_s=5", "endpoints=e.json"]
        ).identity()
    )
    assert plain != load_eval_config(path, ["seed=1"]).identity()


def test_every_temperature_of_an_arm_is_a_run_of_its_own(tmp_path: Path) -> None:
    config = load_eval_config(write(tmp_path, SMALL), ["arms.after.temperatures=[1.0,0.0,0.6]", "samples=3"])
    found = variants(config)
    assert [variant.key for variant in found] == ["after", "after/greedy", "after/t0.6", "random"]
    assert [samples_of(config, variant) for variant in found] == [3, 1, 3, 3]


def test_token_limits_bind_only_arms_that_have_tokens(tmp_path: Path) -> None:
    config = load_eval_config(write(tmp_path, SMALL), ["budget.max_turn_tokens=40", "budget.horizon=2"])
    after, *_, rule = variants(config)
    assert budget_of(config, after).max_turn_tokens == 40
    assert budget_of(config, rule).max_turn_tokens > 40
    assert budget_of(config, rule).horizon == 2
