"""What a person is told when a command ends badly: one message on standard error, and an exit code.

The one idea: this is the only place where exceptions become words. Exit codes: 2 the user can mend it (a
wrong name, a broken file, a full disk), 130 interrupted, 141 the reader of our output went away, 1 a fault of
ours.
"""

from __future__ import annotations

import errno
from dataclasses import dataclass

USER, INTERNAL, INTERRUPTED, READER_GONE = 2, 1, 130, 141

_FIXES = {
    errno.ENOENT: "check the path",
    errno.EACCES: "check the permissions",
    errno.EISDIR: "give a file instead of a folder",
    errno.ENOTDIR: "give a folder instead of a file",
    errno.ECONNREFUSED: "check that the server runs and that its address is right",
}


@dataclass(frozen=True)
class Ending:
    """How to end: what to say (nothing when empty) and the exit code."""

    message: str
    exit_code: int


def ending(error: BaseException) -> Ending:
    """The ending for an exception that left a command."""
    error = _cause(error)
    if isinstance(error, KeyboardInterrupt):
        return Ending(
            "interrupted: what was finished is kept; run the same command again to go on", INTERRUPTED
        )
    if isinstance(error, BrokenPipeError):
        return Ending("", READER_GONE)
    if _is_user_fault(error):
        return Ending(f"error: {error}", USER)
    if isinstance(error, OSError):
        return Ending(f"error: {_os_message(error)}", USER)
    if isinstance(error, ValueError):
        return Ending(f"error: {str(error).strip() or type(error).__name__}", USER)
    return Ending(
        f"internal error: {type(error).__name__}: {str(error).strip()}\n"
        "  this is a fault of the program; run the command again with --debug to see where it happened",
        INTERNAL,
    )


def _cause(error: BaseException) -> BaseException:
    """The one error of a task group that holds one."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


def _is_user_fault(error: BaseException) -> bool:
    from registry.errors import UserFault

    return isinstance(error, UserFault)


def _os_message(error: OSError) -> str:
    place = f": {error.filename}" if error.filename is not None else ""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"no space left on the disk{place}\n  fix: free some space, then run the same command again"
    fix = _FIXES.get(error.errno or 0)
    return f"{error.strerror or str(error) or type(error).__name__}{place}" + (
        f"\n  fix: {fix}" if fix else ""
    )
