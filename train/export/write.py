"""Writing the folder: weights, processor and card, complete or not at all."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

from registry.errors import UserFault
from train.best_policy import FILE as BEST
from train.export.choose import Choice
from train.export.weights import broken

_LEFT_OUT = ("*.safetensors*", "*.bin", "*.pth", "README.md", BEST, ".*")
_PATH_KEYS = ("_name_or_path", "name_or_path")


def refuse(choice: Choice, out: Path) -> None:
    """Raises UserFault where the policy is not whole, or something lies in `out` already."""
    fault = broken(choice.weights)
    if fault:
        raise UserFault(f"the policy is not whole: {fault}", where=str(choice.weights), fix="take another step")
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UserFault("the folder is not empty", where=str(out), fix="give another --out, or remove it")
    needed = sum(file.stat().st_size for file in choice.weights.glob("*.safetensors*"))
    free = shutil.disk_usage(_existing(out)).free
    if free < needed + 64 * 2**20:
        raise UserFault(
            f"the disk is too full: {needed / 2**30:.1f} GiB of weights, {free / 2**30:.1f} GiB free",
            where=str(out),
            fix="free some space, or give another --out",
        )


def write(choice: Choice, out: Path, card: str) -> None:
    """Write policy, processor and card (`README.md`) to `out`. Raises UserFault as `refuse`, OSError."""
    refuse(choice, out)
    out.parent.mkdir(parents=True, exist_ok=True)
    partial = out.with_name(f".{out.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    try:
        shutil.copytree(choice.processor, partial, ignore=shutil.ignore_patterns(*_LEFT_OUT))
        for file in choice.weights.glob("*.safetensors*"):
            shutil.copy2(file, partial / file.name)
        for file in partial.iterdir():
            if file.suffix == ".json":
                _without_paths(file)
            if file.is_file():
                file.chmod(0o644)  # verl writes weights for their owner alone
        (partial / "README.md").write_text(card, encoding="utf-8")
        if out.exists():
            out.rmdir()
        os.replace(partial, out)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise


def _without_paths(file: Path) -> None:
    """Libraries note the folder that a model was read from: it means nothing elsewhere."""
    if file.stat().st_size > 2**20:
        return  # weights' index, vocabulary
    try:
        raw = json.loads(file.read_text(encoding="utf-8"))
    except ValueError:
        return
    if isinstance(raw, dict) and any(key in raw for key in _PATH_KEYS):
        kept = {key: value for key, value in raw.items() if key not in _PATH_KEYS}
        file.write_text(json.dumps(kept, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _existing(path: Path) -> Path:
    """The nearest folder above that is there."""
    while not path.is_dir() and path != path.parent:
        path = path.parent
    return path
