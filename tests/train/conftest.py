"""A small tokenizer and processor of the tiny policy, a stage for its rollouts, and a maker of rollout records."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from PIL import Image

from experts.images import Picture, load_picture
from train.rollout_log import RolloutRecord
from train.tiny.model import TinyShape, build_tiny_policy
from train.tiny.tokenizer import build_tokenizer

if TYPE_CHECKING:
    from tests.train.rollout_stage import Stage

TEXTS = ("How many circles are there?", "Which bar is the highest?", " 12 ", " Kalomi ", "a bar chart")


@pytest.fixture(scope="session")
def tiny_tokenizer() -> Any:
    return build_tokenizer(TEXTS, ["Counter", "Chart-Reader"], ["Counting_Skill", "Chart_Skill"], 320)


@pytest.fixture(scope="session")
def tiny_policy(tiny_tokenizer: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tiny") / "policy"
    shape = TinyShape(hidden=64, intermediate=64, layers=1, heads=2, vision_hidden=32, vision_depth=1)
    build_tiny_policy(folder, tiny_tokenizer, 0, shape)
    return folder


@pytest.fixture(scope="session")
def picture() -> Picture:
    return load_picture(Image.new("RGB", (96, 64), (200, 30, 30)))


@pytest.fixture
def record_of() -> Callable[..., RolloutRecord]:
    """A valid, right rollout of step 1; any field can be given."""

    def _record(**fields: Any) -> RolloutRecord:
        usual: dict[str, Any] = {
            "step": 1, "attempt": 1, "split": "train", "row": "r1", "index": 0, "sample": 0, "group": "bars", "seed": 7,
            "valid": True, "reward": 1.0, "answer": 1.0, "format": 0.0, "stop": "answered", "pairs": ("A@@S",),
            "copied": 1, "calls": 1, "malformed": 0, "policy_tokens": 20,
        }  # fmt: skip
        return RolloutRecord(**usual | fields)

    return _record


@pytest.fixture(scope="module")
def processor(tiny_policy: Path) -> Any:
    from verl.utils import hf_processor

    return hf_processor(str(tiny_policy))


@pytest.fixture
def stage_of(tmp_path: Path, processor: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Stage]]:
    """Makes a stage; its words are keys of the protocol."""
    from tests.train.rollout_stage import PROGRAM, REGISTRY, Stage

    module = f"program_{tmp_path.name}"
    (tmp_path / f"{module}.py").write_text(PROGRAM.replace("DOWN", str(tmp_path / "down")))
    (tmp_path / "registry.yaml").write_text(REGISTRY.replace("MODULE", module))
    monkeypatch.syspath_prepend(str(tmp_path))
    yield lambda **protocol: Stage(tmp_path / "run", processor, tmp_path / "registry.yaml", protocol)
    sys.modules.pop(module, None)


@pytest.fixture
def stage(stage_of: Callable[..., Stage]) -> Stage:
    return stage_of()
