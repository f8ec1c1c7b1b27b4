"""Step records as TensorBoard scalars."""

from __future__ import annotations

from pathlib import Path
from typing import Any


class StepWriter:
    """Writes every number of a step record; nested records become `name/sub`."""

    def __init__(self, folder: Path) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self._writer = SummaryWriter(str(folder))

    def write(self, record: dict[str, Any]) -> None:
        self._scalars("", {k: v for k, v in record.items() if k not in ("step", "pairs")}, record["step"])
        total = max(1, sum(record.get("pairs", {}).values()))
        self._scalars("pairs/", {k: v / total for k, v in record.get("pairs", {}).items()}, record["step"])

    def _scalars(self, prefix: str, values: dict[str, Any], step: int) -> None:
        for key, value in values.items():
            if isinstance(value, dict):
                self._scalars(f"{prefix}{key}/", value, step)
            elif isinstance(value, int | float) and value is not None:
                self._writer.add_scalar(prefix + key, value, step)

    def close(self) -> None:
        self._writer.close()
