"""Are the weights of a Hugging Face folder all there: read from the files' headers, without torch."""

from __future__ import annotations

import json
import struct
from pathlib import Path

_MOST_HEADER_BYTES = 100 * 2**20  # the format's own limit


def broken(folder: Path) -> str:
    """What is wrong with the safetensors files of `folder`, in words; empty where all are whole."""
    files = sorted(folder.glob("*.safetensors"))
    if not files:
        return "it holds no safetensors weights"
    for file in files:
        expected = _expected_bytes(file)
        if expected is None:
            return f"{file.name} is no safetensors file"
        if file.stat().st_size != expected:
            return f"{file.name} is cut: {file.stat().st_size} of {expected} bytes"
    for index in folder.glob("*.safetensors.index.json"):
        try:
            wanted = set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values())
        except (ValueError, KeyError, TypeError, AttributeError):
            return f"{index.name} is broken"
        absent = sorted(wanted - {file.name for file in files})
        if absent:
            return f"{absent[0]} is missing, which {index.name} names"
    return ""


def parameters(folder: Path) -> int:
    """Numbers in all tensors of the folder's files (tied ones once)."""
    total = 0
    for file in folder.glob("*.safetensors"):
        for name, tensor in (_header(file) or {}).items():
            if name != "__metadata__":
                count = 1
                for size in tensor["shape"]:
                    count *= int(size)
                total += count
    return total


def _expected_bytes(file: Path) -> int | None:
    header = _header(file)
    if header is None:
        return None
    try:
        ends = [int(tensor["data_offsets"][1]) for name, tensor in header.items() if name != "__metadata__"]
    except (KeyError, TypeError, ValueError, IndexError):
        return None
    with file.open("rb") as stream:
        return 8 + struct.unpack("<Q", stream.read(8))[0] + max(ends, default=0)


def _header(file: Path) -> dict[str, dict] | None:
    with file.open("rb") as stream:
        head = stream.read(8)
        size = struct.unpack("<Q", head)[0] if len(head) == 8 else 0
        if not 0 < size <= _MOST_HEADER_BYTES:
            return None
        try:
            found = json.loads(stream.read(size))
        except ValueError:
            return None
    return found if isinstance(found, dict) else None
