"""What the interpreter needs to see: itself, its library, the system's shared libraries, asked-for packages.

It runs as that of a virtual environment without packages, so that what happens to be installed beside the base
interpreter is not to be had, and what was asked for is.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import sysconfig
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from registry.errors import UserFault

_SYSTEM = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/etc/ld.so.cache", "/usr/share/zoneinfo")
_DEVICES = ("/dev/null", "/dev/zero", "/dev/urandom")


@dataclass
class View:
    """executable: the base interpreter. reads: folders and files that are where they are here. links: (target, path).
    packages: folders and files for the environment's site-packages. config: text of its pyvenv.cfg."""

    executable: str
    config: str
    reads: list[str] = field(default_factory=list)
    links: list[tuple[str, str]] = field(default_factory=list)
    packages: list[str] = field(default_factory=list)
    devices: list[str] = field(default_factory=lambda: [device for device in _DEVICES if os.path.exists(device)])
    library_path: str = ""


def view_of(packages: Iterable[str]) -> View:
    """Raises UserFault for a package that is not installed here."""
    executable = os.path.realpath(getattr(sys, "_base_executable", sys.executable))
    view = View(executable, f"home = {os.path.dirname(executable)}\ninclude-system-site-packages = false\n")
    prefix = os.path.realpath(sys.base_prefix)
    own = [os.path.join(prefix, "lib"), os.path.join(prefix, "lib64")]
    for path in sorted({*_SYSTEM, *own, executable}):
        if os.path.islink(path):
            view.links.append((os.readlink(path), path))
        elif os.path.exists(path) and not any(path.startswith(held + "/") for held in view.reads):
            view.reads.append(path)
    if sysconfig.get_config_var("Py_ENABLE_SHARED") and own[0] not in _SYSTEM:
        view.library_path = own[0]
    for name in packages:
        view.packages += [place for place in _places(name) if place not in view.packages]
    return view


def _places(name: str) -> list[str]:
    """The package's folder or file, and the shared libraries that its wheel brought along."""
    found = importlib.util.find_spec(name) if name.isidentifier() else None
    if found is None or not found.origin or not os.path.isfile(found.origin):
        raise UserFault(f"no installed package {name!r}", where="sandbox, packages", fix="name packages as in import")
    origin = Path(found.origin)
    place = origin.parent if found.submodule_search_locations else origin
    libraries = place.with_name(f"{name}.libs")
    return [str(place), str(libraries)] if libraries.is_dir() else [str(place)]
