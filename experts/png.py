"""`bare_png`: an RGB PNG without what is not pixels, made from the file's own compressed data.

The one idea: a PNG that already holds plain RGB need not be compressed again, which is most of the cost of reading a
picture; copying its pixel chunks is enough, once they were seen to be whole.
"""

from __future__ import annotations

import struct
import zlib

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_HEADER = struct.Struct(">IIBBBBB")
_PLAIN = (8, 2, 0, 0, 0)  # 8 bit, RGB, the one compression, the one filter method, not interlaced


def bare_png(data: bytes) -> bytes | None:
    """IHDR, IDAT and IEND of `data`, in that order; None where it is no whole PNG of 8 bit RGB without interlace and
    without a transparent colour, or a checksum is wrong. What it compresses is not looked at."""
    if not data.startswith(_SIGNATURE):
        return None
    parts, kinds, at = [_SIGNATURE], [], len(_SIGNATURE)
    while at + 12 <= len(data):
        length, kind = int.from_bytes(data[at : at + 4], "big"), data[at + 4 : at + 8]
        end = at + 12 + length
        if end > len(data):
            return None
        if kind == b"tRNS":
            return None
        if kind in (b"IHDR", b"IDAT", b"IEND"):
            if zlib.crc32(memoryview(data)[at + 4 : end - 4]) != int.from_bytes(data[end - 4 : end], "big"):
                return None
            parts.append(data[at:end])
            kinds.append(kind)
        at = end
        if kind == b"IEND":
            break
    if kinds[:1] != [b"IHDR"] or kinds[-1:] != [b"IEND"] or set(kinds[1:-1]) != {b"IDAT"}:
        return None
    header = parts[1][8:-4]
    if len(header) != _HEADER.size or _HEADER.unpack(header)[2:] != _PLAIN:
        return None
    return b"".join(parts)
