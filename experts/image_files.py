"""Which files a picture may be read from.

The one idea: a path written in data (a dataset row, a request) reaches only files under the configured
roots, after links are followed; addresses of any kind (`http:`, `file:`) are never opened.
"""

from __future__ import annotations

import re
import stat
from collections.abc import Sequence
from pathlib import Path

from experts.data_url import shorten
from experts.image_limits import ImageFault

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_BASE64 = re.compile(r"[A-Za-z0-9+/\s]{64,}={0,2}\s*\Z")


def read_image_file(path: str | Path, *, roots: Sequence[Path], max_bytes: int, where: str | None) -> bytes:
    """The bytes of an image file.

    A relative path is looked for under each root in order, the first that holds it wins. A `Path` object is
    the caller's own choice and, when there are no roots, opened as it stands; a `str` comes from data and
    is not. Raises ImageFault for anything outside the roots, missing, not a regular file, empty or over
    `max_bytes`.
    """
    if isinstance(path, str):
        _check_text(path, where)
    name = shorten(str(path))
    try:
        found = _locate(Path(path), roots, trusted=isinstance(path, Path), where=where)
        info = found.stat()
        if not stat.S_ISREG(info.st_mode):
            fix = "give a file instead of a folder" if stat.S_ISDIR(info.st_mode) else "give a file with an image in it"
            raise ImageFault(f"not a regular file: {name}", where=where, fix=fix)
        if info.st_size > max_bytes:
            what = f"{name} has {info.st_size} bytes, the limit is {max_bytes}"
            raise ImageFault(what, where=where, fix="scale the image down")
        with found.open("rb") as file:
            return file.read(max_bytes + 1)
    except (OSError, ValueError, RuntimeError) as error:  # RuntimeError: a ring of links
        reason = getattr(error, "strerror", None) or error
        raise ImageFault(f"cannot read the image {name}: {reason}", where=where, fix="check the path") from None


def _check_text(text: str, where: str | None) -> None:
    if _SCHEME.match(text):
        raise ImageFault(
            f"image addresses are not opened: {shorten(text)}",
            where=where,
            fix="give a path under a configured image root, or a data:image/png;base64, URL",
        )
    if _BASE64.match(text) and len(text) > 200:
        raise ImageFault(
            f"base64 text without its head: {shorten(text, 40)}",
            where=where,
            fix="put data:image/png;base64, before it",
        )


def _locate(path: Path, roots: Sequence[Path], *, trusted: bool, where: str | None) -> Path:
    if not roots:
        if trusted:
            return path.resolve(strict=True)
        raise ImageFault(
            f"image paths are refused without a root folder: {shorten(str(path))}",
            where=where,
            fix="name the folder that holds the images as a root",
        )
    resolved_roots = [root.resolve() for root in roots]
    outside = False
    for root in resolved_roots:
        try:
            found = (root / path).resolve(strict=True)  # an absolute path stands for itself
        except (FileNotFoundError, NotADirectoryError):
            continue
        if any(found.is_relative_to(allowed) for allowed in resolved_roots):
            return found
        outside = True
    listed = ", ".join(str(root) for root in roots)
    if outside:
        raise ImageFault(
            f"image lies outside the root folders: {shorten(str(path))}", where=where, fix=f"roots: {listed}"
        )
    raise ImageFault(f"no such image: {shorten(str(path))}", where=where, fix=f"looked under: {listed}")
