"""Tool `python`: runs a program in the sandbox and reports, in words fit for a prompt, how it ended."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from typing import Any

from experts.images import Picture
from experts.sandbox.limits import SandboxLimits
from experts.sandbox.result import SandboxResult
from experts.sandbox.run import run_python
from experts.sandbox.view import view_of
from experts.tools.result import ToolResult
from registry.errors import UserFault

_DATA_CHARS = 8000
_REPORT_CHARS = 1500
_LINE_CHARS = 200
_FENCE = re.compile(r"^[ \t]*```[ \t]*([\w+-]*)[^\n`]*$", re.MULTILINE)
_LABELS = {"python", "python3", "py"}


class RunPython:
    """Needs no picture. Options: the fields of `SandboxLimits`, and `packages`, the names of packages that a program
    may import: a list, or text divided by commas. Raises UserFault for other options, impossible values and absent
    packages."""

    needs_picture = False

    def __init__(self, *, packages: str | Sequence[str] = "", **limits: Any) -> None:
        known = sorted(SandboxLimits.__dataclass_fields__)
        for name in limits:
            if name not in known:
                raise UserFault(f"the tool python has no option {name!r}", fix=f"options: packages, {', '.join(known)}")
        self._limits = SandboxLimits(**limits)
        names = packages.replace(",", " ").split() if isinstance(packages, str) else packages
        if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
            raise UserFault(f"packages must be names of packages, not {packages!r}", where="tool python")
        self._packages = tuple(names)
        view_of(self._packages)

    def run(self, picture: Picture | None = None, **args: str) -> ToolResult:
        """Arguments: `source`, a program or a reply with a ```python block (the last one that holds code); `test`,
        run after it in the same module; `stdin`. The picture plays no part.

        data: status (`passed` is exit code 0), returncode, stdout, stderr, seconds. Raises nothing for what the
        program does; where it could not be run at all, RuntimeError: that says nothing about the program.
        """
        test = args.get("test", "")
        result = run_python(
            program_in(args.get("source", "")),
            test=test if test.strip() else "",
            stdin=args.get("stdin", ""),
            packages=self._packages,
            limits=self._limits,
        )
        if result.status == "refused":
            raise RuntimeError(f"the program was not run: {result.detail}")
        data = {
            "status": result.status,
            "returncode": result.returncode,
            "stdout": _middle_out(result.stdout),
            "stderr": _middle_out(result.stderr),
            "seconds": round(result.seconds, 4),
        }
        return ToolResult(text=_report(result), data=data)


def program_in(reply: str) -> str:
    """The last block with code that is labelled Python; else the last without a label; else the whole text. A block
    whose end is missing reaches to the end of the text."""
    labelled, plain = "", ""
    reply = reply.replace("\r\n", "\n")
    fences = list(_FENCE.finditer(reply))
    at = 0
    while at < len(fences):
        opening, after = fences[at], fences[at + 1 : at + 2]
        code = textwrap.dedent(reply[opening.end() : after[0].start() if after else len(reply)]).strip("\n")
        if code.strip() and opening[1].lower() in _LABELS:
            labelled = code
        elif code.strip() and not opening[1]:
            plain = code
        at += 2 if after and not after[0][1] else 1  # a fence with a label opens the next block
    return labelled or plain or reply


def _report(result: SandboxResult) -> str:
    errors = _tidy(result.stderr)
    why = errors[-1] if result.status == "failed" and errors and errors[-1].strip() else result.detail
    parts = [f"{result.status}: {why}" if why else result.status]
    if not result.passed and len(errors) > 1:
        parts.append("\n".join(errors[-12:]))
    said = [line[:_LINE_CHARS] for line in result.stdout.rstrip().splitlines()[-8:]]
    if said:
        parts.append("output, last lines:\n" + "\n".join(said))
    return "\n".join(part[-_REPORT_CHARS // 2 :] if number else part for number, part in enumerate(parts))


def _tidy(stderr: str) -> list[str]:
    """Lines of a traceback without the folder of the program and the marks below its lines."""
    lines = [re.sub(r'File "[^"]*/main\.py"', 'File "main.py"', line) for line in stderr.rstrip().splitlines()]
    return [line[:_LINE_CHARS] for line in lines if not re.fullmatch(r"\s*[~^]+\s*", line)]


def _middle_out(text: str) -> str:
    if len(text) <= _DATA_CHARS:
        return text
    half = _DATA_CHARS // 2
    return f"{text[:half]}\n... {len(text) - 2 * half} characters left out ...\n{text[-half:]}"
