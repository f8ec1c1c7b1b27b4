"""The way in: run a program and get a result, whatever the program does."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from experts.sandbox.isolation import NAMES, available
from experts.sandbox.limits import SandboxLimits
from experts.sandbox.result import SandboxResult
from experts.sandbox.running import run_in

_NO_FILES: Mapping[str, bytes] = MappingProxyType({})
_DEFAULT = SandboxLimits()


def run_python(
    source: str,
    *,
    test: str = "",
    stdin: str = "",
    files: Mapping[str, bytes] = _NO_FILES,
    packages: Sequence[str] = (),
    limits: SandboxLimits = _DEFAULT,
    isolation: str | None = None,
) -> SandboxResult:
    """Run `source` as the main program under `limits`, isolated. Safe to call from many threads at once; under asyncio
    call it by `asyncio.to_thread`.

    test: runs after the source in the same module; a program that ends before its test began has failed, whatever its
    exit code. files: name below the scratch folder to content. packages: installed packages that may be imported, and
    what they need, by name; without, the standard library alone. isolation: one of `NAMES` instead of the strongest
    that holds here.

    Where none holds the result is `refused` and nothing ran. Raises nothing for what the program does; ValueError for
    an unknown isolation or a name in `files` that leads elsewhere, UserFault for a package that is not installed.
    """
    if isolation is None:
        here = available()
        if not here.works:
            reasons = "; ".join(f"{name}: {reason}" for name, reason in here.why_not.items())
            return SandboxResult("refused", detail=f"nothing here keeps a program in ({reasons})")
        isolation = here.name
    elif isolation not in NAMES:
        raise ValueError(f"isolation must be one of {', '.join(NAMES)}, not {isolation!r}")
    mark = f"test begins {secrets.token_hex(16)}\n"
    whole = source
    if test:
        whole += f"\n\n__import__('os').write(1, {mark.encode()!r})\n{test}"
        limits = replace(limits, output_bytes=limits.output_bytes + len(mark))
    result = run_in(
        isolation,
        whole.encode("utf-8", "replace"),
        stdin=stdin.encode("utf-8", "replace"),
        files=files,
        packages=packages,
        limits=limits,
    )
    return _with_test(result, mark) if test else result


def _with_test(result: SandboxResult, mark: str) -> SandboxResult:
    before, found, after = result.stdout.partition(mark)
    result = replace(result, stdout=before + after)
    if result.passed and not found:
        return replace(result, status="failed", detail="ended before its test began")
    return result
