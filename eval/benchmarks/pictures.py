"""The pictures of a row, whatever clothes they come in: encoded bytes, paths, base64 text, members of a zip file."""

from __future__ import annotations

import base64
import binascii
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from eval.benchmarks.fields import Record, is_there, read_field
from eval.benchmarks.listed import read_list
from eval.benchmarks.spec import Images
from experts.images import ImageFault, Picture, load_picture

_MAX_MEMBER_BYTES = 32 * 1024 * 1024
_MAX_PICTURES = 64


class Pictures:
    """Reads pictures as one benchmark's `images` says.

    folder: where relative paths start; None for rows from the hub. archive: gives the zip file's path when it is
    first needed.
    """

    def __init__(self, images: Images, folder: Path | None, archive: Callable[[], Path] | None = None) -> None:
        self._images = images
        self._roots = [folder / name for name in images.folders] if folder else []
        self._archive = archive
        self._zip: zipfile.ZipFile | None = None

    def read(self, record: Record, where: str) -> tuple[Picture, ...]:
        """All pictures of the row, normalised; none where the column is empty. Raises ImageFault naming the row."""
        cell = read_field(record, self._images.columns)
        if not is_there(cell):
            return ()
        cells = self._cells(cell, where)
        if len(cells) > _MAX_PICTURES:
            raise ImageFault(f"{len(cells)} pictures, the limit is {_MAX_PICTURES}", where=where)
        found: list[Picture] = []
        for number, one in enumerate(cells, 1):
            place = where if len(cells) == 1 else f"{where}, image {number}"
            found.append(load_picture(self._source(one, place), roots=self._roots, where=place))
        return tuple(found)

    def close(self) -> None:
        if self._zip is not None:
            self._zip.close()
            self._zip = None

    def _cells(self, cell: Any, where: str) -> Sequence[Any]:
        if isinstance(cell, str) and self._images.base64 and cell.lstrip()[:1] == "[":
            try:
                listed = read_list(cell)
            except ValueError as fault:
                raise ImageFault(f"no list of base64 texts: {fault}", where=where) from None
            return listed if isinstance(listed, list) else [listed]
        if isinstance(cell, str | bytes | dict):
            return [cell]
        if isinstance(cell, list | tuple) or hasattr(cell, "ravel"):
            return [one for one in cell if one is not None]
        return [cell]

    def _source(self, cell: Any, where: str) -> Any:
        if not isinstance(cell, str) or cell[:5].lower() == "data:":
            return cell
        if self._images.base64 and "." not in cell:  # base64 has no dot, and a file's name has one
            try:
                return base64.b64decode("".join(cell.split()), validate=True)
            except (binascii.Error, ValueError) as fault:
                raise ImageFault(f"no base64 text: {fault}", where=where) from None
        if self._images.archive is not None and not self._on_disk(cell):
            return self._member(cell, where)
        return cell

    def _on_disk(self, name: str) -> bool:
        try:
            return any((root / name).is_file() for root in self._roots)
        except (OSError, ValueError):
            return False

    def _member(self, name: str, where: str) -> bytes:
        """A picture out of the zip file, under its name or below the folder that the file is named after."""
        archive = self._open(where)
        stem = Path(self._images.archive or "").stem
        for member in (name, f"{stem}/{name}"):
            try:
                info = archive.getinfo(member)
            except KeyError:
                continue
            if info.file_size > _MAX_MEMBER_BYTES:
                raise ImageFault(f"{member} has {info.file_size} bytes, the limit is {_MAX_MEMBER_BYTES}", where=where)
            try:
                with archive.open(info) as stream:
                    return stream.read(_MAX_MEMBER_BYTES + 1)
            except (OSError, zipfile.BadZipFile, RuntimeError, NotImplementedError) as fault:
                raise ImageFault(f"{member} can't be unpacked: {fault}", where=where) from None
        raise ImageFault(
            f"no such image: {name[:100]}", where=where, fix=f"it is in no image folder and not in {archive.filename}"
        )

    def _open(self, where: str) -> zipfile.ZipFile:
        if self._zip is None:
            path = self._archive() if self._archive is not None else self._beside()
            if path is None:
                raise ImageFault(
                    f"neither image folders nor {self._images.archive} beside the data",
                    where=where,
                    fix=f"put {self._images.archive}, or what is in it, beside the data",
                )
            try:
                self._zip = zipfile.ZipFile(path)
            except (OSError, zipfile.BadZipFile) as fault:
                raise ImageFault(f"{path} is no readable zip file: {fault}", where=where) from None
        return self._zip

    def _beside(self) -> Path | None:
        places = [root / str(self._images.archive) for root in self._roots]
        return next((path for path in places if path.is_file()), None)
