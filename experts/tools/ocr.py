"""Tool `ocr`: the texts in a picture with their boxes, read by RapidOCR on one thread.

The models come with the package, so nothing is downloaded. The engine is made on first use; results are
kept in memory by the picture's content.
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from typing import Any

import numpy as np

from experts.images import Picture
from experts.tools.result import ToolResult


class OcrTool:
    """Reads texts. Safe to call from several threads: one reads at a time, and no picture is read twice.

    detect_side: pictures whose shorter side has fewer pixels are enlarged to this for finding text; larger
    costs time, smaller loses small print. longest_side: larger pictures are shrunk. least_score: texts
    read with less confidence are left out. keep: results remembered.
    """

    def __init__(
        self, *, detect_side: int = 352, longest_side: int = 1280, least_score: float = 0.4, keep: int = 4096
    ) -> None:
        self._detect_side = int(detect_side)
        self._longest_side = int(longest_side)
        self._least_score = float(least_score)
        self._keep = int(keep)
        self._engine: Any = None
        self._known: OrderedDict[str, ToolResult] = OrderedDict()
        self._lock = threading.Lock()

    def run(self, picture: Picture, **args: str) -> ToolResult:
        """text: lines from top to bottom. data: for each its {"text", "score", "box": [x0, y0, x1, y1]}."""
        with self._lock:
            known = self._known.get(picture.sha256)
            if known is None:
                known = self._known[picture.sha256] = self._read(picture.rgb())
                if len(self._known) > self._keep:
                    self._known.popitem(last=False)
            else:
                self._known.move_to_end(picture.sha256)
            return known

    def _read(self, rgb: np.ndarray) -> ToolResult:
        if self._engine is None:
            self._engine = _make_engine(self._detect_side, self._longest_side)
        found = self._engine(np.ascontiguousarray(rgb[..., ::-1]), use_cls=False)
        boxes = () if found.boxes is None else found.boxes
        entries = [
            _entry(text, score, corners)
            for corners, text, score in zip(boxes, found.txts or (), found.scores or (), strict=True)
            if text.strip() and score >= self._least_score
        ]
        entries.sort(key=lambda entry: (round(entry["box"][1] / 8), entry["box"][0]))
        return ToolResult(text="\n".join(entry["text"] for entry in entries), data=entries)


def _entry(text: str, score: float, corners: Any) -> dict[str, Any]:
    points = np.asarray(corners, float)
    (x0, y0), (x1, y1) = points.min(axis=0), points.max(axis=0)
    box = [round(float(value), 1) for value in (x0, y0, x1, y1)]
    return {"text": text.strip(), "score": round(float(score), 3), "box": box}


def _make_engine(detect_side: int, longest_side: int) -> Any:
    from rapidocr import RapidOCR

    logging.getLogger("RapidOCR").setLevel(logging.ERROR)
    return RapidOCR(
        params={
            "Global.log_level": "error",
            "Global.max_side_len": longest_side,
            "Global.use_cls": False,
            "Global.text_score": 0.0,
            "EngineConfig.onnxruntime.intra_op_num_threads": 1,
            "EngineConfig.onnxruntime.inter_op_num_threads": 1,
            "Det.limit_type": "min",
            "Det.limit_side_len": detect_side,
            # Labels are short: narrow input for the reader saves two thirds of its time. Tight boxes keep
            # neighbouring labels apart.
            "Rec.rec_img_shape": [3, 48, 64],
            "Rec.rec_batch_num": 4,
        }
    )
